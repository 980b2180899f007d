/** Runs the command that the first word of the command line names. */

import { nearestWord } from "../lib/text/nearest-word.ts";
import { commands } from "./commands.ts";
import type { Host } from "./core/host.ts";

/** The exit code that shells use after a signal. */
const interruptedCode = 130;

/** Runs one command line and returns the exit code. */
export async function run(host: Host): Promise<number> {
  const [word, ...args] = host.args;
  const name = word === "--version" || word === "-v" ? "version" : word;
  const command = await commands.find((candidate) => candidate.name === name)?.load();
  if (command === undefined) return helpOut(name, host);
  if (command.endsAtOnce === true) {
    // The signal may have come while the command's files were read.
    if (host.stop.aborted) return interruptedCode;
    host.stop.addEventListener("abort", () => host.exit(interruptedCode));
  }
  return await command.run(args, host);
}

/** Prints the help, or what is wrong with a first word that is no command. */
function helpOut(word: string | undefined, host: Host): number {
  if (word === undefined || word === "help" || word === "--help" || word === "-h") {
    host.write(help());
    return word === undefined ? 2 : 0;
  }
  const meant = nearestWord(
    word,
    commands.map(({ name }) => name),
  );
  host.writeError(`Unknown command "${word}": ${meant === undefined ? "see davit --help" : `write davit ${meant}`}\n`);
  return 2;
}

function help(): string {
  const rows = commands.map(({ name, summary }) => `  davit ${name.padEnd(15)}${summary}`);
  return ["Usage: davit COMMAND [options]", "", ...rows, "", "davit COMMAND --help shows its options.", ""].join("\n");
}

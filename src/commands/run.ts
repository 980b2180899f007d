/** Runs the command that the first word of the command line names. */

import { nearestWord } from "../lib/nearest-word.ts";
import { backup } from "./backup.ts";
import { boot } from "./boot.ts";
import { completion } from "./completion.ts";
import { fetchAssets } from "./fetch-assets.ts";
import { history } from "./history.ts";
import type { CliCommand, Host } from "./host.ts";
import { importCommand } from "./import.ts";
import { inspect } from "./inspect.ts";
import { lint } from "./lint.ts";
import { machine } from "./machine/machine.ts";
import { migrateStore } from "./migrate-store.ts";
import { preview } from "./preview.ts";
import { render } from "./render.ts";
import { restore } from "./restore.ts";
import { serve } from "./serve.ts";
import { version } from "./version.ts";

/** Every command, in the order of the help. */
export const commands: readonly CliCommand[] = [
  serve,
  boot,
  backup,
  restore,
  migrateStore,
  inspect,
  lint,
  render,
  machine,
  history,
  preview,
  importCommand,
  fetchAssets,
  completion(() => commands),
  version,
];

/** The exit code that shells use after a signal. */
const interruptedCode = 130;

/** Runs one command line and returns the exit code. */
export async function run(host: Host): Promise<number> {
  const [word, ...args] = host.args;
  const name = word === "--version" || word === "-v" ? version.name : word;
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) {
    if (command.endsAtOnce === true) host.stop.addEventListener("abort", () => host.exit(interruptedCode));
    return await command.run(args, host);
  }
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    host.write(help());
    return name === undefined ? 2 : 0;
  }
  const meant = nearestWord(
    name,
    commands.map((candidate) => candidate.name),
  );
  host.writeError(`Unknown command "${name}": ${meant === undefined ? "see davit --help" : `write davit ${meant}`}\n`);
  return 2;
}

function help(): string {
  const rows = commands.map(({ name, summary }) => `  davit ${name.padEnd(15)}${summary}`);
  return ["Usage: davit COMMAND [options]", "", ...rows, "", "davit COMMAND --help shows its options.", ""].join("\n");
}

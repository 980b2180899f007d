import { nearestWord } from "../../lib/nearest-word.ts";
import type { CliCommand, Host } from "../host.ts";
import { installMachines } from "./install.ts";
import { adoptMachines, forgetMachines } from "./ledger.ts";
import { approveMachine, holdMachine, releaseMachine } from "./objects.ts";
import { listMachines, showLedger, showMachine } from "./show.ts";

const commands: readonly CliCommand[] = [
  listMachines,
  showMachine,
  showLedger,
  approveMachine,
  holdMachine,
  releaseMachine,
  installMachines,
  adoptMachines,
  forgetMachines,
];

/** `davit machine`: shows machines, and approves, holds and installs them. */
export const machine: CliCommand = {
  name: "machine",
  endsAtOnce: true,
  summary: "list machines; approve, hold and install them",
  parts: commands,
  run: async (args, host) => {
    const [word, ...rest] = args;
    const command = commands.find(({ name }) => name === `machine ${word}`);
    if (command !== undefined) return await command.run(rest, host);
    if (word === undefined || word === "help" || word === "--help" || word === "-h") {
      host.write(help());
      return word === undefined ? 2 : 0;
    }
    return refuse(word, host);
  },
};

function refuse(word: string, host: Host): number {
  const meant = nearestWord(
    word,
    commands.map(({ name }) => verbOf(name)),
  );
  const cure = meant === undefined ? "see davit machine --help" : `write davit machine ${meant}`;
  host.writeError(`Unknown command "machine ${word}": ${cure}\n`);
  return 2;
}

function verbOf(name: string): string {
  return name.slice("machine ".length);
}

function help(): string {
  const rows = commands.map(({ name, summary }) => `  davit ${name.padEnd(17)}${summary}`);
  const end = "davit machine COMMAND --help shows its options.";
  return ["Usage: davit machine COMMAND [options]", "", ...rows, "", end, ""].join("\n");
}

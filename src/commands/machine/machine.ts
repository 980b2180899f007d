import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { CliCommand, Host, ListedCommand } from "../core/host.ts";

const commands: readonly ListedCommand[] = [
  {
    name: "machine list",
    summary: "list machines with their Group, phase and last install",
    load: async () => (await import("./show.ts")).listMachines,
  },
  {
    name: "machine show",
    summary: "show everything about one machine, and what it boots next",
    load: async () => (await import("./show.ts")).showMachine,
  },
  {
    name: "machine ledger",
    summary: "show the ledger's id and health, adopted Groups and ended grants",
    load: async () => (await import("./show.ts")).showLedger,
  },
  {
    name: "machine approve",
    summary: "approve a Machine: Groups with approval: Required serve it",
    load: async () => (await import("./objects.ts")).approveMachine,
  },
  {
    name: "machine hold",
    summary: "hold a Machine: it is answered 503 and waits",
    load: async () => (await import("./objects.ts")).holdMachine,
  },
  {
    name: "machine release",
    summary: "release a held Machine",
    load: async () => (await import("./objects.ts")).releaseMachine,
  },
  {
    name: "machine install",
    summary: "grant one install to a Machine, or to each machine of a Group",
    load: async () => (await import("./install.ts")).installMachines,
  },
  {
    name: "machine adopt",
    summary: "after a lost ledger: machines count as installed, and boot their disks",
    load: async () => (await import("./ledger.ts")).adoptMachines,
  },
  {
    name: "machine forget",
    summary: "a machine counts as never installed; with group/NAME, end an adoption",
    load: async () => (await import("./ledger.ts")).forgetMachines,
  },
];

/** `davit machine`: shows machines, and approves, holds and installs them. */
export const machine: CliCommand = {
  endsAtOnce: true,
  parts: commands,
  run: async (args, host) => {
    const [word, ...rest] = args;
    const command = await commands.find(({ name }) => name === `machine ${word}`)?.load();
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

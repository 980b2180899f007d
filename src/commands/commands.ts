/** The commands, and which of them a command line runs. */

import { nearestWord } from "../lib/text/nearest-word.ts";
import type { Host, ListedCommand } from "./core/host.ts";

/** Every command, in the order of the help. */
export const commands: readonly ListedCommand[] = [
  {
    name: "serve",
    summary: "serve boot configs from Profiles and Groups",
    load: async () => (await import("./server/serve.ts")).serve,
  },
  {
    name: "boot",
    summary: "serve boot configs from the store of another davit",
    load: async () => (await import("./server/boot.ts")).boot,
  },
  {
    name: "backup",
    summary: "copy a store into one file, while it runs",
    load: async () => (await import("./store/backup.ts")).backup,
  },
  {
    name: "restore",
    summary: "begin a store with the keys of a backup",
    load: async () => (await import("./store/restore.ts")).restore,
  },
  {
    name: "migrate-store",
    summary: "move a store from a data directory to etcd, or back",
    load: async () => (await import("./store/migrate-store.ts")).migrateStore,
  },
  {
    name: "inspect",
    summary: "verify a backup or a data directory",
    load: async () => (await import("./store/inspect.ts")).inspect,
  },
  {
    name: "lint",
    summary: "report mistakes in Profiles and Groups",
    load: async () => (await import("./offline/lint.ts")).lint,
  },
  {
    name: "render",
    summary: "print what a machine would be answered, from manifests alone",
    load: async () => (await import("./offline/render.ts")).render,
  },
  {
    name: "diff",
    summary: "show what manifests would change, and for which machines",
    load: async () => (await import("./offline/diff.ts")).diff,
  },
  {
    name: "machine",
    summary: "list machines; approve, hold and install them",
    load: async () => (await import("./machine/machine.ts")).machine,
  },
  {
    name: "history",
    summary: "show what machines asked for, and where each boot stopped",
    load: async () => (await import("./server/history.ts")).history,
  },
  {
    name: "preview",
    summary: "show what a machine would get now, and why",
    load: async () => (await import("./server/preview.ts")).preview,
  },
  {
    name: "doctor",
    summary: "ask DHCP as firmware does, and show what machines would get",
    load: async () => (await import("./server/doctor.ts")).doctor,
  },
  {
    name: "import",
    summary: "make Profiles and Groups of a matchbox data directory",
    load: async () => (await import("./offline/import.ts")).importCommand,
  },
  {
    name: "fetch-assets",
    summary: "download kernels and initrds, checked, into an assets directory",
    load: async () => (await import("./offline/fetch-assets.ts")).fetchAssets,
  },
  {
    name: "completion",
    summary: "print a script that completes commands and options in bash, zsh or fish",
    load: async () => (await import("./completion.ts")).completion(commands),
  },
  {
    name: "version",
    summary: "print the version and the commit",
    load: async () => (await import("./core/version.ts")).version,
  },
];

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

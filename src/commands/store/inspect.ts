import { statSync } from "node:fs";
import { toRfc3339 } from "../../lib/clock.ts";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { secretsRoot } from "../../model/objects/documents.ts";
import { keyOfSecret } from "../../model/objects/secret-texts.ts";
import { type ReadBackup, readBackup } from "../../store/backup/backup.ts";
import { backupVersion } from "../../store/backup/format.ts";
import { WalError } from "../../store/core/log-port.ts";
import { storePath } from "../../store/core/node.ts";
import {
  contentsOf,
  type DirectoryReport,
  type DirectoryState,
  inspectDirectory,
} from "../../store/inspect/inspect.ts";
import type { Tree } from "../../store/tree/tree.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { formatVersion } from "../../store/wal/record.ts";
import { sentenceOf } from "../core/command-line.ts";
import type { CliCommand, Host } from "../core/host.ts";
import { sizeText } from "../core/progress.ts";

const soundCode = 0;
const damagedCode = 1;
const notInspectedCode = 2;

const help = `Usage: davit inspect PATH

Reads a backup, or the data directory of a davit that does not run, and verifies every checksum. It says which texts of
Secrets are in it, and the key that encrypts them. It writes nothing.
Exit code 0: sound. 1: damaged; each place is printed. 2: it was not inspected.
`;

/** `davit inspect`: shows what is in a backup or a data directory, and whether it is damaged. */
export const inspect: CliCommand = {
  endsAtOnce: true,
  run: async (args, host) => {
    if (args.includes("--help") || args.includes("-h")) {
      host.write(help);
      return soundCode;
    }
    const [path, ...others] = args;
    const option = args.find((word) => word.startsWith("-"));
    if (path === undefined || option !== undefined || others.length > 0) {
      const problem =
        option === undefined
          ? "No single path: give one backup or one data directory"
          : `Unknown option "${option}": give one backup or one data directory, and nothing else`;
      host.writeError(`${problem}\nSee davit inspect --help\n`);
      return notInspectedCode;
    }
    try {
      return await inspectPath(path, host);
    } catch (error) {
      return reportFailure(diskFailure("Reading", path, error), host);
    }
  },
};

function reportFailure(error: unknown, host: Host): number {
  const sentence = sentenceOf(error);
  if (sentence === undefined) throw error;
  const isDamage = error instanceof WalError && error.reason === "damaged";
  if (isDamage) host.write(verdict([sentence]));
  else host.writeError(`${sentence}\n`);
  return isDamage ? damagedCode : notInspectedCode;
}

async function inspectPath(path: string, host: Host): Promise<number> {
  if (!statSync(path).isDirectory()) {
    host.write(backupReport(path, await readBackup(() => diskFiles.readPieces(path), `"${path}"`)));
    host.write(verdict([]));
    return soundCode;
  }
  const unlock = await lockIfThere(path);
  try {
    const values = new Set<string>();
    const report = await inspectDirectory(diskFiles, path, (place) => {
      if (isSecret(place)) values.add(place);
    });
    host.write(directoryReport(path, report, values));
    host.write(verdict(report.damage));
    return report.damage.length === 0 ? soundCode : damagedCode;
  } finally {
    unlock();
  }
}

/**
 * Locks a data directory, and returns the function that unlocks it. If the lock's file is missing, no davit has a lock.
 * If the file cannot be opened for writing, davit reads the directory without a lock.
 */
async function lockIfThere(directory: string): Promise<() => void> {
  const nothingToUnlock = () => undefined;
  if (!(await diskFiles.list(directory)).includes("lock.db")) return nothingToUnlock;
  try {
    const lock = lockDirectory(directory, { mends: false });
    return () => lock.release();
  } catch (error) {
    if (error instanceof WalError && error.reason === "unusable") return nothingToUnlock;
    throw error;
  }
}

type Fact = readonly [name: string, value: string];

/** Returns the report of a backup that could be read completely. */
function backupReport(path: string, { head, tree, sizeBytes }: ReadBackup): string {
  const { clusterId, raftIndex, raftTerm, atMs } = head;
  return text(`${path}: a backup, ${sizeText(sizeBytes)}`, [
    ["version", `${backupVersion}`],
    ["taken", toRfc3339(atMs)],
    ["cluster", clusterId],
    ["raft", `index ${raftIndex}, term ${raftTerm}`],
    ...contentFacts(tree),
  ]);
}

/**
 * Returns the report of a data directory. It has the facts of the readable part.
 * @param secrets the paths of all texts of Secrets in its files, also of removed ones.
 */
function directoryReport(
  path: string,
  { segments, snapshots, found }: DirectoryReport,
  secrets: ReadonlySet<string>,
): string {
  const present = found === undefined ? new Set<string>() : secretsIn(found.machine.tree);
  return text(`${path}: a data directory`, [
    ["version", `${formatVersion}`],
    ...(found === undefined ? [] : stateFacts(found)),
    ...secretFacts(
      "removed texts",
      [...secrets].filter((each) => !present.has(each)),
    ),
    ["segments", listText(segments)],
    ["snapshots", listText(snapshots)],
  ]);
}

/** True for the path of a Secret's text. */
function isSecret(path: string): boolean {
  return path.startsWith(`${secretsRoot}/`);
}

/** Returns the report's last lines. @param damage a sentence for each damaged place. */
function verdict(damage: readonly string[]): string {
  return damage.length === 0 ? "sound\n" : ["damaged", ...damage.map((each) => `  ${each}`), ""].join("\n");
}

function stateFacts({ machine: { tree, history }, end }: DirectoryState): readonly Fact[] {
  const { oldestIndex, nextIndex } = history;
  const isEmpty = oldestIndex === nextIndex;
  const torn: Fact = ["torn", `${end.tornBytes} bytes at the end of ${end.segment}: that write was never acknowledged`];
  return [
    ["cluster", end.head.clusterId.toString(16)],
    ["raft", `index ${end.lastSequence}, term ${end.term}`],
    ...contentFacts(tree),
    ["history", isEmpty ? `empty, from ${nextIndex} on` : `from ${oldestIndex} to ${nextIndex - 1}`],
    ...(end.tornBytes === 0 ? [] : [torn]),
  ];
}

function contentFacts(tree: Tree): readonly Fact[] {
  const { index, keys, directories, bytes } = contentsOf(tree);
  return [
    ["index", `${index}`],
    ["keys", `${keys}`],
    ["directories", `${directories}`],
    ["names and values", sizeText(bytes)],
    ...secretFacts("texts of Secrets", [...secretsIn(tree)]),
  ];
}

function secretsIn(tree: Tree): ReadonlySet<string> {
  const nodes = [...tree.walk(storePath("/"))].filter(({ isDirectory, path }) => !isDirectory && isSecret(path));
  return new Set(nodes.map(({ path }) => path));
}

/** Counts texts by their keys, such as `1 in the clear, 2 encrypted with key 1a2b3c4d`. No fact if there is none. */
function secretFacts(name: string, paths: readonly string[]): readonly Fact[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const keyId = keyOfSecret(path);
    const how = keyId === undefined ? "in the clear" : `encrypted with key ${keyId}`;
    counts.set(how, (counts.get(how) ?? 0) + 1);
  }
  const shown = [...counts].toSorted(([a], [b]) => (a < b ? 1 : -1)).map(([how, count]) => `${count} ${how}`);
  return shown.length === 0 ? [] : [[name, shown.join(", ")]];
}

function listText(names: readonly string[]): string {
  return names.length === 0 ? "none" : `${names.length}: ${names.join(" ")}`;
}

function text(title: string, facts: readonly Fact[]): string {
  return [title, ...facts.map(([name, value]) => `  ${name.padEnd(18)}${value}`), ""].join("\n");
}

/** Writes the report of `davit inspect` on a backup or a data directory: a line for each fact, then the verdict. */

import { toRfc3339 } from "../../lib/clock.ts";
import { secretsRoot } from "../../model/objects/documents.ts";
import { keyOfSecret } from "../../model/objects/secret-texts.ts";
import type { ReadBackup } from "../../store/backup/backup.ts";
import { backupVersion } from "../../store/backup/format.ts";
import { storePath } from "../../store/core/node.ts";
import { contentsOf, type DirectoryReport, type DirectoryState } from "../../store/inspect/inspect.ts";
import type { Tree } from "../../store/tree/tree.ts";
import { formatVersion } from "../../store/wal/record.ts";
import { sizeText } from "../core/progress.ts";

type Fact = readonly [name: string, value: string];

/** Returns the report of a backup that could be read completely. */
export function backupReport(path: string, { head, tree, sizeBytes }: ReadBackup): string {
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
export function directoryReport(
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
export function isSecret(path: string): boolean {
  return path.startsWith(`${secretsRoot}/`);
}

/** Returns the report's last lines. @param damage a sentence for each damaged place. */
export function verdict(damage: readonly string[]): string {
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

/** `davit history`: what machines asked for, and where each boot stopped, as the operations listener answers it. */

import { isIP } from "node:net";
import { systemClock } from "../../lib/clock.ts";
import { visible } from "../../lib/text/visible.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../model/json.ts";
import { isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { type Paint, paintOf, textTable } from "../core/paint.ts";
import { printWatched } from "../core/watch.ts";
import { type OperationsOptions, readOperations, readOperationsText } from "../machine/operations.ts";
import { machineHelp, operationsOptions, outputOptions, readMachineOptions, watchOption } from "../machine/options.ts";
import { labelsOfNamed } from "../machine/show.ts";

const historyOptions = { ...operationsOptions, ...outputOptions, ...watchOption };
const anyQuestion = "[MAC|UUID|[NAMESPACE/]NAME|SERIAL|ADDRESS|hostname=NAME|serial=NUMBER]";

export const history = workCommand({
  name: "history",
  endsAtOnce: true,
  help: machineHelp(
    `history ${anyQuestion}`,
    "Lists the machines that were seen last, or shows every boot of one machine.",
    historyOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(historyOptions, args, environment, paths);
    const bad = words.find((word) => !isQuestion(word));
    if (bad !== undefined) problems.push(`Bad machine "${bad}": give ${anyQuestion.slice(1, -1)}`);
    return configWithout(problems, { ...values, words });
  },
  work: async ({ words, output, watch, ...operations }, host) => {
    const query = new URLSearchParams(await askedPairs(operations, words, historyLabels)).toString();
    const path = query === "" ? "/history" : `/history?${query}`;
    const paint = paintOf(host);
    await printWatched({ host, clock: systemClock, watch }, async () => {
      if (output === "json") return `${JSON.stringify(await readOperations(operations, path), undefined, 2)}\n`;
      if (query !== "") return await readOperationsText(operations, path);
      return listText(await readOperations(operations, path), paint);
    });
    return 0;
  },
});

/** One label finds all requests of a machine, also those with other labels. The first known label counts. */
function historyLabels(labels: ReadonlyMap<string, string>): LabelPairs {
  const name = ["mac", "uuid", "serial", "hostname"].find((each) => labels.has(each));
  return name === undefined ? [] : [[name, labels.get(name) ?? ""]];
}

type LabelPairs = [name: string, value: string][];

/** True for a word that may mean a label, an address or a machine. */
export function isQuestion(word: string): boolean {
  return pairOf(word) !== undefined || /^[^\s=]+$/.test(word);
}

/**
 * Returns the labels that words mean. A word that is neither a label nor an identity names a machine.
 * @param ofMachine chooses among the labels by which the machine is known.
 * @throws {StartError} if a name means no machine, or several.
 */
export async function askedPairs(
  operations: OperationsOptions,
  words: readonly string[],
  ofMachine: (labels: ReadonlyMap<string, string>) => LabelPairs,
): Promise<LabelPairs> {
  const pairs: LabelPairs = [];
  for (const word of words) {
    const pair = pairOf(word);
    pairs.push(...(pair === undefined ? ofMachine(new Map(await labelsOfNamed(operations, word))) : [pair]));
  }
  return pairs;
}

/** Returns the label that a word means; undefined for a word without a meaning. */
function pairOf(word: string): [name: string, value: string] | undefined {
  const [, name, value] = /^([A-Za-z][\w./-]*)=(.*)$/s.exec(word) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  if (normalizeMac(word) !== undefined) return ["mac", word];
  if (isUuid(word)) return ["uuid", word];
  return isIP(word) === 0 ? undefined : ["address", word];
}

const columns = ["SEEN", "MACHINE", "HOST", "GROUP", "LAST", "RESULT", "ADDRESS"] as const;

function listText({ machines, unrecorded }: JsonObject, paint: Paint): string {
  const all = (Array.isArray(machines) ? machines : []).filter(isJsonObject);
  if (all.length === 0) return "no machine has asked for anything yet\n";
  const rows = all.map(rowOf);
  const paintCell = (column: string, cell: string) =>
    column === "RESULT" && !cell.startsWith("answered") && cell.trim() !== "" ? paint("red", cell) : cell;
  const lost = isJsonObject(unrecorded) ? `${text(unrecorded.requests)} requests came too fast: not recorded\n` : "";
  return lost + textTable({ columns, rows, paint, paintCell });
}

function rowOf({ labels, addresses, lastSeenAt, lastBoot }: JsonObject): readonly string[] {
  const own = objectOf(labels);
  const boot = objectOf(lastBoot);
  const end = objectOf(boot.end);
  const machine = own.mac ?? own.uuid ?? own.serial;
  const result = end.kind === "refused" ? `${text(end.status)} ${text(end.reason)}`.trim() : text(end.kind);
  const addressText = (Array.isArray(addresses) ? addresses : []).map(text).join(",");
  return [
    text(lastSeenAt).replace(/\.\d+Z$/, "Z"),
    text(machine),
    text(own.hostname),
    text(boot.group),
    text(end.stage),
    result,
    addressText,
  ];
}

function text(value: unknown): string {
  return value === undefined || value === null ? "" : visible(String(value));
}

/** Reports differences as JSON for programs and as text for a terminal, and holds the words that all reports share. */

import { visible } from "../../lib/text/visible.ts";
import { bootRefusals } from "../../model/refusals.ts";
import type { UncheckedText, UnreadyObject } from "./apply.ts";
import type { ChangedGroup, ChangedMachines, Comparison } from "./compare.ts";
import type { ChangedField } from "./fields.ts";
import type { BootOutcome } from "./outcome.ts";
import type { ChangedText } from "./texts.ts";

/** Everything that a report shows. */
export interface DiffReport {
  /** What is compared, for people. */
  readonly before: string;
  readonly after: string;
  readonly comparison: Comparison;
  readonly unready: readonly UnreadyObject[];
  readonly unchecked: readonly UncheckedText[];
  /** False if no running davit was asked: then only machines are known that objects name. */
  readonly hasRecorded: boolean;
}

/** True if a Group or what a machine gets differs. */
export function hasDifferences({ comparison }: Pick<DiffReport, "comparison">): boolean {
  return comparison.groups.length > 0 || comparison.changedCount > 0;
}

export function machinesText(count: number): string {
  return count === 1 ? "1 machine" : `${count} machines`;
}

/** One sentence for everything. */
export function summaryText({ comparison }: Pick<DiffReport, "comparison">): string {
  const { groups, machineCount, changedCount, endangeredCount, isCutShort } = comparison;
  if (!hasDifferences({ comparison })) return `no differences for ${machinesText(machineCount)}`;
  const of = `${changedCount} of ${machineCount} known machines get something else`;
  const danger = endangeredCount === 0 ? "" : `, ${endangeredCount} of them something more destructive`;
  const worse = groups.filter(({ isMoreDestructive }) => isMoreDestructive).length;
  const marked = worse === 0 ? "" : ` (${worse} more destructive)`;
  const cut = isCutShort ? "; not all Groups were compared with those that install" : "";
  return `${groups.length === 1 ? "1 Group differs" : `${groups.length} Groups differ`}${marked}, ${of}${danger}${cut}`;
}

/** What happens to machines, from the view of the Group that the report lists them under. */
export function changeText(change: ChangedMachines): string {
  const { before, after, machines, sample } = change;
  const who = sample === undefined ? machinesText(machines.length) : `a made-up machine with ${sample}`;
  const parts = [profileText(before, after), effectText(before, after), grantsText(before, after)];
  const details = parts.filter((part) => part !== "").join(", ");
  return `${movement(before, after, who)}${details === "" ? "" : `: ${details}`}`;
}

function movement(before: BootOutcome, after: BootOutcome, who: string): string {
  if (before.group === undefined) return `gains ${who} from no Group`;
  if (after.group === undefined) return `loses ${who} to no Group`;
  if (before.group !== after.group) return `gains ${who} from Group ${before.group}`;
  return before.profile === after.profile ? `keeps ${who}` : `gives another Profile to ${who}`;
}

function profileText(before: BootOutcome, after: BootOutcome): string {
  if (before.profile === after.profile) return "";
  return `Profile ${before.profile ?? "none"} -> ${after.profile ?? "none"}`;
}

/** The effect on the disks of a machine, before and after; empty if it stays. */
function effectText(before: BootOutcome, after: BootOutcome): string {
  const [was, is] = [effectOf(before), effectOf(after)];
  return was === is ? "" : `${was} -> ${is}`;
}

/** What a machine does, or why it gets nothing. */
export function effectOf({ risk, refusal }: BootOutcome): string {
  return refusal === undefined ? risk : `refused (${bootRefusals[refusal].words})`;
}

function grantsText({ grants: was }: BootOutcome, { grants: is }: BootOutcome): string {
  const opened = is.filter((grant) => !was.includes(grant));
  return opened.length === 0 ? "" : `opens ${opened.join(" and ")}`;
}

export function fieldText({ before = "none", after = "none" }: ChangedField): string {
  return before === after ? before : `${before} -> ${after}`;
}

const manyPairs =
  "many Groups have another selector or priority, so davit did not compare each with every Group that installs: a " +
  "machine that davit does not know may get a more destructive boot than shown";

/** What the reader must know besides the differences, one sentence each. */
export function notesOf({ unready, unchecked, comparison, hasRecorded }: DiffReport): readonly string[] {
  const { uncertainCount, isCutShort } = comparison;
  const recorded = hasRecorded
    ? []
    : ["only machines are known that Machine objects or Groups name: compare with a running davit to know more"];
  const uncertain =
    uncertainCount === 0
      ? []
      : [
          `${machinesText(uncertainCount)} last got another Group than by the labels that davit has recorded: ` +
            "they may send more labels, and get something else than shown",
        ];
  return [
    ...unready.map(({ object, reason, message }) => `${object} is not ready: ${reason}: ${message}`),
    ...unchecked.map(uncheckedText),
    ...uncertain,
    ...(isCutShort ? [manyPairs] : []),
    ...recorded,
  ];
}

function uncheckedText({ why, field, holder, isAsNow }: UncheckedText): string {
  const effect = isAsNow ? "its text is taken as unchanged" : "its text is not compared";
  const reason = why === "absent" ? "is not among the manifests" : "is encrypted in what davit has";
  return `${field}: ${holder} ${reason}: ${effect}`;
}

/** Returns the whole report, with the name of every machine. */
export function jsonReport(report: DiffReport): object {
  const { before, after, comparison, unready, unchecked } = report;
  const { groups, machineCount, changedCount, endangeredCount, uncertainCount } = comparison;
  return {
    before,
    after,
    differs: hasDifferences(report),
    machines: {
      known: machineCount,
      changed: changedCount,
      moreDestructive: endangeredCount,
      uncertain: uncertainCount,
    },
    groups: groups.map(groupJson),
    notes: notesOf(report),
    notReady: unready,
    notCompared: unchecked.map(({ why, field, holder, isAsNow }) => ({
      field,
      holder,
      reason: why,
      takenAsUnchanged: isAsNow,
    })),
  };
}

function groupJson({ group, kind, isMoreDestructive, fields, changes, losses }: ChangedGroup): object {
  return {
    group,
    kind,
    moreDestructive: isMoreDestructive,
    fields,
    changes: changes.map(changeJson),
    losses: [...losses].map(([to, count]) => ({ to, machines: count })),
  };
}

function changeJson({ machines, sample, before, after, texts, ...change }: ChangedMachines): object {
  return {
    machines,
    sample,
    moreDestructive: change.isMoreDestructive,
    before: outcomeJson(before),
    after: outcomeJson(after),
    profileFields: change.profileFields,
    configs: texts,
  };
}

function outcomeJson({ group, profile, risk, refusal, grants }: BootOutcome): object {
  return {
    group,
    profile,
    effect: risk,
    refused: refusal && { reason: refusal, words: bootRefusals[refusal].words },
    grants: grants.length === 0 ? undefined : grants,
  };
}

/** Returns a text with a style of the terminal, or as it is. */
type Style = (style: "red" | "green" | "bold", text: string) => string;

/** More names are only counted. */
const shownNames = 10;

/** Yields the report, Group by Group. */
export function* textReport(report: DiffReport, style: Style): Iterable<string> {
  yield `before  ${visible(report.before)}\nafter   ${visible(report.after)}\n`;
  for (const group of report.comparison.groups) yield `\n${groupText(group, style)}`;
  const notes = notesOf(report);
  if (notes.length > 0) yield `\n${notes.map((note) => `note: ${visible(note)}\n`).join("")}`;
  yield `\n${summaryText(report)}\n`;
}

const kindTexts = { added: " is new", removed: " is removed", changed: "" } as const;

function groupText({ group, kind, isMoreDestructive, fields, changes, losses }: ChangedGroup, style: Style): string {
  const title = visible(`Group ${group}${kindTexts[kind]}`);
  const head = isMoreDestructive ? style("red", `!! ${title}: more destructive`) : style("bold", title);
  const fieldLines = fields.map((field) => `   ${fieldLine(field)}\n`);
  const lossLines = [...losses].map(([to, count]) => `   loses ${machinesText(count)} to Group ${visible(to)}\n`);
  return [`${head}\n`, ...fieldLines, ...lossLines, ...changes.map((change) => changeLines(change, style))].join("");
}

function fieldLine(field: ChangedField): string {
  const note = field.note === undefined ? "" : ` (${field.note})`;
  return visible(`${field.field}: ${fieldText(field)}${note}`);
}

function changeLines(change: ChangedMachines, style: Style): string {
  const { machines, texts, isMoreDestructive, sample, profileFields } = change;
  const line = `${isMoreDestructive ? "!! " : "   "}${visible(changeText(change))}`;
  const [first = sample ?? ""] = machines;
  return [
    `${isMoreDestructive ? style("red", line) : line}\n`,
    ...(machines.length === 0 ? [] : [`      ${visible(namesText(machines))}\n`]),
    ...profileFields.map((field) => `      ${fieldLine(field)}\n`),
    ...texts.map((text) => textLines(text, first, style)),
  ].join("");
}

/** Names the first machines, and counts the others. */
export function namesText(names: readonly string[]): string {
  const more = names.length - shownNames;
  return `${names.slice(0, shownNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function textLines({ endpoint, change, note, diff }: ChangedText, machine: string, style: Style): string {
  const head = visible(`      /${endpoint} is ${change}, for ${machine}`);
  if (diff === undefined) return `${head}: ${visible(note ?? "")}\n`;
  const lines = diff.trimEnd().split("\n");
  return `${head}\n${lines.map((line) => `        ${styled(line, style)}\n`).join("")}`;
}

function styled(line: string, style: Style): string {
  if (line.startsWith("+")) return style("green", line);
  return line.startsWith("-") ? style("red", line) : line;
}

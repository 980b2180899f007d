/** What machines come to by what davit has for them, or by what happens to it: a table of docs/reference/firmware.md. */

import type { Firmware } from "../../tools/firmware/machine.ts";
import { readTable, updateTable } from "./page-table.ts";

/** A firmware with its boot loader: a column. */
export type Kind = keyof typeof kinds;

/** What a machine meets: a row, with the columns in which a suite has it. */
export interface Situation {
  readonly title: string;
  readonly kinds: readonly Kind[];
}

export interface Outcome {
  readonly result: string;
  /** From power on to power off. */
  readonly seconds: number;
}

export const kinds = {
  biosIpxe: { title: "BIOS, iPXE", firmware: "bios" },
  uefiIpxe: { title: "UEFI, iPXE", firmware: "uefi" },
  biosGrub: { title: "BIOS, GRUB", firmware: "bios" },
  uefiGrub: { title: "UEFI, GRUB", firmware: "uefi" },
} as const satisfies Record<string, { readonly title: string; readonly firmware: Firmware }>;

const every = ["biosIpxe", "uefiIpxe", "biosGrub", "uefiGrub"] as const;

/** Every situation that a suite has, in the order of the table. */
export const situations = {
  exit: { title: "`local: exit`", kinds: every },
  sanboot: { title: "`local: sanboot`", kinds: every },
  notFound: { title: "`local: notFound`", kinds: every },
  unknown: { title: "no Group", kinds: every },
  odd: { title: "blanks, quotes and `&` in serial number and name", kinds: ["biosIpxe", "biosGrub"] },
  ignition: { title: "Ignition in the initrd", kinds: ["biosIpxe"] },
  story: { title: "a held Group, two crashes of davit, a time without objects", kinds: ["biosIpxe"] },
  notReady: { title: "davit starts, and waits for its objects", kinds: ["biosIpxe"] },
  broken: { title: "davit ends in the middle of the kernel", kinds: ["biosIpxe"] },
  patient: { title: "the same, by the script that asks again", kinds: ["biosIpxe"] },
} as const satisfies Record<string, Situation>;

const known: readonly Situation[] = Object.values(situations);
const columns = Object.values(kinds).map(({ title }) => title);

/**
 * Puts an outcome into the table, in the place of the last one; rows of situations that no suite has any more go.
 * @throws {Error} when `situations` does not have it.
 */
export function recordOutcome(situation: Situation, kind: Kind, { result, seconds }: Outcome): void {
  const { title } = situation;
  if (!known.some((it) => it.title === title && it.kinds.includes(kind))) {
    throw new Error(`Not in the table of outcomes: ${title} on ${kinds[kind].title}`);
  }
  updateTable("outcomes", ["what a machine meets", ...columns], (rows) => {
    const cells = cellsOf(rows).set(key(title, kinds[kind].title), `${result} (${seconds.toFixed(1)} s)`);
    return known.map((it) => [it.title, ...columns.map((column) => cells.get(key(it.title, column)) ?? "")]);
  });
}

/** What the page has a result for, and what a suite has, in the same words. */
export function keysOfOutcomes(): { readonly shown: readonly string[]; readonly booted: readonly string[] } {
  const booted = known.flatMap((it) => it.kinds.map((kind) => key(it.title, kinds[kind].title)));
  return { shown: [...cellsOf(readTable("outcomes")).keys()], booted };
}

function cellsOf(rows: readonly (readonly string[])[]): Map<string, string> {
  const cells = rows.flatMap(([title = "", ...results]) =>
    columns.map((column, index) => [key(title, column), results[index] ?? ""] as const),
  );
  return new Map(cells.filter(([, result]) => result !== ""));
}

function key(title: string, column: string): string {
  return `${title} on ${column}`;
}

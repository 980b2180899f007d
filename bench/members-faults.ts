/**
 * `npm run bench:members-faults`: three davits on three members of etcd lose one after the other of what they need. Two
 * writers and a machine ask each of them without a pause. For each fault: the longest time in which a davit took no
 * write, and how many writes and boots failed. Words after the command choose the faults whose names have one of them.
 */

import { cpus } from "node:os";
import { type DavitMembers, withDavits } from "./davit-members.ts";
import { type MembersFault, membersFaults } from "./members-fault-kinds.ts";
import { load, print } from "./report.ts";

/** What the clients of one davit have seen. */
interface Seen {
  /** Ends of writes that were taken, in milliseconds. */
  readonly takenAtMs: number[];
  readonly refused: string[];
  boots: number;
  readonly failedBoots: string[];
}

const writersPerDavit = 2;
// More than the seven seconds after which davit gives up a write.
const limitMs = 15_000;
const settleMs = 4_000;

await main();

async function main(): Promise<void> {
  print(`${cpus().length} x ${cpus()[0]?.model}; Node ${process.version}; ${load()}\n`);
  print("| | longest gap of writes, ms | writes | refused | boots | failed | |\n|---|---|---|---|---|---|---|");
  const words = process.argv.slice(2);
  const chosen = membersFaults.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  for (const fault of chosen) await withDavits(3, (members) => measure(members, fault), fault.options);
  print(`\n${load()}`);
}

async function measure(members: DavitMembers, { name, run }: MembersFault): Promise<void> {
  const over = new AbortController();
  const lost = new Set<number>();
  const seen = members.all.map((): Seen => ({ takenAtMs: [], refused: [], boots: 0, failedBoots: [] }));
  const clients = seen.flatMap((each, number) => [
    ...Array.from({ length: writersPerDavit }, (_, writer) => writeAll(members, { number, writer }, each, over.signal)),
    bootAll(members, number, each, over.signal),
  ]);
  await pause(settleMs);
  const note = await run(members, (number) => lost.add(number));
  await pause(settleMs);
  over.abort();
  await Promise.all(clients);
  const others = seen.filter((_, number) => !lost.has(number));
  const gaps = others.map(({ takenAtMs }) => Math.round(longestGap(takenAtMs)));
  const sum = (count: (each: Seen) => number) => others.reduce((total, each) => total + count(each), 0);
  const notes = [note, ...countsOf(others.flatMap(({ refused, failedBoots }) => [...refused, ...failedBoots]))];
  const cells = [name, gaps.join(", "), sum(({ takenAtMs }) => takenAtMs.length), sum(({ refused }) => refused.length)];
  const boots = [sum((each) => each.boots), sum(({ failedBoots }) => failedBoots.length)];
  print(`| ${[...cells, ...boots, notes.filter((text) => text !== "").join("; ")].join(" | ")} |`);
}

interface Writer {
  readonly number: number;
  readonly writer: number;
}

async function writeAll(members: DavitMembers, { number, writer }: Writer, seen: Seen, over: AbortSignal) {
  while (!over.aborted) {
    const body = new URLSearchParams({ value: "x".repeat(100) });
    const answer = await ask(members.all[number]?.storeUrl, {
      path: `/v2/keys/w${number}/${writer}`,
      method: "PUT",
      body,
    });
    if (over.aborted) return;
    if (answer === "200" || answer === "201") seen.takenAtMs.push(performance.now());
    else seen.refused.push(`write: ${answer}`);
    await pause(10);
  }
}

async function bootAll(members: DavitMembers, number: number, seen: Seen, over: AbortSignal) {
  while (!over.aborted) {
    const answer = await ask(members.all[number]?.bootUrl, { path: "/ipxe?mac=52:54:00:12:34:56" });
    if (over.aborted) return;
    seen.boots += 1;
    if (answer !== "200") seen.failedBoots.push(`boot: ${answer}`);
    await pause(10);
  }
}

/** The status of an answer, or why there is none. */
async function ask(
  base: string | undefined,
  { path, ...init }: RequestInit & { readonly path: string },
): Promise<string> {
  try {
    const response = await fetch(new URL(path, base), { ...init, signal: AbortSignal.timeout(limitMs) });
    await response.text();
    return String(response.status);
  } catch (error) {
    return error instanceof Error ? error.name : "failed";
  }
}

function longestGap(times: readonly number[]): number {
  return Math.max(...times.slice(1).map((time, at) => time - (times[at] ?? time)));
}

function countsOf(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].map((text) => `${texts.filter((each) => each === text).length} x ${text}`);
}

async function pause(durationMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
}

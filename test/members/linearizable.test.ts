/**
 * Clients of three stores on three etcds read with quorum, put, compare and delete a few keys, while answers are lost
 * and etcds stand still or are killed. porcupine decides whether one order of all requests explains every answer. Three
 * ways to be wrong are tried, too: each must be found.
 */

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Store } from "../../src/store/store.ts";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import { type AnswerCutter, startAnswerCutter } from "../helpers/answer-cutter.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { missing } from "../helpers/requirements.ts";
import { openEtcdLog } from "./drivers.ts";

/** A request as the checker reads it (tools/build/linearizable/main.go). */
interface HistoryLine {
  readonly client: number;
  readonly kind: "get" | "put" | "cas" | "delete";
  readonly key: string;
  readonly value?: string;
  readonly prev?: string;
  readonly outcome: "ok" | "compareFailed" | "notFound" | "unknown";
  readonly got?: string;
  readonly start: number;
  readonly end: number;
}

/** What makes a client of these tests wrong on purpose. */
type Mutant = "none" | "localReads" | "repeatedWrites" | "lostWrite";

const keys = ["/a", "/b"];
const clientsPerStore = 3;
// Without the variable these tests are skipped: `make test-members` sets it.
const rounds = Number(process.env.DAVIT_TEST_ROUNDS ?? 0);
const limitMs = 300_000;
// Shorter than the faults.
const impatientMs = 300;

let etcd: EtcdMembers;
let cutters: readonly AnswerCutter[];
let stores: readonly Store[] = [];

beforeEach(async () => {
  etcd = await startEtcdV3({ count: 3 });
  cutters = await Promise.all(etcd.urls.map((url) => startAnswerCutter(url)));
}, limitMs);

afterEach(async () => {
  await Promise.all(stores.map((store) => store.stop()));
  await Promise.all(cutters.map((cutter) => cutter.stop()));
  await etcd.stop();
}, limitMs);

/** Each store prefers another etcd, and reaches all of them by the cutters. */
async function openStore(member: number, withinMs: number): Promise<Store> {
  const endpoints = cutters.map((_, at) => cutters[(at + member) % cutters.length]?.url ?? new URL("http://none"));
  for (;;) {
    try {
      const log = await openEtcdLog({ endpoints, prefix: "/davit/", tryMs: 500, withinMs }, member);
      return await Store.open({ log, clock: systemClock, snapshotInterval: { records: 500, bytes: 1e9 } });
    } catch (error) {
      // An impatient store may find a busy computer too slow to open.
      if (!(error instanceof WalError)) throw error;
    }
  }
}

function verdictOf(history: readonly HistoryLine[]): string {
  const input = history.map((line) => JSON.stringify(line)).join("\n");
  return execFileSync(chartToolPath("linearizable"), { input, encoding: "utf8" }).trim();
}

const micros = () => Math.round(performance.now() * 1_000);

/** One client: it makes requests one after the other until `isOver`. */
async function run(client: number, history: HistoryLine[], options: RunOptions): Promise<void> {
  const { mutant, isOver, pick } = options;
  const store = stores[client % stores.length];
  if (store === undefined) throw new Error("no store");
  for (let number = 0; !isOver(); number++) {
    const key = keys[pick(keys.length)] ?? "/a";
    const value = `${client}-${number}`;
    const kind = (["get", "get", "put", "cas", "delete"] as const)[pick(pick(4) === 0 ? 5 : 4)] ?? "get";
    const line = await one(store, client, { kind, key, value, mutant });
    if (line === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    else history.push(line);
  }
}

/** Makes one request. */
async function one(store: Store, client: number, asked: Omit<KeyRequest, "prev">): Promise<HistoryLine | undefined> {
  const { kind, key, value } = asked;
  const prev = kind === "cas" ? (valueAt(store, key) ?? "none") : undefined;
  const start = micros();
  const answer = await request(store, { ...asked, prev });
  if (answer === undefined) return undefined;
  return { client, kind, key, value, ...(prev !== undefined && { prev }), ...answer, start, end: micros() };
}

interface RunOptions {
  readonly mutant: Mutant;
  readonly isOver: () => boolean;
  readonly pick: (below: number) => number;
}

interface KeyRequest {
  readonly kind: HistoryLine["kind"];
  readonly key: string;
  readonly value: string;
  readonly prev: string | undefined;
  readonly mutant: Mutant;
}

type KeyAnswer = Pick<HistoryLine, "outcome" | "got">;

/** Undefined for a read without an answer, and for a write that certainly was not made: they say nothing. */
async function request(store: Store, asked: KeyRequest): Promise<KeyAnswer | undefined> {
  try {
    if (asked.kind === "get") return await read(store, asked);
    await write(store, asked);
    return { outcome: "ok" };
  } catch (error) {
    if (asked.kind === "get") return undefined;
    if (!(error instanceof StoreError)) throw error;
    // The mutant takes a write without an answer for one that was not made, and makes it again.
    if (asked.mutant === "repeatedWrites" && isOpen(error)) return await request(store, asked);
    return answerOf(error);
  }
}

function isOpen({ message }: StoreError): boolean {
  return message.includes("may be there");
}

function answerOf(error: StoreError): KeyAnswer | undefined {
  if (error.refusal === "compareFailed") return { outcome: "compareFailed" };
  if (error.refusal === "keyNotFound") return { outcome: "notFound" };
  return isOpen(error) ? { outcome: "unknown" } : undefined;
}

async function read(store: Store, { key, mutant }: KeyRequest): Promise<KeyAnswer> {
  if (mutant !== "localReads") await store.membership.barrier();
  const got = valueAt(store, key);
  return got === undefined ? { outcome: "notFound" } : { outcome: "ok", got };
}

async function write(store: Store, { kind, key, value, prev = "", mutant }: KeyRequest): Promise<void> {
  const path = storePath(key);
  if (mutant === "lostWrite" && kind === "put" && randomInt(20) === 0) return;
  if (kind === "put") await store.submit({ kind: "set", path, value });
  if (kind === "cas") await store.submit({ kind: "compareAndSwap", path, value, expected: { value: prev } });
  if (kind === "delete") await store.submit({ kind: "delete", path });
}

function valueAt(store: Store, key: string): string | undefined {
  return store.getFile(storePath(key))?.value;
}

/** Faults, one after the other. */
async function faults(pick: (below: number) => number): Promise<void> {
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let round = 0; round < rounds; round++) {
    const at = pick(3);
    const member = etcd.all[at];
    const cutter = cutters[at];
    switch (pick(4)) {
      case 0:
        await member?.kill();
        await pause(500 + pick(1_500));
        await member?.start();
        break;
      case 1:
        member?.pause();
        await pause(500 + pick(2_000));
        member?.resume();
        break;
      default:
        // What is written meanwhile is in etcd, and its writer does not learn it.
        cutter?.hold();
        await pause(200 + pick(500));
        cutter?.cut();
    }
    await pause(200 + pick(600));
  }
}

/** @param withinMs after this time a store gives up a write; its outcome is then unknown. */
async function historyOf(mutant: Mutant, seed: number, withinMs = 7_000): Promise<readonly HistoryLine[]> {
  stores = await Promise.all([1, 2, 3].map((member) => openStore(member, withinMs)));
  const pick = seededPick(seed);
  const history: HistoryLine[] = [];
  let isOver = false;
  const clients = Array.from({ length: clientsPerStore * stores.length }, (_, client) =>
    run(client, history, { mutant, isOver: () => isOver, pick: seededPick(seed + client) }),
  );
  await faults(pick);
  isOver = true;
  await Promise.all(clients);
  return history;
}

/** Chance decides whether a mutant's history is wrong: the first of five that is. */
async function firstWrong(mutant: Mutant, withinMs?: number): Promise<string> {
  let verdict = "";
  for (let seed = 1; seed <= 5 && !verdict.startsWith("Illegal"); seed++) {
    verdict = verdictOf(await historyOf(mutant, seed, withinMs));
    await Promise.all(stores.map((store) => store.stop()));
  }
  return verdict;
}

const isSkipped = rounds === 0 || missing("etcd", "linearizable");

describe.skipIf(isSkipped)("three stores on three etcds (make test-members)", { timeout: limitMs }, () => {
  it("are linearizable, and equal in the end", async () => {
    const seed = Number(process.env.DAVIT_TEST_SEED ?? randomInt(2 ** 31));
    const history = await historyOf("none", seed);
    console.log(
      `seed ${seed}: ${history.length} requests, ${history.filter(({ outcome }) => outcome === "unknown").length} unknown`,
    );
    expect(verdictOf(history)).toBe("Ok");
    await Promise.all(stores.map((store) => store.membership.barrier()));
    const dumps = stores.map((store) => JSON.stringify([[...store.dump()], store.events, store.indexes]));
    expect(new Set(dumps).size).toBe(1);
  });

  it("are linearizable where the outcome of many writes is unknown", async () => {
    const history = await historyOf("none", 11, impatientMs);
    expect(history.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
    expect(verdictOf(history)).toBe("Ok");
  });

  it.each(["localReads", "lostWrite"] as const)("are found wrong with %s", async (mutant) => {
    expect(await firstWrong(mutant)).toMatch(/^Illegal/);
  });

  it("are found wrong with repeatedWrites", async () => {
    expect(await firstWrong("repeatedWrites", impatientMs)).toMatch(/^Illegal/);
  });
});

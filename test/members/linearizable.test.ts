/**
 * Clients of three stores on three etcds read with quorum, put, compare and delete a few keys, and fill a queue. The
 * leader changes a key as davit's controller does. Meanwhile etcds stand still or are killed, answers and events are lost, and a leader is
 * cut off. porcupine decides whether one order of all requests explains every answer. Ways to be wrong are tried, too:
 * each must be found.
 */

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { missing } from "../helpers/requirements.ts";
import { openStoreMember, type StoreMember, set, stateOf } from "./members.ts";

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

/** A value for the queue. Its key is the index of the write, so the order of all of them is known. */
interface Post {
  readonly value: string;
  /** Undefined if the outcome is unknown. */
  readonly path?: string;
  readonly start: number;
  readonly end: number;
}

/** What makes these tests' clients wrong on purpose. */
type Mutant = "none" | "localReads" | "repeatedWrites" | "lostWrite" | "unfenced";

const faultKinds = ["kill", "pause", "noQuorum", "lostAnswers", "lostEvents", "isolatedLeader"] as const;
type FaultKind = (typeof faultKinds)[number];

interface HistoryOptions {
  readonly seed: number;
  readonly mutant?: Mutant;
  readonly faults?: readonly FaultKind[];
  /** After this time a store gives up a write; its outcome is then unknown. */
  readonly withinMs?: number;
}

const keys = ["/a", "/b"];
const leadersKey = "/davit/c";
const queue = storePath("/queue");
const clientsPerStore = 3;
// `make test-members` makes longer histories, and tries the mutants.
const isLong = process.env.DAVIT_TEST_ROUNDS !== undefined;
const rounds = Number(process.env.DAVIT_TEST_ROUNDS ?? 4);
const limitMs = 300_000;
// Shorter than the faults.
const impatientMs = 300;

let etcd: EtcdMembers;
let members: readonly StoreMember[] = [];
let areEventsLost = false;
/** Why writes were refused that were certainly not made. */
let refusals: string[] = [];
let posts: Post[] = [];

beforeEach(async () => {
  etcd = await startEtcdV3({ count: 3 });
  const { watch } = EtcdClient.prototype;
  // A proxy cannot do that: the events of a stream are compressed together.
  vi.spyOn(EtcdClient.prototype, "watch").mockImplementation(async function* (this: EtcdClient, ...args) {
    for await (const part of watch.apply(this, args)) {
      const isKept = ({ key: { key } }: { readonly key: { readonly key: string } }) =>
        !areEventsLost || !key.includes("/l/") || randomInt(3) > 0;
      yield { ...part, events: part.events.filter(isKept) };
    }
  });
}, limitMs);

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(members.map((member) => member.stop()));
  await etcd.stop();
}, limitMs);

/** Each store prefers another etcd, and reaches all of them by proxies of its own. */
async function openMember(member: number, withinMs: number): Promise<StoreMember> {
  const endpoints = etcd.urls.map((_, at) => etcd.urls[(at + member) % etcd.urls.length] ?? new URL("http://none"));
  const snapshotInterval = { records: 500, bytes: 1e9 };
  for (;;) {
    try {
      return await openStoreMember(`m${member}`, {
        ...{ endpoints, prefix: "/davit/", snapshotInterval },
        ...{ tryMs: 500, withinMs },
      });
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
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface RunOptions {
  readonly client: number;
  readonly store: Store;
  readonly history: HistoryLine[];
  readonly mutant: Mutant;
  readonly isOver: () => boolean;
  readonly pick: (below: number) => number;
}

/** One client: it makes requests one after the other. */
async function run({ client, store, history, mutant, isOver, pick }: RunOptions): Promise<void> {
  for (let number = 0; !isOver(); number++) {
    const key = keys[pick(keys.length)] ?? "/a";
    const value = `${client}-${number}`;
    const kind = (["get", "get", "put", "cas", "delete"] as const)[pick(pick(4) === 0 ? 5 : 4)] ?? "get";
    const prev = kind === "cas" ? (valueAt(store, key) ?? "none") : undefined;
    const start = micros();
    const answer = await request(store, { kind, key, value, prev, mutant });
    if (answer === undefined) await pause(10);
    else
      history.push({ client, kind, key, value, ...(prev !== undefined && { prev }), ...answer, start, end: micros() });
  }
}

/** One client: it fills the queue. */
async function fill({ client, store, isOver }: RunOptions): Promise<void> {
  for (let number = 0; !isOver(); number++) {
    await post(store, `${client}-${number}`);
    await pause(20);
  }
}

async function post(store: Store, value: string): Promise<void> {
  const start = micros();
  try {
    const { event } = await store.submit({ kind: "createInOrder", path: queue, value });
    posts.push({ value, path: event.node.path, start, end: micros() });
  } catch (error) {
    if (answerOf(error) !== undefined) posts.push({ value, start, end: micros() });
  }
}

/** Each value once, if it was acknowledged, and no later than one whose request began after its answer. */
function expectQueue(store: Store): void {
  const found = [...store.dump()].filter(({ path }) => path.startsWith(`${queue}/`));
  const paths = new Map(found.map(({ path, value }) => [value, path]));
  expect(paths.size).toBe(found.length);
  const known = posts.filter(({ path }) => path !== undefined);
  for (const { value, path } of known) expect(paths.get(value)).toBe(path);
  const sent = new Set(posts.map(({ value }) => value));
  expect(found.filter(({ value = "" }) => !sent.has(value))).toEqual([]);
  const late = known.filter(({ path = "", start }) => known.some((one) => one.end < start && path < (one.path ?? "")));
  expect(late).toEqual([]);
}

/** Dumps, histories and indexes of all stores are the same. */
async function expectEqual(): Promise<void> {
  await Promise.all(members.map(({ store }) => store.catchUp()));
  for (const { store } of members) {
    expect(stateOf(store)).toBe(stateOf(members[0]?.store ?? store));
    expectQueue(store);
  }
}

/**
 * The controller of one store: while the store leads, it changes a key by what it knows, without a comparison. The
 * history has that as one, because no other member may change the key meanwhile.
 */
async function control({ client, store, history, mutant, isOver }: RunOptions): Promise<void> {
  let isLeading = false;
  store.onLeadership((isIt) => {
    isLeading = isIt;
  });
  for (let number = 0; !isOver(); number++) {
    await pause(20);
    if (!isLeading) continue;
    const value = `${client}-${number}`;
    const prev = valueAt(store, leadersKey) ?? "";
    const start = micros();
    const write = set(leadersKey, value);
    const command = mutant === "unfenced" ? write : ({ kind: "batch", commands: [write] } as const);
    const answer = await store.submit(command).then(() => ({ outcome: "ok" }) as const, answerOf);
    if (answer === undefined) continue;
    history.push({ client, kind: "cas", key: leadersKey, value, prev, ...answer, start, end: micros() });
    // The write may take effect later: only the next term knows what is there.
    if (answer.outcome === "unknown") isLeading = false;
  }
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
    // The mutant takes a write without an answer for one that was not made, and makes it again.
    if (asked.mutant === "repeatedWrites" && isOpen(error)) return await request(store, asked);
    return answerOf(error);
  }
}

function isOpen(error: unknown): boolean {
  return error instanceof StoreError && error.message.includes("may be there");
}

function answerOf(error: unknown): KeyAnswer | undefined {
  if (!(error instanceof StoreError)) throw error;
  if (error.refusal === "compareFailed") return { outcome: "compareFailed" };
  if (error.refusal === "keyNotFound") return { outcome: "notFound" };
  if (isOpen(error)) return { outcome: "unknown" };
  refusals.push(error.message);
  return undefined;
}

async function read(store: Store, { key, mutant }: KeyRequest): Promise<KeyAnswer> {
  if (mutant !== "localReads") await store.catchUp();
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

type Picker = (below: number) => number;

/** What each fault does, from its begin to its end. */
const faults: Readonly<Record<FaultKind, (pick: Picker) => Promise<void>>> = {
  kill: async (pick) => {
    const member = etcd.all[pick(3)];
    await member?.kill();
    await pause(500 + pick(1_500));
    await member?.start();
  },
  pause: async (pick) => {
    const member = etcd.all[pick(3)];
    member?.pause();
    await pause(500 + pick(2_000));
    member?.resume();
  },
  noQuorum: async (pick) => {
    const running = pick(3);
    const paused = etcd.all.filter((_, at) => at !== running);
    for (const member of paused) member.pause();
    await pause(500 + pick(2_500));
    for (const member of paused) member.resume();
  },
  // What is written meanwhile is in etcd, and its writer does not learn it.
  lostAnswers: async (pick) => {
    const at = pick(3);
    const proxies = members.flatMap((member) => member.proxies[at] ?? []);
    for (const proxy of proxies) proxy.holdAnswers();
    await pause(200 + pick(500));
    for (const proxy of proxies) proxy.cut();
    for (const proxy of proxies) proxy.mend();
  },
  lostEvents: async (pick) => {
    areEventsLost = true;
    await pause(500 + pick(1_000));
    areEventsLost = false;
  },
  // Longer than its lease.
  isolatedLeader: async (pick) => {
    const leader = members.find(({ store }) => store.membership.isLeader);
    for (const proxy of leader?.proxies ?? []) proxy.cut();
    await pause(3_000 + pick(2_000));
    for (const proxy of leader?.proxies ?? []) proxy.mend();
  },
};

async function historyOf(options: HistoryOptions): Promise<readonly HistoryLine[]> {
  const { seed, mutant = "none", faults: kinds = faultKinds, withinMs = 7_000 } = options;
  members = await Promise.all([1, 2, 3].map((member) => openMember(member, withinMs)));
  refusals = [];
  posts = [];
  const start = micros();
  await members[0]?.store.submit(set(leadersKey, "first"));
  const client = -1;
  const history: HistoryLine[] = [
    { client, kind: "put", key: leadersKey, value: "first", outcome: "ok", start, end: micros() },
  ];
  let isOver = false;
  const runs = members.flatMap(({ store }, member) =>
    [...Array.from({ length: clientsPerStore }, () => run), control, fill].map((work, number) => {
      const client = member * (clientsPerStore + 2) + number;
      return work({ client, store, history, mutant, isOver: () => isOver, pick: seededPick(seed + client) });
    }),
  );
  const pick = seededPick(seed);
  const first = pick(kinds.length);
  for (let round = 0; round < rounds; round++) {
    await faults[kinds[(first + round) % kinds.length] ?? "pause"](pick);
    await pause(200 + pick(600));
  }
  isOver = true;
  await Promise.all(runs);
  return history;
}

/** Chance decides whether a mutant's history is wrong: the first of five that is. */
async function firstWrong(options: Omit<HistoryOptions, "seed">): Promise<string> {
  let verdict = "";
  for (let seed = 1; seed <= 5 && !verdict.startsWith("Illegal"); seed++) {
    verdict = verdictOf(await historyOf({ ...options, seed }));
    await Promise.all(members.map((member) => member.stop()));
  }
  return verdict;
}

function counted(texts: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

const isSkipped = missing("etcd", "linearizable");

describe.skipIf(isSkipped)("three stores on three etcds", { timeout: limitMs }, () => {
  it("are linearizable, and equal in the end", async () => {
    const seed = Number(process.env.DAVIT_TEST_SEED ?? randomInt(2 ** 31));
    const history = await historyOf({ seed });
    const unknown = history.filter(({ outcome }) => outcome === "unknown").length;
    const line = `${history.length} requests, ${unknown} unknown, ${posts.length} for the queue, refused:`;
    console.log(`seed ${seed}: ${line}`, counted(refusals));
    expect(verdictOf(history)).toBe("Ok");
    await expectEqual();
  });
});

describe.skipIf(isSkipped || !isLong)("for long (make test-members)", { timeout: limitMs }, () => {
  it("are linearizable where the outcome of many writes is unknown", async () => {
    const history = await historyOf({ seed: 11, withinMs: impatientMs });
    expect(history.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
    expect(verdictOf(history)).toBe("Ok");
    await expectEqual();
  });

  it.each<Omit<HistoryOptions, "seed">>([
    { mutant: "localReads" },
    { mutant: "lostWrite" },
    { mutant: "repeatedWrites", withinMs: impatientMs, faults: ["lostAnswers", "pause"] },
    { mutant: "unfenced", faults: ["isolatedLeader"] },
  ])("are found wrong with $mutant", async (options) => {
    expect(await firstWrong(options)).toMatch(/^Illegal/);
  });
});

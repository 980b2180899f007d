/** One visitor, or somebody who guesses tokens, keeps nobody else out of the console. */

import type { IncomingMessage } from "node:http";
import { beforeEach, describe, expect, it } from "vitest";
import { SignInNeeded, sessionCookie, Visitors } from "../../../src/http/console/state/visitors.ts";
import { RequestError } from "../../../src/http/errors.ts";
import { nextTurn } from "../../../src/lib/slices.ts";
import type { CallerReview } from "../../../src/model/cluster-callers.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** More than the sessions, the reviews and the places of reviews together. */
const many = 3_000;
const knownMs = 30_000;

const people: Readonly<Record<string, CallerReview>> = {
  ada: { kind: "admitted", name: "ada" },
  bob: { kind: "admitted", name: "bob" },
  pod: { kind: "forbidden", why: "pod may not list machines." },
};

let clock: FakeClock;
/** The tokens that the API server was asked about, and how each review ends. */
let asked: Map<string, (review: CallerReview) => void>;
/** True while the API server answers nothing. */
let isSlow: boolean;
let visitors: Visitors;

beforeEach(async () => {
  clock = new FakeClock();
  await clock.advance(1);
  asked = new Map();
  isSlow = false;
  visitors = new Visitors({
    guard: {
      rightsOf: ({ authorization = "" }) =>
        authorization.startsWith("Bearer file-") ? { hasToken: true, mayChange: false } : new RequestError("noToken"),
    },
    callers: () => ({
      review: (token) => {
        const { promise, resolve } = Promise.withResolvers<CallerReview>();
        asked.set(token, resolve);
        if (!isSlow) answer(token);
        return promise;
      },
      mayPatchMachines: () => Promise.resolve(false),
      patchMachine: () => Promise.resolve(undefined),
    }),
    isPrivate: () => true,
    clientOf: ({ socket }) => socket.remoteAddress,
    clock,
  });
});

/** The API server answers: an account's tokens begin with its name. */
function answer(token: string): void {
  asked.get(token)?.(people[token.split("-")[0] ?? ""] ?? { kind: "unknown" });
}

interface Sender {
  readonly from?: string;
  readonly session?: string;
  readonly bearer?: string;
}

function request({ from = "192.0.2.1", session, bearer }: Sender): IncomingMessage {
  const cookie = session === undefined ? {} : { cookie: `${sessionCookie}=${session}` };
  const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  return { headers: { ...cookie, ...authorization }, socket: { remoteAddress: from } } as IncomingMessage;
}

async function signIn(token: string, from?: string): Promise<string> {
  return await visitors.signIn(token, request({ ...(from !== undefined && { from }) }));
}

/** Sends this many made-up tokens. @returns how each ends. */
function guess(count: number, from = "192.0.2.66"): Promise<unknown>[] {
  return Array.from({ length: count }, (_, at) => signIn(`guess-${from}-${at}`, from).catch((error: unknown) => error));
}

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
}

describe("whoever guesses tokens", () => {
  it("does not end the session of somebody whose account is checked again", async () => {
    const session = await signIn("ada-token");
    await clock.advance(knownMs + 1);
    isSlow = true;
    const guesses = guess(many);
    const ada = visitors.of(request({ session }));
    await someTurns();
    for (let round = 0; !asked.has("ada-token") || round < 2; round += 1) {
      for (const token of asked.keys()) answer(token);
      await someTurns();
      expect(round).toBeLessThan(8);
    }
    answer("ada-token");
    expect(await ada).toMatchObject({ name: "ada", hasSession: true });
    isSlow = false;
    for (const token of asked.keys()) answer(token);
    for (const end of await Promise.all(guesses)) expect(end).toBeInstanceOf(SignInNeeded);
  });

  it("keeps nobody at another address from signing in", async () => {
    isSlow = true;
    const guesses = guess(many);
    const session = signIn("ada-token");
    await someTurns();
    for (let round = 0; !asked.has("ada-token"); round += 1) {
      for (const token of asked.keys()) answer(token);
      await someTurns();
      expect(round).toBeLessThan(8);
    }
    answer("ada-token");
    isSlow = false;
    expect(await visitors.of(request({ session: await session }))).toMatchObject({ name: "ada" });
    for (const token of asked.keys()) answer(token);
    await Promise.all(guesses);
  });

  it("has few reviews at a time", async () => {
    isSlow = true;
    const guesses = guess(many);
    await someTurns();
    expect(asked.size).toBeLessThanOrEqual(4);
    const refused = new Set<unknown>();
    for (const each of guesses) void each.then((end) => refused.add(String(end)));
    await someTurns();
    expect([...refused]).toEqual(["SignInNeeded: Too many tokens are checked now: try again."]);
    isSlow = false;
    for (const token of asked.keys()) answer(token);
    await Promise.all(guesses);
  });

  it("makes davit forget no account that it knows", async () => {
    await visitors.of(request({ bearer: "ada-token" }));
    asked.clear();
    for (let at = 0; at < many; at += 1) await guess(1, `192.0.2.${at % 250}`)[0];
    for (let at = 0; at < many; at += 1) await signIn(`guess-${at}`).catch(() => undefined);
    asked.clear();
    await visitors.of(request({ bearer: "ada-token" }));
    expect([...asked.keys()]).toEqual([]);
  });
});

describe("a reader with many sessions", () => {
  it.each([
    ["by one token of a file", () => "file-reader"],
    ["by one Kubernetes token", () => "bob-token"],
    ["by many tokens of one account", (at: number) => `bob-token-${at}`],
  ])("%s ends only older ones of its own", async (_by, tokenAt) => {
    const [ada, other] = [await signIn("ada-token"), await signIn("file-other")];
    const first = await signIn(tokenAt(0));
    let last = "";
    for (let at = 1; at < many; at += 1) last = await signIn(tokenAt(at));
    expect(await visitors.of(request({ session: ada }))).toMatchObject({ name: "ada", hasSession: true });
    expect(await visitors.of(request({ session: other }))).toMatchObject({ hasSession: true });
    expect(await visitors.of(request({ session: last }))).toMatchObject({ hasSession: true });
    await expect(visitors.of(request({ session: first }))).rejects.toThrow(SignInNeeded);
  });

  it("leaves room for newcomers, who keep their sessions", async () => {
    for (let at = 0; at < many; at += 1) await signIn("file-reader");
    const ada = await signIn("ada-token");
    for (let at = 0; at < many; at += 1) await signIn("file-reader");
    expect(await visitors.of(request({ session: ada }))).toMatchObject({ name: "ada", hasSession: true });
  });

  it("that has ended them, or let them expire, has as many again", async () => {
    for (let at = 0; at < many; at += 1) {
      const session = await signIn("file-reader");
      visitors.signOut(request({ session }));
    }
    const ada = await signIn("ada-token");
    await clock.advance(12 * 60 * 60_000 + 1);
    await expect(visitors.of(request({ session: ada }))).rejects.toThrow(SignInNeeded);
    const sessions: string[] = [];
    for (let at = 0; at < 1_000; at += 1) sessions.push(await signIn("file-reader"));
    for (const session of sessions) await visitors.of(request({ session }));
  });
});

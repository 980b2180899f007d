/**
 * Every story of `keys/` against davit over a socket, alone and as one of three members, and against etcd 3.4, so that
 * no expectation is invented. `make test-members` tells them to each of the three.
 */

import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDavitMembers } from "../helpers/davit-members.ts";
import { emptiedIndex } from "../helpers/emptied-index.ts";
import { startDavitKeys, startEtcd, type TestServer } from "../helpers/keys-servers.ts";
import { agentFor, type BegunAnswer, type RawAnswer, sendRaw } from "../helpers/raw-request.ts";
import { missing } from "../helpers/requirements.ts";
import { isBody, parseStory, type Step, type StoryAnswer, type StoryRequest } from "./exchange.ts";

const folder = new URL("./keys/", import.meta.url);
const stories = readdirSync(folder)
  .toSorted()
  .map((name) => ({ name: name.replace(".txt", ""), text: readFileSync(new URL(name, folder), "utf8") }))
  .map(({ name, text }) => ({ name, text, ...parseStory(text, 0) }));

const isLong = process.env.DAVIT_TEST_ROUNDS !== undefined;
// The first one leads.
const members = isLong ? [0, 1, 2] : [2];

const servers = [
  { name: "davit", server: "davit", start: () => startDavitKeys(), isMissing: false, isAlone: true },
  ...members.map((number) => ({
    name: `davit ${number} of three`,
    server: "davit",
    start: () => startOneOfThree(number),
    isMissing: missing("etcd"),
    isAlone: false,
  })),
  { name: "etcd", server: "etcd", start: () => startEtcd(), isMissing: missing("etcd"), isAlone: true },
];

async function startOneOfThree(number: number): Promise<TestServer> {
  const { all, stop } = await startDavitMembers();
  return { port: all[number]?.port ?? 0, stop };
}

describe.each(servers)("$name", ({ server, start, isMissing, isAlone }) => {
  const fitting = stories.filter(({ servers }) => servers === "both" || servers === server);
  let running: TestServer;
  let agent: ReturnType<typeof agentFor>;

  beforeAll(async () => {
    if (isMissing) return;
    agent = agentFor();
    running = await start();
  });
  afterAll(async () => {
    agent?.destroy();
    await running?.stop();
  });

  it.skipIf(isMissing).each(fitting)("$name: $title", async ({ text }) => {
    const send = ({ method, target, headers, body }: StoryRequest) =>
      sendRaw({ port: running.port, agent, method, target, headers, body });
    const base = await emptiedIndex(running.port);
    const steps = isAlone ? parseStory(text, base).steps : stepsOfMembers(text, base);
    let open: BegunAnswer | undefined;
    for (const step of steps) {
      if (step.kind === "exchange") expectAnswer(await (await send(step.request)).whole(), step.answer);
      else if (step.kind === "begin") open = await send(step.request);
      else expectAnswer(await open?.whole(), step.answer);
    }
  });

  it.skipIf(isMissing)("of a full history the last 1,000 events can be watched", async () => {
    const send = async (method: string, target: string) =>
      (await sendRaw({ port: running.port, agent, method, target })).whole();
    const base = await emptiedIndex(running.port);
    for (let done = 0; done < 1_000; done += 50) {
      await Promise.all(Array.from({ length: 50 }, () => send("PUT", "/v2/keys/full?value=x")));
    }
    const last = base + 1_000;
    const oldest = await send("GET", `/v2/keys/full?wait=true&waitIndex=${last - 999}`);
    expect(oldest).toMatchObject({ status: 200, body: expect.stringContaining(`"modifiedIndex":${last - 999},`) });
    const cleared = await send("GET", `/v2/keys/full?wait=true&waitIndex=${last - 1_000}`);
    expect([cleared.status, cleared.body]).toEqual([
      400,
      '{"errorCode":401,"message":"The event in requested index is outdated and cleared",' +
        `"cause":"the requested history has been cleared [${last - 999}/${last - 1_000}]","index":${last}}\n`,
    ]);
  });

  it.skipIf(isMissing)("counts what succeeded, a refused swap, an expiry, and nothing else", async () => {
    const ask = async (line: string) => {
      const [method = "", target = ""] = line.split(" ");
      return (await sendRaw({ port: running.port, agent, method, target })).whole();
    };
    const base = await emptiedIndex(running.port);
    const before = agreedCounts((await ask("GET /v2/stats/store")).body);
    for (const line of countedLines) await ask(line);
    await ask(`GET /v2/keys/c/e?wait=true&waitIndex=${base + 3}`);
    const after = agreedCounts((await ask("GET /v2/stats/store")).body);
    expect(after.map((count, at) => count - (before[at] ?? 0))).toEqual(agreed.map(({ grows }) => grows));
  });
});

/**
 * The steps that one of several members takes as the only one does, with the term of the first leader.
 * test/members/face.test.ts has what members answer to the others.
 */
function stepsOfMembers(text: string, base: number): readonly Step[] {
  const { steps } = parseStory(text.replaceAll("X-Raft-Term: 2", "X-Raft-Term: 1"), base);
  return steps.filter((step) => step.kind !== "exchange" || !showsMembers.test(step.request.target));
}

const showsMembers = /^\/v2\/(?:members\/?(?:leader)?|stats\/self|stats\/leader|machines)(?:\?|$)/;

// `/c/e` ends at some time after its write.
const countedLines = [
  "PUT /v2/keys/c/a",
  "PUT /v2/keys/c/e?ttl=0",
  "PUT /v2/keys/c/b?prevExist=false",
  "POST /v2/keys/c",
  "PUT /v2/keys/c/a?prevExist=true&value=x",
  "PUT /v2/keys/c/a?prevValue=x",
  "PUT /v2/keys/c/a?prevValue=y",
  "PUT /v2/keys/c/a?ttl=x",
  "PATCH /v2/keys/c/a",
  "DELETE /v2/keys/c/b?prevIndex=1000000",
  "DELETE /v2/keys/c/a",
];

/** Counters of which the reference makes no quirk. */
const agreed = [
  { name: "setsSuccess", grows: 2 },
  { name: "setsFail", grows: 0 },
  { name: "createSuccess", grows: 2 },
  { name: "updateSuccess", grows: 1 },
  { name: "compareAndSwapSuccess", grows: 1 },
  { name: "compareAndSwapFail", grows: 1 },
  { name: "deleteSuccess", grows: 1 },
  { name: "expireCount", grows: 1 },
  { name: "watchers", grows: 0 },
];

function agreedCounts(body: string): readonly number[] {
  const counts: Record<string, number> = JSON.parse(body);
  return agreed.map(({ name }) => counts[name] ?? 0);
}

function expectAnswer(answer: RawAnswer | undefined, expected: StoryAnswer): void {
  const { status, body, headers } = answer ?? { status: 0, body: "", headers: new Map() };
  // Where it fits, it is shown as expected.
  const shown = isBody(expected.body, body) ? expected.body : body;
  expect({ status, body: shown }).toEqual({ status: expected.status, body: expected.body });
  for (const [name, value] of expected.headers) {
    const sent = headers.get(name);
    expect([name, value !== undefined && isBody(value, sent ?? "") ? value : sent]).toEqual([name, value]);
  }
}

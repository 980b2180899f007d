/** Every story of `keys/` against davit over a socket, and against etcd 3.4, so that no expectation is invented. */

import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDavitKeys, startEtcd, type TestServer } from "../helpers/keys-servers.ts";
import { agentFor, type BegunAnswer, type RawAnswer, sendRaw } from "../helpers/raw-request.ts";
import { missing } from "../helpers/requirements.ts";
import { parseStory, type StoryAnswer, type StoryRequest } from "./exchange.ts";

const folder = new URL("./keys/", import.meta.url);
const stories = readdirSync(folder)
  .toSorted()
  .map((name) => ({ name: name.replace(".txt", ""), text: readFileSync(new URL(name, folder), "utf8") }))
  .map(({ name, text }) => ({ name, text, ...parseStory(text, 0) }));

const servers = [
  { server: "davit", start: startDavitKeys, isMissing: false },
  { server: "etcd", start: startEtcd, isMissing: missing("etcd") },
];

describe.each(servers)("$server", ({ server, start, isMissing }) => {
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
    const { steps } = parseStory(text, await emptiedIndex(running.port));
    let open: BegunAnswer | undefined;
    for (const step of steps) {
      if (step.kind === "exchange") expectAnswer(await (await send(step.request)).whole(), step.answer);
      else if (step.kind === "begin") open = await send(step.request);
      else expectAnswer(await open?.whole(), step.answer);
    }
  });
});

/** Removes every visible key and tells the index that the store then has. */
async function emptiedIndex(port: number): Promise<number> {
  const agent = agentFor();
  const ask = async (method: string, target: string) =>
    (await sendRaw({ port, agent, method, target, headers: {}, body: undefined })).whole();
  const keys = [...(await ask("GET", "/v2/keys/")).body.matchAll(/"key":("(?:[^"\\]|\\.)*")/g)];
  for (const [, key = '""'] of keys) {
    await ask("DELETE", `/v2/keys/${encodeURIComponent(String(JSON.parse(key)).slice(1))}?recursive=true`);
  }
  const { headers } = await ask("GET", "/v2/keys/");
  agent.destroy();
  return Number(headers.get("x-etcd-index"));
}

function expectAnswer(answer: RawAnswer | undefined, expected: StoryAnswer): void {
  const { status, body, headers } = answer ?? { status: 0, body: "", headers: new Map() };
  expect({ status, body: body.replace(/\n*$/, "") }).toEqual({ status: expected.status, body: expected.body });
  for (const [name, value] of expected.headers) expect([name, headers.get(name)]).toEqual([name, value]);
}

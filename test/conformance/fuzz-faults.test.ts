/** The fuzzer finds what is wrong: davit with one fault each, and what the fuzzer then says. */

import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { describe, expect, it } from "vitest";
import { startDavitStore } from "../helpers/davit-store.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { quickFolder, startEtcdIn } from "../helpers/quick-folder.ts";
import { missing } from "../helpers/requirements.ts";
import { fuzz } from "./fuzz-run.ts";
import { shrink } from "./fuzz-shrink.ts";

interface Fault {
  readonly name: string;
  readonly says: RegExp;
  /** Changes a piece of an answer, and keeps its length; undefined loses it. */
  readonly change: (text: string, answer: IncomingMessage) => string | undefined;
  /** 0 for a fault that takes seconds to show. */
  readonly shrinkLimitMs: number;
  /** Operations of the sequence that the fuzzer shows. */
  readonly shows: readonly RegExp[];
}

const faults: readonly Fault[] = [
  {
    name: "an error with a wrong index",
    says: /^Other answers to .*: the body$/m,
    change: (text) =>
      text.replace(/("errorCode":105,.*"index":\d*)(\d)/, (_, before, digit) => before + ((+digit + 1) % 10)),
    shrinkLimitMs: 60_000,
    shows: [/^(PUT|POST) /, /^PUT .*prevExist=(false|0|f|F|FALSE|False)/],
  },
  {
    name: "a ttl that is seconds too long",
    says: /: the ttl 1009 beside /,
    change: (text) => text.replaceAll('"ttl":1000,', '"ttl":1009,'),
    shrinkLimitMs: 60_000,
    shows: [/ttl=0?1000/],
  },
  {
    name: "an event that is lost",
    says: /^Other events of GET /m,
    change: (text, { headers }) =>
      headers["transfer-encoding"] === "chunked" && text.includes('"action":"compareAndSwap"') ? undefined : text,
    shrinkLimitMs: 0,
    shows: [],
  },
];

describe("the fuzzer", () => {
  it.skipIf(missing("etcd")).each(faults)(
    "finds $name",
    async ({ says, change, shrinkLimitMs, shows }) => {
      const folder = quickFolder();
      const { difference = "" } = await fuzz({
        seed: 1,
        operations: 2_000,
        lanes: 1,
        start: {
          etcd: () => startEtcdIn(folder),
          davit: async () => await behindFault(await startDavitStore(folder), change),
        },
        shrinkLimitMs,
      });
      expect(difference).toMatch(/^FUZZ_SEED=\d+ FUZZ_OPERATIONS=1000 shows a difference$/m);
      expect(difference).toMatch(says);
      const [, shortest = ""] = difference.split("The shortest sequence that shows it:\n");
      const lines = shrinkLimitMs === 0 ? [] : shortest.split("\n");
      expect(lines).toEqual(shows.map((pattern) => expect.stringMatching(pattern)));
    },
    120_000,
  );

  it("leaves out of a sequence what is not needed", async () => {
    const all = Array.from({ length: 1_000 }, (_, at) => at);
    const shows = async (some: readonly number[]) => some.includes(17) && some.includes(500) && some.includes(999);
    expect(await shrink(all, { shows, limitMs: 60_000 })).toEqual([17, 500, 999]);
  });
});

/** A server in front of another one, which changes what that answers. */
async function behindFault({ port, stop }: TestServer, change: Fault["change"]): Promise<TestServer> {
  const front = createServer((asked, reply) => {
    const { method, url, headers } = asked;
    const sent = request({ host: "127.0.0.1", port, method, path: url, headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
      reply.flushHeaders();
      answer.on("data", (chunk: Buffer) => {
        const text = change(chunk.toString(), answer);
        if (text !== undefined) reply.write(text);
      });
      answer.on("end", () => reply.end());
      // A watch that its client closed.
      reply.on("close", () => answer.destroy());
    });
    sent.on("error", () => reply.destroy());
    asked.pipe(sent);
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  return {
    port: portOf(front),
    stop: async () => {
      front.closeAllConnections();
      front.close();
      await stop();
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

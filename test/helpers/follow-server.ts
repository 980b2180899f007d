/** The route for followers alone, over a store of a test, and a reader of its lines. */

import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { answerError } from "../../src/http/errors.ts";
import { createServer } from "../../src/http/server.ts";
import { followAnswer } from "../../src/http/store/follow-routes.ts";
import { FollowStreams } from "../../src/http/store/follow-streams.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { decodeFollowLine, type FollowLine, type FollowPlace, followPath } from "../../src/model/follow-line.ts";
import type { Store } from "../../src/store/store.ts";
import type { TestServer } from "./keys-servers.ts";
import { silentLog } from "./test-store.ts";

export async function startFollow(store: Store): Promise<TestServer> {
  const streams = new FollowStreams({ store, clock: systemClock, provenAtMs: () => undefined });
  const options = { store, streams, log: silentLog, guard: () => undefined, isReady: () => true };
  const handler = { begin: () => undefined, handle: followAnswer(options), end: () => streams.stop() };
  const server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
  return { port, stop: () => server.close() };
}

export interface FollowReader {
  readonly status: number;
  readonly retryAfter: string | null;
  /** The lines up to the next one of a kind; fewer if the answer ends or is cut. */
  until(kind: FollowLine["kind"]): Promise<readonly FollowLine[]>;
  stop(): void;
}

/** Follows from the place of a copy; from nothing unless given. */
export async function follow(
  { port }: TestServer,
  from?: FollowPlace & { readonly cluster: string },
): Promise<FollowReader> {
  const query = new URLSearchParams(from && { cluster: from.cluster, after: String(from.index) });
  if (from?.run !== undefined) query.set("run", from.run);
  const ending = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}${followPath}?${query}`, { signal: ending.signal });
  const body = answer.body === null ? Readable.from([]) : Readable.fromWeb(answer.body);
  body.on("error", () => {});
  const lines = createInterface({ input: body })[Symbol.asyncIterator]();
  return {
    status: answer.status,
    retryAfter: answer.headers.get("retry-after"),
    until: async (kind) => {
      const read: FollowLine[] = [];
      for (;;) {
        const { value, done } = await lines.next().catch(() => ({ value: "", done: true }));
        const line = done === true ? undefined : decodeFollowLine(value);
        if (line === undefined) return read;
        read.push(line);
        if (line.kind === kind) return read;
      }
    },
    stop: () => ending.abort(),
  };
}

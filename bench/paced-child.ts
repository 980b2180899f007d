/** Machines that ask for their boot scripts at a steady rate, whether or not the last one was answered. */

import { once } from "node:events";
import { answerQuestions } from "./child.ts";
import { queryOf, sharedClockMs } from "./machines.ts";
import { RawConnection, requestText } from "./raw-client.ts";

const connectionCount = 64;

/** Machine, version, when the request was due, when its answer was there; milliseconds. */
type Seen = readonly [machine: number, version: number, dueMs: number, atMs: number];

answerQuestions(async ({ port, groups, perSecond, durationMs }) => {
  const url = `http://127.0.0.1:${port}`;
  const connections = await Promise.all(Array.from({ length: connectionCount }, () => RawConnection.open(url)));
  const intervalMs = 1_000 / Number(perSecond);
  const seen: Seen[] = [];
  const asked: Promise<void>[] = [];
  const errors: string[] = [];
  let nextMs = sharedClockMs();
  const endsMs = nextMs + Number(durationMs);
  const ask = async (connection: RawConnection, machine: number, dueMs: number) => {
    const text = await connection.ask(requestText("GET", `/ipxe?${queryOf(machine)}`));
    seen.push([machine, Number(/ hostname=changed-(\d+) /.exec(text)?.[1] ?? 0), dueMs, sharedClockMs()]);
    connections.push(connection);
  };
  const ended = new EventTarget();
  const timer = setInterval(() => {
    for (; nextMs <= sharedClockMs() && nextMs < endsMs; nextMs += intervalMs) {
      const connection = connections.shift();
      // All of them wait: the next request is late, and counts as late.
      if (connection === undefined) return;
      const answered = ask(connection, asked.length % Number(groups), nextMs);
      asked.push(answered.catch((error) => void errors.push(String(error))));
    }
    if (nextMs >= endsMs) ended.dispatchEvent(new Event("end"));
  }, 1);
  await once(ended, "end");
  clearInterval(timer);
  await Promise.all(asked);
  for (const connection of connections) connection.close();
  return { seen, errors };
});

/** What a person would try first: many writes, the power switch, and a look at what is left. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { startDavit } from "../../tools/davit-process.ts";
import { KeysClient, keysIn } from "./keys-client.ts";

const keyCount = 10_000;
const clientCount = 64;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "davit-keys-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

it("10,000 keys that were acknowledged are all there after `kill -9` and a start", async () => {
  const manifests = join(import.meta.dirname, "../../manifests/quickstart");
  const options = { manifests, dataDir: join(directory, "data") };
  const first = await startDavit(options);
  const written = new Map<string, number>();
  await Promise.all(
    Array.from({ length: clientCount }, async (_, client) => {
      const connection = new KeysClient(first.storeUrl);
      for (let number = client; number < keyCount; number += clientCount) {
        const path = `/keys/${number}`;
        const answer = await connection.send({ method: "PUT", path, fields: { value: `value ${number}` } });
        expect(answer?.status).toBe(201);
        written.set(path, Number(Object(answer?.body.node).modifiedIndex));
      }
      connection.close();
    }),
  );
  await first.stop("SIGKILL");

  const startMs = systemClock.monotonicMs();
  const second = await startDavit(options);
  const readyMs = Math.round(systemClock.monotonicMs() - startMs);
  const connection = new KeysClient(second.storeUrl);
  const answer = await connection.send({ method: "GET", path: "/keys", fields: { recursive: "true" } });
  connection.close();
  await second.stop();
  const found = answer === undefined ? [] : [...keysIn(answer)];
  expect(new Map(found.map(([path, { modifiedIndex }]) => [path, modifiedIndex]))).toEqual(written);
  for (const [path, { value }] of found) expect(value).toBe(`value ${path.slice("/keys/".length)}`);
  process.stdout.write(`${found.length} keys after kill -9 and a start, which took ${readyMs} ms until it served\n`);
}, 120_000);

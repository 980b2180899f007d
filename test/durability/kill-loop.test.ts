/**
 * The promises of docs/internals/store.md, kept by a real process that is killed again and again under 64 writers.
 * `DAVIT_TEST_KILLS` and `DAVIT_TEST_SEED` set how often, and from which seed; `make test-store-long` kills 200 times.
 */

import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CrashLoop } from "./crash-loop.ts";

const kills = Number(process.env.DAVIT_TEST_KILLS ?? 4);
const seed = Number(process.env.DAVIT_TEST_SEED ?? randomInt(1_000_000));
// A life takes about a second; this allows for a machine that is busy with other suites.
const timeoutMs = 60_000 + kills * 20_000;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "davit-kill-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

it(
  `what was acknowledged survives ${kills} kills (seed ${seed})`,
  async () => {
    const manifests = join(import.meta.dirname, "../../manifests/quickstart");
    const loop = new CrashLoop({ kills, seed, manifests, dataDir: directory });
    await expect(loop.run()).resolves.toBeUndefined();
    process.stdout.write(`${loop.summary}\n`);
  },
  timeoutMs,
);

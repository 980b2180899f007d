/**
 * Programs on Debian's python3-etcd, run against davit and against etcd 3.4: they print the same. What they print is in
 * the file beside each, with the placeholders of test/conformance/exchange.ts.
 */

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fillIndexes, isBody } from "../conformance/exchange.ts";
import { startDavitStore } from "../helpers/davit-store.ts";
import { emptiedIndex } from "../helpers/emptied-index.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { quickFolder, startEtcdIn } from "../helpers/quick-folder.ts";
import { missing } from "../helpers/requirements.ts";

const programs = [
  { name: "keys", shows: "reads and writes" },
  { name: "watch", shows: "watches" },
  { name: "lock", shows: "takes locks" },
  { name: "election", shows: "elects a leader" },
  { name: "cluster", shows: "asks for members and statistics" },
];

const servers = [
  { server: "davit", start: () => startDavitStore(quickFolder()), isMissing: missing("python-etcd") },
  { server: "etcd", start: () => startEtcdIn(quickFolder()), isMissing: missing("python-etcd", "etcd") },
];

// The package is Debian's, for its Python.
const python = "/usr/bin/python3";
const folder = new URL("./python/", import.meta.url);
const run = promisify(execFile);

describe.each(servers)("python-etcd with $server", ({ start, isMissing }) => {
  let running: TestServer;

  beforeAll(async () => {
    if (!isMissing) running = await start();
  });
  afterAll(async () => {
    await running?.stop();
  });

  it.skipIf(isMissing).each(programs)(
    "$name: $shows",
    async ({ name }) => {
      const base = await emptiedIndex(running.port);
      const program = fileURLToPath(new URL(`${name}.py`, folder));
      const { stdout, stderr } = await run(python, ["-B", program, String(running.port)], { timeout: 60_000 });
      const expected = fillIndexes(readFileSync(new URL(`${name}.txt`, folder), "utf8"), base).trimEnd();
      // Where it fits, it is shown as expected.
      expect(stderr + (isBody(expected, stdout) ? expected : stdout)).toBe(expected);
    },
    60_000,
  );
});

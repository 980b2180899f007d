/** The script of `helm test`, run as the pod runs it, against real processes of davit. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../cluster/ports.ts";
import { type DavitProcess, startDavit } from "../helpers/davit-process.ts";
import { chartDirectory } from "./generated.ts";

const quickstart = join(import.meta.dirname, "../../manifests/quickstart");

describe("helm test", () => {
  let davit: DavitProcess;
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "davit-helm-test-"));
    davit = await startDavit({ manifests: quickstart, dataDir: join(directory, "data") });
  }, 60_000);
  afterAll(async () => {
    await davit?.stop();
    await rm(directory, { recursive: true });
  });

  async function helmTest(env: Readonly<Record<string, string>>) {
    const [free = 0] = await freePorts(1);
    const closed = { CLOSED_STORE_URL: `http://127.0.0.1:${free}` };
    const child = spawn(process.execPath, [join(chartDirectory, "files/helm-test.mjs")], {
      env: { BOOT_URL: davit.bootUrl, SIGNED: "false", ...closed, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [[code], stdout] = await Promise.all([once(child, "close"), text(child.stdout)]);
    return { code, stdout };
  }

  it("passes for a davit that answers and whose store is closed", async () => {
    const { code, stdout } = await helmTest({});
    expect(stdout).toMatch(/^(ok {6}.*\n){4}$/);
    expect(code).toBe(0);
  });

  it.each([
    ["nobody answers machines", { BOOT_URL: "http://127.0.0.1:1" }, "answers with the first script: ECONNREFUSED"],
    ["answers are not signed, and should be", { SIGNED: "true" }, "NOT OK  answers are signed: answered 404"],
  ])("fails when %s", async (_what, env, told) => {
    const { code, stdout } = await helmTest(env);
    expect(stdout).toContain(told);
    expect(code).toBe(1);
  });

  it("fails for a store that is open to everybody, be that wanted or not", async () => {
    expect(await helmTest({ STORE_URL: davit.storeUrl })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("answered 200 to somebody without a token"),
    });
    expect(await helmTest({ CLOSED_STORE_URL: davit.storeUrl })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("answered 200, and should not be reached"),
    });
  });
});

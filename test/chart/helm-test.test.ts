/** The script of `helm test`, run as the pod runs it, against real processes of davit. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { missing } from "../helpers/requirements.ts";

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

  it("fails when nobody answers machines", async () => {
    const [free] = await freePorts(1);
    const { code, stdout } = await helmTest({ BOOT_URL: `http://127.0.0.1:${free}` });
    expect(stdout).toContain("answers with the first script: ECONNREFUSED");
    expect(code).toBe(1);
  });

  it("fails when answers are not signed, and should be", async () => {
    const { code, stdout } = await helmTest({ SIGNED: "true" });
    expect(stdout).toContain("NOT OK  answers are signed: answered 404");
    expect(code).toBe(1);
  });
  describe.skipIf(missing("openssl"))("passes for an exposed store that asks for", () => {
    it.each(["a token", "a certificate"])("%s, and has a certificate that is trusted", async (asked) => {
      const folder = await mkdtemp(join(directory, "store-"));
      const authority = makeAuthority(folder);
      const { certFile, keyFile } = authority.issue("store");
      const tokens = join(folder, "tokens");
      await writeFile(tokens, "0123456789abcdef\n", { mode: 0o600 });
      const door =
        asked === "a token" ? ["--store-token-file", tokens] : ["--store-client-ca-file", authority.certFile];
      const args = ["--store-cert-file", certFile, "--store-key-file", keyFile, ...door];
      const exposed = await startDavit({ manifests: quickstart, dataDir: join(folder, "data"), args });
      const store = { STORE_URL: exposed.storeUrl, STORE_ASKS_CERTIFICATES: String(asked !== "a token") };
      const trusting = await helmTest({ ...store, NODE_EXTRA_CA_CERTS: authority.certFile });
      const doubting = await helmTest(store);
      await exposed.stop();
      expect(trusting).toMatchObject({ code: 0, stdout: expect.stringContaining("refuses who has no credentials\n") });
      expect(doubting).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(/UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN/),
      });
    });
  });

  it("fails for a store that is open to everybody, be that wanted or not", async () => {
    expect(await helmTest({ STORE_URL: davit.storeUrl })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("answered 200 to somebody without credentials"),
    });
    expect(await helmTest({ CLOSED_STORE_URL: davit.storeUrl })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("answered 200, and should not be reached"),
    });
  });
});

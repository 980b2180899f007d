/** etcdctl at the store's door, with the credentials that it can send. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeAuthority } from "../helpers/certificates.ts";
import { startDavitStore } from "../helpers/davit-store.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { missing } from "../helpers/requirements.ts";
import { Etcdctl } from "./etcdctl.ts";

const token = "token-of-a-script-0123456789";

describe.skipIf(missing("etcdctl", "openssl"))("etcdctl", () => {
  let folder: string;
  let running: TestServer | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-etcdctl-"));
  });
  afterEach(async () => {
    await running?.stop();
    running = undefined;
    await rm(folder, { recursive: true });
  });

  it("comes in with a client certificate, and not without one", async () => {
    const authority = makeAuthority(folder);
    const server = authority.issue("server");
    const client = authority.issue("client");
    running = await startDavitStore(folder, [
      ...["--store-cert-file", server.certFile, "--store-key-file", server.keyFile],
      ...["--store-client-ca-file", authority.certFile],
    ]);
    const at = `--endpoints https://127.0.0.1:${running.port} --ca-file ${authority.certFile}`;
    const withCertificate = `${at} --cert-file ${client.certFile} --key-file ${client.keyFile}`;
    expect(await printed(`${withCertificate} set /a b`)).toEqual({ output: "b\n", exit: 0 });
    expect(await printed(`${withCertificate} get /a`)).toEqual({ output: "b\n", exit: 0 });
    const without = await printed(`${at} get /a`);
    expect(without.exit).not.toBe(0);
    expect(without.output).toContain("certificate required");
  });

  it("comes in with a token for its password, and with no other", async () => {
    const tokenFile = join(folder, "tokens");
    await writeFile(tokenFile, `${token}\n`, { mode: 0o600 });
    running = await startDavitStore(folder, ["--store-token-file", tokenFile]);
    const at = `--endpoints http://127.0.0.1:${running.port}`;
    expect(await printed(`${at} --username any:${token} set /a b`)).toEqual({ output: "b\n", exit: 0 });
    expect(await printed(`${at} --username any:${token} ls`)).toEqual({ output: "/a\n", exit: 0 });
    const withAnother = await printed(`${at} --username any:other-token get /a`);
    expect(withAnother.exit).not.toBe(0);
    expect(withAnother.output).toContain("110: The request requires user authentication");
  });
});

async function printed(words: string): Promise<{ readonly output: string; readonly exit: number | null }> {
  const command = new Etcdctl(words);
  const exit = await command.ended();
  return { output: command.output, exit };
}

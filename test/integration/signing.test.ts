/** Signatures of davit as its users run it: `serve`, a `boot` that follows it, and every key that ends the start. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  davitProgram,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { Gpg } from "../helpers/gpg.ts";
import { missing } from "../helpers/requirements.ts";

const manifests = join(import.meta.dirname, "../../manifests/quickstart");
const mac = "52-54-00-a1-9c-ae";
const passphrase = "Correct horse 42";
const makeLimitMs = 120_000;
const startLimitMs = 90_000;
const soon = { timeout: 30_000 };

async function get(url: string): Promise<{ readonly status: number; readonly body: Buffer }> {
  const response = await fetch(url);
  return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
}

async function textOf(url: string): Promise<string> {
  return (await get(url)).body.toString();
}

describe.skipIf(missing("gpg"))("a davit with a signing key", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-signing-"));
  const keyFile = join(folder, "signing.key");
  const running: DavitBootProcess[] = [];
  let gpg: Gpg;
  const fingerprints = new Map<string, string>();
  const of = (name: string) => fingerprints.get(name) ?? "";

  beforeAll(() => {
    gpg = new Gpg();
    const make = (name: string, options: Parameters<Gpg["makeKey"]>[1]) =>
      fingerprints.set(name, gpg.makeKey(name, options));
    make("rack", { algorithm: "rsa2048", passphrase });
    make("next", { algorithm: "ed25519", lifetime: "5d" });
    make("dsa", { algorithm: "dsa2048" });
    make("certify", { algorithm: "ed25519", usage: "cert" });
    make("old", { algorithm: "ed25519", lifetime: "1d", madeAt: "20200101T000000" });
    make("revoked", { algorithm: "ed25519" });
    gpg.revoke(of("revoked"));
  }, makeLimitMs);

  afterEach(async () => {
    await Promise.all(running.splice(0).map((davit) => davit.stop()));
    rmSync(join(folder, "data"), { recursive: true, force: true });
  });

  afterAll(() => {
    gpg?.stop();
    rmSync(folder, { recursive: true });
  });

  async function serve(...args: readonly string[]): Promise<DavitProcess> {
    const davit = await startDavit({ manifests, dataDir: join(folder, "data"), args });
    running.push(davit);
    return davit;
  }

  async function boot(args: readonly string[], variables: Record<string, string>): Promise<DavitBootProcess> {
    const davit = await startDavitBoot(args, { variables });
    running.push(davit);
    return davit;
  }

  async function signerOf({ bootUrl }: DavitBootProcess, name = "ipxe"): Promise<string | undefined> {
    const content = await get(`${bootUrl}/${name}?mac=${mac}`);
    const signature = await get(`${bootUrl}/${name}.sig?mac=${mac}`);
    expect([content.status, signature.status]).toEqual([200, 200]);
    return gpg.verify(signature.body, content.body).fingerprint;
  }

  function writePassphrase(text: string): string {
    const path = join(folder, "passphrase");
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  it(
    "signs in both, with its passphrase from a file or a variable, which is told to nobody",
    async () => {
      writeFileSync(keyFile, gpg.exportSecret(of("rack"), { passphrase, armor: true }), { mode: 0o600 });
      const key = ["--signing-key", keyFile];
      const served = await serve(...key, "--signing-passphrase-file", writePassphrase(`${passphrase}\n`));
      const followed = await boot([...storeOf(served), ...key], { DAVIT_SIGNING_PASSPHRASE: passphrase });
      for (const davit of [served, followed]) {
        expect(await signerOf(davit)).toBe(of("rack"));
        expect(await signerOf(davit, "metadata")).toBe(of("rack"));
        expect(await textOf(`${davit.bootUrl}/signing-key.asc`)).toMatch(/^-----BEGIN PGP PUBLIC KEY BLOCK-----\n/);
        const line = { part: "sign", msg: "signing by this key", fingerprint: of("rack"), userId: "rack" };
        await expect.poll(() => davit.log, soon).toContainEqual(expect.objectContaining(line));
        const told = JSON.stringify(davit.log) + (await textOf(`${davit.opsUrl}/metrics`));
        expect(told).not.toContain(passphrase);
        expect(await davit.stop()).toBe(0);
      }
    },
    startLimitMs,
  );

  it(
    "signs `/grub` by a key of its own, in both",
    async () => {
      writeFileSync(keyFile, gpg.exportSecret(of("next")), { mode: 0o600 });
      const grubKeyFile = join(folder, "grub.key");
      writeFileSync(grubKeyFile, gpg.exportSecret(of("rack"), { passphrase }), { mode: 0o600 });
      const keys = ["--signing-key", keyFile, "--grub-signing-key", grubKeyFile];
      const served = await serve(...keys, "--grub-signing-passphrase-file", writePassphrase(passphrase));
      const variables = { DAVIT_GRUB_SIGNING_PASSPHRASE: passphrase };
      const followed = await boot([...storeOf(served), ...keys], variables);
      for (const davit of [served, followed]) {
        expect(await signerOf(davit, "grub")).toBe(of("rack"));
        expect(await signerOf(davit, "ipxe")).toBe(of("next"));
        expect(await signerOf(davit, "metadata")).toBe(of("next"));
        const metrics = await textOf(`${davit.opsUrl}/metrics`);
        expect(metrics).toMatch(/^davit_signing_key_expiry_timestamp_seconds [1-9]\d+$/m);
        expect(metrics).toMatch(/^davit_signing_key_expiry_timestamp_seconds\{key="grub"\} 0$/m);
      }
    },
    startLimitMs,
  );

  it(
    "does not start without the passphrase of GRUB's key, and says which option gives it",
    async () => {
      writeFileSync(keyFile, gpg.exportSecret(of("rack"), { passphrase }), { mode: 0o600 });
      const { code, complaints } = await run(["--grub-signing-key", keyFile]);
      expect(complaints).toContain("give --grub-signing-passphrase-file FILE or the variable DAVIT_GRUB_SIGNING_PASS");
      expect(code).toBe(1);
    },
    startLimitMs,
  );

  it(
    "goes on with its key while the file is garbage, and takes up the next",
    async () => {
      writeFileSync(keyFile, gpg.exportSecret(of("rack"), { passphrase }), { mode: 0o600 });
      const passphraseFile = writePassphrase(passphrase);
      const davit = await serve("--signing-key", keyFile, "--signing-passphrase-file", passphraseFile);
      writeFileSync(keyFile, "garbage", { mode: 0o600 });
      const attention =
        /^\[!\] sign: Cannot use ".*signing.key", ".*passphrase": it holds no OpenPGP key that can be read/m;
      await expect.poll(() => textOf(`${davit.opsUrl}/readyz?verbose`), soon).toMatch(attention);
      expect((await get(`${davit.opsUrl}/readyz`)).status).toBe(200);
      expect(await textOf(`${davit.opsUrl}/metrics`)).toMatch(/^davit_signing_key_problem 1$/m);
      expect(await signerOf(davit)).toBe(of("rack"));
      writeFileSync(keyFile, gpg.exportSecret(of("next")), { mode: 0o600 });
      await expect.poll(() => signerOf(davit), soon).toBe(of("next"));
      expect(davit.log.filter(({ level, part }) => level === 50 && part === "sign")).toHaveLength(1);
      expect(await textOf(`${davit.opsUrl}/metrics`)).toMatch(/^davit_signing_key_problem 0$/m);
      expect(await textOf(`${davit.opsUrl}/readyz?verbose`)).toMatch(/^\[!\] sign: the signing key expires at 20/m);
      const warning = expect.objectContaining({ msg: "signing key expires soon", level: 40 });
      await expect.poll(() => davit.log, soon).toContainEqual(warning);
    },
    startLimitMs,
  );

  interface Ending {
    readonly code: unknown;
    readonly complaints: string;
  }

  function run(args: readonly string[]): Promise<Ending> {
    const dataDir = ["--data-dir", join(folder, "data")];
    const free = ["boot", "store", "ops"].flatMap((name) => [`--${name}-address`, "127.0.0.1:0"]);
    const words = [
      davitProgram,
      "serve",
      "--manifests",
      manifests,
      "--log-level",
      "silent",
      ...dataDir,
      ...free,
      ...args,
    ];
    return new Promise((resolve) => {
      execFile(process.execPath, words, { env: {} }, (error, _output, complaints) => {
        resolve({ code: error?.code ?? 0, complaints });
      });
    });
  }

  it.each([
    {
      name: "a public key",
      bytes: () => gpg.exportPublic(of("rack")),
      said: "it holds a public key, and signing needs",
    },
    {
      name: "another passphrase",
      bytes: () => gpg.exportSecret(of("rack"), { passphrase }),
      given: "wrong",
      said: "the passphrase is not that of the key",
    },
    {
      name: "no passphrase",
      bytes: () => gpg.exportSecret(of("rack"), { passphrase }),
      said: "it is encrypted, and there is no passphrase: give --signing-passphrase-file FILE",
    },
    { name: "an empty file", bytes: () => Buffer.alloc(0), said: "it is empty" },
    { name: "a DSA key", bytes: () => gpg.exportSecret(of("dsa")), said: "it is a DSA key, which is too weak" },
    { name: "a revoked key", bytes: () => gpg.exportSecret(of("revoked")), said: "it is revoked" },
    {
      name: "an expired key",
      bytes: () => gpg.exportSecret(of("old")),
      said: "it expired at 2020-01-02T00:00:00.000Z",
    },
    { name: "a certify-only key", bytes: () => gpg.exportSecret(of("certify")), said: "no part of it may sign" },
    { name: "garbage", bytes: () => Buffer.from([0x99, 1, 2, 3]), said: "it holds no OpenPGP key that can be read" },
    {
      name: "a file that is too large",
      bytes: () => Buffer.alloc(2 ** 20 + 1),
      said: "it is larger than 1048576 bytes",
    },
  ])(
    "does not start with $name, and says why in one line",
    async ({ bytes, given, said }) => {
      writeFileSync(keyFile, bytes(), { mode: 0o600 });
      const passphraseWords = given === undefined ? [] : ["--signing-passphrase-file", writePassphrase(given)];
      const { code, complaints } = await run(["--signing-key", keyFile, ...passphraseWords]);
      expect(complaints).toMatch(/^Cannot use ".*signing\.key".*: .*\n$/);
      expect(complaints).toContain(`: ${said}`);
      expect(code).toBe(1);
    },
    startLimitMs,
  );

  it(
    "does not start with a key file that is not there",
    async () => {
      const { code, complaints } = await run(["--signing-key", join(folder, "nowhere")]);
      expect(complaints).toMatch(/^No file ".*nowhere": --signing-key needs one that exists\n/);
      expect(code).toBe(2);
    },
    startLimitMs,
  );
});

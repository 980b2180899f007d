import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { StartError } from "../../../src/lib/start-error.ts";
import { Signer } from "../../../src/trust/sign/signer.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { Gpg } from "../../helpers/gpg.ts";
import { missing } from "../../helpers/requirements.ts";
import { silentLog } from "../../helpers/test-store.ts";

const passphrase = "correct horse";

let folder: string;
let keyFile: string;
const signers: Signer[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-signer-"));
  keyFile = join(folder, "key");
});

afterEach(async () => {
  await Promise.all(signers.splice(0).map((signer) => signer.stop()));
  await rm(folder, { recursive: true });
});

async function open(options: Partial<Parameters<typeof Signer.open>[0]> = {}) {
  const said: string[] = [];
  const say = (_data: object, message: string) => void said.push(message);
  const metrics = createMetrics("test");
  const signer = await Signer.open({
    keyFile,
    passphraseFile: undefined,
    passphrase: undefined,
    clock: systemClock,
    log: { ...silentLog, info: say, warn: say, error: say },
    metrics,
    ...options,
  });
  signers.push(signer);
  const metric = async (name: string) => {
    signer.measure();
    const [, value] = new RegExp(`^${name} (.*)$`, "m").exec(await metrics.text()) ?? [];
    return Number(value);
  };
  return { signer, said, metric };
}

describe.skipIf(missing("gpg"))("a signer", () => {
  let gpg: Gpg;
  let first: string;
  let second: string;
  let locked: string;

  beforeAll(() => {
    gpg = new Gpg();
    first = gpg.makeKey("first", { algorithm: "ed25519" });
    second = gpg.makeKey("second", { algorithm: "ed25519", lifetime: "20d" });
    locked = gpg.makeKey("locked", { algorithm: "ed25519", passphrase });
  });
  afterAll(() => gpg.stop());

  const signedBy = async (signer: Signer, body: string) => {
    const { binary, armored } = await signer.sign(body);
    const verdicts = [Buffer.from(binary), Buffer.from(armored)].map((form) => gpg.verify(form, Buffer.from(body)));
    expect(verdicts[0]).toEqual(verdicts[1]);
    return verdicts[0];
  };

  it("signs texts as UTF-8, short ones, empty ones and those of 8 MiB", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o600 });
    const { signer } = await open();
    for (const body of ["", "ä\u0000\r\n\u{1f600}", "x".repeat(8 * 1024 * 1024), `${"é".repeat(70_000)}`]) {
      expect(await signedBy(signer, body)).toEqual({ isGood: true, fingerprint: first });
    }
  });

  it("takes no key that other users can read, and says what to do", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o644 });
    await expect(open()).rejects.toThrow(`other users can read or write it: chmod o= "${keyFile}"`);
  });

  it("signs a body once, for those who ask together and for those who come later", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o600 });
    const { signer, metric } = await open();
    for (const body of ["short", "long".repeat(100_000)]) {
      const together = await Promise.all([signer.sign(body), signer.sign(body), signer.sign(body)]);
      expect(new Set([...together, await signer.sign(body)]).size).toBe(1);
    }
    expect(signer.sign("short")).not.toBeInstanceOf(Promise);
    expect(await metric('davit_signatures_total{from="key"}')).toBe(2);
    expect(await metric('davit_signatures_total{from="cache"}')).toBe(3);
  });

  it("logs who it signs as", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o600 });
    const lines: object[] = [];
    const log = { ...silentLog, info: (data: object, message: string) => void lines.push({ ...data, message }) };
    await open({ log });
    expect(lines).toEqual([{ message: "signing by this key", fingerprint: first, userId: "first" }]);
  });

  it.each([
    { name: "the first line of a file", text: `${passphrase}\r\nnot this\n` },
    { name: "a file without a newline", text: passphrase },
    { name: "the environment", text: undefined },
  ])("unlocks its key by $name", async ({ text }) => {
    await writeFile(keyFile, gpg.exportSecret(locked, { passphrase }), { mode: 0o600 });
    const passphraseFile = join(folder, "passphrase");
    if (text !== undefined) await writeFile(passphraseFile, text, { mode: 0o600 });
    const { signer } = await open(text === undefined ? { passphrase } : { passphraseFile });
    expect(await signedBy(signer, "body")).toEqual({ isGood: true, fingerprint: locked });
  });

  it.each([
    {
      name: "an unusable key",
      content: "garbage",
      said: /^Cannot use ".*key": it holds no OpenPGP key that can be read$/,
    },
    {
      name: "no file",
      content: undefined,
      said: /^Cannot read ".*key": there is no such file or directory: create it/,
    },
  ])("does not start with $name", async ({ content, said }) => {
    if (content !== undefined) await writeFile(keyFile, content, { mode: 0o600 });
    const opened = open();
    await expect(opened).rejects.toThrow(said);
    await expect(opened).rejects.toThrow(StartError);
  });

  it("takes up a new key, and signs by it what the old one had signed", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o600 });
    const { signer, metric } = await open();
    await signer.sign("body");
    expect(await metric("davit_signing_key_expiry_timestamp_seconds")).toBe(0);
    await writeFile(keyFile, gpg.exportSecret(second, { armor: true }), { mode: 0o600 });
    await expect.poll(() => signedBy(signer, "body")).toEqual({ isGood: true, fingerprint: second });
    const verifier = new Gpg();
    verifier.import(signer.publicKey);
    expect(verifier.verify(Buffer.from((await signer.sign("body")).armored), Buffer.from("body")).fingerprint).toBe(
      second,
    );
    verifier.stop();
    expect(await metric("davit_signing_key_expiry_timestamp_seconds")).toBeGreaterThan(systemClock.nowMs() / 1_000);
    expect(signer.attention()).toEqual([expect.stringMatching(/^sign: the signing key expires at 20/)]);
  });

  it("keeps its key while the file is garbage, and says so once", async () => {
    await writeFile(keyFile, gpg.exportSecret(first), { mode: 0o600 });
    const { signer, said, metric } = await open();
    expect([signer.attention(), await metric("davit_signing_key_problem")]).toEqual([[], 0]);
    await writeFile(keyFile, "garbage", { mode: 0o600 });
    const problem = /^sign: Cannot use ".*key": it holds no OpenPGP key that can be read; the last good key signs$/;
    await expect.poll(() => signer.attention()).toEqual([expect.stringMatching(problem)]);
    expect(await metric("davit_signing_key_problem")).toBe(1);
    expect(await signedBy(signer, "another body")).toEqual({ isGood: true, fingerprint: first });
    expect(said.filter((message) => message.includes("cannot be used"))).toHaveLength(1);
    await writeFile(keyFile, gpg.exportSecret(second), { mode: 0o600 });
    await expect.poll(() => signedBy(signer, "body")).toMatchObject({ fingerprint: second });
    expect(await metric("davit_signing_key_problem")).toBe(0);
  });
});

describe("a signer whose key ends", () => {
  const worker = new URL("./mortal-sign-worker.ts", import.meta.url);

  it("signs nothing new from then on, and still gives what it has signed", async () => {
    const clock = new FakeClock();
    await writeFile(keyFile, `${clock.nowMs() + 1_000}`, { mode: 0o600 });
    const { signer } = await open({ clock, worker });
    const known = await signer.sign("known");
    clock.stepWallClock(1_000);
    expect(signer.sign("known")).toBe(known);
    await expect(signer.sign("new")).rejects.toMatchObject({ reason: "expired" });
    expect(signer.attention()).toEqual([
      expect.stringMatching(/^sign: the signing key expired at .*, nothing is signed$/),
    ]);
  });

  it("keeps what no request changes, whatever is asked for beside it", async () => {
    await writeFile(keyFile, "0", { mode: 0o600 });
    const { signer } = await open({ worker });
    const asker = { isShared: true, client: () => "192.0.2.1" };
    const known = await signer.sign("many ask for this", asker);
    for (let at = 0; at < 10_001; at += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, next) => signer.sign(`flood ${at + next}`)));
    }
    expect(signer.sign("many ask for this", asker)).toBe(known);
    const again = signer.sign("flood 0");
    expect(again).toBeInstanceOf(Promise);
    await again;
  });

  it("ends with those who wait refused, and may be stopped twice", async () => {
    await writeFile(keyFile, "0", { mode: 0o600 });
    const { signer } = await open({ worker });
    const asked = signer.sign("x");
    await signer.stop();
    await signer.stop();
    await expect(asked).rejects.toMatchObject({ reason: "failed" });
    await expect(signer.sign("y")).rejects.toMatchObject({ reason: "failed" });
  });
});

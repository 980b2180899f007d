import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/lib/clock.ts";
import { FileError } from "../../../src/lib/files/watched-files.ts";
import { signDetached } from "../../../src/trust/sign/detached.ts";
import { readSigningKey } from "../../../src/trust/sign/signing-key.ts";
import { Gpg } from "../../helpers/gpg.ts";
import { missing } from "../../helpers/requirements.ts";

const body = Buffer.from('#!ipxe\nkernel /assets/vmlinuz name="ä"\r\nboot\n');
const passphrase = "two wörds";
const dayMs = 24 * 60 * 60 * 1_000;

// Making RSA keys takes seconds when others use the processor.
const keysLimitMs = 120_000;

/** Once the keys are there. */
let nowMs = 0;

function read(bytes: Buffer, given?: string, atMs = nowMs) {
  return readSigningKey({ bytes, passphrase: given }, atMs);
}

describe.skipIf(missing("gpg"))("the file of a signing key", () => {
  let gpg: Gpg;
  const fingerprints = new Map<string, string>();
  const of = (name: string) => fingerprints.get(name) ?? "";

  beforeAll(() => {
    gpg = new Gpg();
    const make = (name: string, options: Parameters<Gpg["makeKey"]>[1]) =>
      fingerprints.set(name, gpg.makeKey(`${name} <boot@example.com>`, options));
    make("rsa", { algorithm: "rsa3072" });
    make("p256", { algorithm: "nistp256" });
    make("p384", { algorithm: "nistp384" });
    make("ed25519", { algorithm: "ed25519" });
    make("locked", { algorithm: "ed25519", passphrase });
    make("subkey", { algorithm: "ed25519", usage: "cert" });
    gpg.addSubkey(of("subkey"), { algorithm: "rsa2048" });
    make("certify", { algorithm: "ed25519", usage: "cert" });
    make("encrypts", { algorithm: "ed25519" });
    gpg.addSubkey(of("encrypts"), { algorithm: "cv25519", usage: "encr" });
    make("dsa", { algorithm: "dsa2048" });
    make("short", { algorithm: "rsa1024" });
    make("old", { algorithm: "ed25519", lifetime: "1d", madeAt: "20200101T000000" });
    make("old-part", { algorithm: "ed25519", usage: "cert", madeAt: "20200101T000000" });
    gpg.addSubkey(of("old-part"), { algorithm: "ed25519", lifetime: "1d", madeAt: "20200101T000000" });
    make("revoked", { algorithm: "ed25519" });
    gpg.revoke(of("revoked"));
    make("short-lived", { algorithm: "ed25519", lifetime: "10d" });
    nowMs = systemClock.nowMs();
    return () => gpg.stop();
  }, keysLimitMs);

  afterAll(() => fingerprints.clear());

  it.each([
    { name: "RSA", key: "rsa" },
    { name: "RSA, armored", key: "rsa", armor: true },
    { name: "ECDSA P-256", key: "p256" },
    { name: "ECDSA P-384", key: "p384", armor: true },
    { name: "Ed25519", key: "ed25519" },
    { name: "Ed25519, armored", key: "ed25519", armor: true },
    { name: "a key with a passphrase", key: "locked", passphrase },
    { name: "a certify-only key with a signing subkey", key: "subkey" },
    { name: "subkeys only", key: "subkey", subkeysOnly: true, armor: true },
    { name: "a key with an encryption subkey", key: "encrypts" },
  ])("of $name signs, and gpg finds the signature good", async ({ key, ...how }) => {
    const signing = await read(gpg.exportSecret(of(key), how), how.passphrase);
    expect(signing.info).toMatchObject({
      fingerprint: of(key),
      userId: `${key} <boot@example.com>`,
      expiresAtMs: undefined,
      publicKey: expect.stringMatching(
        /^-----BEGIN PGP PUBLIC KEY BLOCK-----\n.*\n-----END PGP PUBLIC KEY BLOCK-----\n$/s,
      ),
    });
    const { binary, armored } = await signDetached(signing, body, nowMs);
    const good = { isGood: true, fingerprint: of(key) };
    expect(gpg.verify(Buffer.from(binary), body)).toEqual(good);
    expect(gpg.verify(Buffer.from(armored), body)).toEqual(good);
    expect(gpg.verify(Buffer.from(binary), Buffer.from(`${body}x`))).toMatchObject({ isGood: false });
  });

  it.each(["rsa", "p256", "ed25519"])("of %s makes packets that GRUB finds its key by", async (key) => {
    const { binary, armored } = await signDetached(await read(gpg.exportSecret(of(key))), body, nowMs);
    const packets = gpg.packetsOf(Buffer.from(binary));
    expect(packets).toMatch(/version 4, created \d+, md5len 0, sigclass 0x00\n/);
    expect(packets).toMatch(/digest algo (8|9|10),/);
    expect(packets).toMatch(new RegExp(`^\\s+subpkt 16 len 8 \\(issuer key ID ${of(key).slice(-16)}\\)$`, "m"));
    expect(packets).toContain(`hashed subpkt 33 len 21 (issuer fpr v4 ${of(key)})`);
    const text =
      /^-----BEGIN PGP SIGNATURE-----\n\n([A-Za-z0-9+/=]+\n)+=[A-Za-z0-9+/]{4}\n-----END PGP SIGNATURE-----\n$/;
    expect(armored).toMatch(text);
  });

  it("may hold several: the first that can sign does", async () => {
    const parts = ["old", "certify", "p256", "ed25519"].map((key) => gpg.exportSecret(of(key)));
    expect((await read(Buffer.concat(parts))).info.fingerprint).toBe(of("p256"));
    const armored = ["certify", "ed25519"].map((key) => gpg.exportSecret(of(key), { armor: true }));
    const text = Buffer.concat([Buffer.from("Keys of the rack\n"), ...armored]);
    expect((await read(text)).info.fingerprint).toBe(of("ed25519"));
  });

  it("tells when its key ends", async () => {
    const { info } = await read(gpg.exportSecret(of("short-lived")));
    const days = ((info.expiresAtMs ?? 0) - nowMs) / dayMs;
    expect(Math.round(days)).toBe(10);
  });

  it("tells nothing secret", async () => {
    const { info } = await read(gpg.exportSecret(of("rsa")));
    expect(JSON.stringify(info)).not.toContain("PRIVATE");
    gpg.import(info.publicKey);
  });

  it.each([
    { name: "nothing", bytes: () => Buffer.alloc(0), said: "it is empty" },
    { name: "text", bytes: () => Buffer.from("a note to oneself\n"), said: "it holds no OpenPGP key that can be read" },
    {
      name: "a key of TLS",
      bytes: () => Buffer.from("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
      said: "it holds no OpenPGP key that can be read",
    },
    {
      name: "half a key",
      bytes: () => gpg.exportSecret(of("rsa")).subarray(0, 600),
      said: "it holds no OpenPGP key that can be read",
    },
    {
      name: "a public key",
      bytes: () => gpg.exportPublic(of("rsa")),
      said: "it holds a public key, and signing needs",
    },
    { name: "a certify-only key", bytes: () => gpg.exportSecret(of("certify")), said: "no part of it may sign" },
    { name: "a DSA key", bytes: () => gpg.exportSecret(of("dsa")), said: "it is a DSA key, which is too weak" },
    { name: "a short key", bytes: () => gpg.exportSecret(of("short")), said: "it is an RSA key of 1024 bits" },
    {
      name: "an expired key",
      bytes: () => gpg.exportSecret(of("old")),
      said: "it expired at 2020-01-02T00:00:00.000Z",
    },
    {
      name: "an expired signing subkey",
      bytes: () => gpg.exportSecret(of("old-part")),
      said: "its signing subkey expired at 2020-01-02T00:00:00.000Z",
    },
    { name: "a revoked key", bytes: () => gpg.exportSecret(of("revoked")), said: "it is revoked" },
    {
      name: "a primary key without its secret",
      bytes: () => gpg.exportSecret(of("encrypts"), { subkeysOnly: true }),
      said: "the secret of its signing key is not in the file",
    },
    {
      name: "several keys of which none can sign",
      bytes: () => Buffer.concat([gpg.exportSecret(of("old")), gpg.exportSecret(of("certify"))]),
      said: "none of its 2 private keys can sign; the first: it expired at 2020-01-02",
    },
  ])("is refused with $name, and why", async ({ bytes, said }) => {
    const reading = read(bytes());
    await expect(reading).rejects.toThrow(said);
    await expect(reading).rejects.toThrow(FileError);
  });

  it.each([
    {
      name: "without its passphrase",
      given: undefined,
      said: "it is encrypted, and there is no passphrase: give --sign",
    },
    { name: "with another passphrase", given: "wrong", said: "the passphrase is not that of the key" },
    { name: "with an empty passphrase", given: "", said: "the passphrase is not that of the key" },
  ])("is refused $name", async ({ given, said }) => {
    await expect(read(gpg.exportSecret(of("locked"), { passphrase }), given)).rejects.toThrow(said);
  });

  it("is refused while the clock is before the key was made", async () => {
    await expect(read(gpg.exportSecret(of("rsa")), undefined, nowMs - dayMs)).rejects.toThrow(
      "computer's clock is before",
    );
  });
});

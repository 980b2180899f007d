/**
 * Finds the signing key in the bytes of a key file: the first private key with a part that may sign and can be
 * unlocked. It accepts armored and binary files, several keys, signing subkeys, and files whose only secret part is a
 * subkey. It refuses everything else with a message of davit, and never passes on the library's messages.
 */

import {
  enums,
  type KeyID,
  type PrivateKey,
  readKeys,
  SecretKeyPacket,
  SecretSubkeyPacket,
  type Subkey,
  type Key as UnknownKey,
} from "openpgp";
import { dateOf, toRfc3339 } from "../../lib/clock.ts";
import { FileError } from "../../lib/files/watched-files.ts";

/** An unlocked key that may sign. */
export interface SigningKey {
  readonly privateKey: PrivateKey;
  /** The ID of the part that signs: of a subkey, or of the primary key. */
  readonly partId: KeyID;
  readonly info: KeyInfo;
}

/** The facts of a key that are public. */
export interface KeyInfo {
  /** 40 hexadecimal digits in upper case, as gpg shows them. */
  readonly fingerprint: string;
  /** Empty for a key without a user ID. */
  readonly userId: string;
  /** When the key or its signing part expires, Unix milliseconds; undefined for never. */
  readonly expiresAtMs: number | undefined;
  /** The public key, armored. */
  readonly publicKey: string;
}

/** What the operator gives for a key: the bytes of its file, and the passphrase. */
export interface KeyMaterial {
  readonly bytes: Uint8Array;
  /** Undefined if the operator gave none. */
  readonly passphrase: string | undefined;
  /** The prefix of the key's options; `signing` unless given. */
  readonly option?: SigningOption;
}

/** Which key of davit this is: `signing` for all answers, or `grub-signing` for `/grub` alone. */
export type SigningOption = "signing" | "grub-signing";

/** The primary key or one of its subkeys. */
type KeyPart = PrivateKey | Subkey;

/**
 * Finds and unlocks the signing key.
 * @param nowMs the time of the wall clock, Unix milliseconds.
 * @throws {FileError} with the reason why no key of the file can sign.
 */
export async function readSigningKey(material: KeyMaterial, nowMs: number): Promise<SigningKey> {
  const keys = await readAllKeys(material.bytes);
  const privateKeys = keys.filter((key) => key.isPrivate());
  if (privateKeys.length === 0) {
    throw new FileError("it holds a public key, and signing needs the private one (gpg --export-secret-keys)");
  }
  const problems: FileError[] = [];
  for (const key of privateKeys) {
    try {
      return await asSigningKey(key, material, dateOf(nowMs));
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      problems.push(error);
    }
  }
  const [first] = problems;
  if (problems.length === 1 && first !== undefined) throw first;
  throw new FileError(`none of its ${problems.length} private keys can sign; the first: ${first?.message}`);
}

const armoredKey = /-----BEGIN PGP (PRIVATE|PUBLIC) KEY BLOCK-----.*?-----END PGP \1 KEY BLOCK-----/gs;

async function readAllKeys(bytes: Uint8Array): Promise<readonly UnknownKey[]> {
  if (bytes.length === 0) throw new FileError("it is empty");
  const text = Buffer.from(bytes).toString("latin1");
  // The library reads only the first block of a text. So davit reads each block by itself.
  const blocks = text.match(armoredKey) ?? [];
  try {
    if (blocks.length === 0) return await readKeys({ binaryKeys: bytes });
    return (await Promise.all(blocks.map((armoredKeys) => readKeys({ armoredKeys })))).flat();
  } catch (error) {
    throw new FileError("it holds no OpenPGP key that can be read", { cause: error });
  }
}

async function asSigningKey(key: PrivateKey, material: KeyMaterial, now: Date): Promise<SigningKey> {
  // No GRUB, and no gpg of a current distribution, reads the signatures of newer key versions.
  if (key.keyPacket.version !== 4) throw new FileError("it is no key of version 4, which gpg and GRUB read");
  const parts = await partsThatMaySign(key, now);
  if (parts.length === 0) throw new FileError(await whyItMayNotSign(key, now));
  const part = parts.find((candidate) => secretOf(candidate)?.isMissingSecretKeyMaterial() === false);
  if (part === undefined) {
    throw new FileError("the secret of its signing key is not in the file, but perhaps on a smartcard");
  }
  await unlock(part, material);
  return { privateKey: key, partId: part.getKeyID(), info: await infoOf(key, part, now) };
}

/** Returns the parts of a key that may sign: the newest subkey first and the primary key last, as gpg chooses. */
async function partsThatMaySign(key: PrivateKey, now: Date): Promise<readonly KeyPart[]> {
  const newestFirst = key.subkeys.toSorted((a, b) => b.getCreationTime().getTime() - a.getCreationTime().getTime());
  const candidates: readonly KeyPart[] = [...newestFirst, key];
  const may = await Promise.all(candidates.map((part) => maySign(key, part, now)));
  return candidates.filter((_, at) => may[at]);
}

/**
 * True if a part may sign now. The library checks self-signatures, usage, revocations, expiry and the strength of the
 * algorithms.
 */
async function maySign(key: PrivateKey, part: KeyPart, now: Date): Promise<boolean> {
  try {
    await key.getSigningKey(part.getKeyID(), now);
    return true;
  } catch {
    // The library's error has no code. `whyItMayNotSign` finds the reason.
    return false;
  }
}

function secretOf({ keyPacket }: KeyPart): SecretKeyPacket | SecretSubkeyPacket | undefined {
  return keyPacket instanceof SecretKeyPacket || keyPacket instanceof SecretSubkeyPacket ? keyPacket : undefined;
}

/**
 * Unlocks only this part. Other parts of the file may lack their secret, or have another passphrase.
 * @throws {FileError} if the passphrase is missing or wrong.
 */
async function unlock(part: KeyPart, { passphrase, option = "signing" }: KeyMaterial): Promise<void> {
  const secret = secretOf(part);
  if (secret === undefined || secret.isDecrypted()) return;
  if (passphrase === undefined) {
    const variable = `DAVIT_${option.toUpperCase().replace("-", "_")}_PASSPHRASE`;
    const cure = `--${option}-passphrase-file FILE or the variable ${variable}`;
    throw new FileError(`it is encrypted, and there is no passphrase: give ${cure}`);
  }
  try {
    await secret.decrypt(passphrase);
    await secret.validate();
  } catch (error) {
    throw new FileError("the passphrase is not that of the key", { cause: error });
  }
}

async function infoOf(key: PrivateKey, part: KeyPart, now: Date): Promise<KeyInfo> {
  const ends = [await key.getExpirationTime(), "mainKey" in part ? await part.getExpirationTime(now) : null];
  const endsMs = ends.flatMap((end) => (end === null || typeof end === "number" ? [] : [end.getTime()]));
  return {
    fingerprint: key.getFingerprint().toUpperCase(),
    userId: (await key.getPrimaryUser(now)).user.userID?.userID ?? "",
    expiresAtMs: endsMs.length === 0 ? undefined : Math.min(...endsMs),
    publicKey: key.toPublic().armor(),
  };
}

/** The library accepts no shorter RSA key. gpg makes keys of 3072 bits by default. */
const minRsaBits = 2048;

/**
 * Returns why no part of a private key may sign, worded to follow the file's name and a colon. Of several reasons, it
 * returns the first. Reasons of the whole key come before those of its parts.
 */
async function whyItMayNotSign(key: PrivateKey, now: Date): Promise<string> {
  if (key.getCreationTime() > now) {
    return `it was made at ${toRfc3339(key.getCreationTime().getTime())}, and this computer's clock is before that`;
  }
  if (await key.isRevoked(undefined, undefined, now)) return "it is revoked";
  const end = whenPast(await key.getExpirationTime(), now);
  if (end !== undefined) return `it expired at ${end}`;
  return weakness(key) ?? (await whySubkeysMayNot(key, now)) ?? noPartMaySign;
}

const noPartMaySign =
  "no part of it may sign: it is for certifying or encrypting only, or its self-signature is too weak or missing";

function weakness(key: PrivateKey): string | undefined {
  const { algorithm, bits = 0 } = key.getAlgorithmInfo();
  if (algorithm === "dsa") return "it is a DSA key, which is too weak: use RSA, ECDSA or Ed25519";
  if (!algorithm.startsWith("rsa") || bits >= minRsaBits) return undefined;
  return `it is an RSA key of ${bits} bits, which is too weak: ${minRsaBits} or more are needed`;
}

async function whySubkeysMayNot(key: PrivateKey, now: Date): Promise<string | undefined> {
  for (const subkey of key.subkeys.filter(isForSigning)) {
    if (subkey.revocationSignatures.length > 0) return "its signing subkey is revoked";
    const end = whenPast(await subkey.getExpirationTime(now), now);
    if (end !== undefined) return `its signing subkey expired at ${end}`;
  }
  return undefined;
}

function isForSigning({ bindingSignatures }: Subkey): boolean {
  return bindingSignatures.some(({ keyFlags }) => ((keyFlags?.[0] ?? 0) & enums.keyFlags.signData) !== 0);
}

/** Returns the end of a key as RFC 3339 if it has passed, else undefined. */
function whenPast(end: Date | number | null, now: Date): string | undefined {
  return end === null || typeof end === "number" || end > now ? undefined : toRfc3339(end.getTime());
}

/**
 * Keys that encrypt texts at rest, by AES-256-GCM. A file has one key a line, 32 random bytes in base64. Empty lines
 * and lines that begin with `#` are ignored.
 */

import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from "node:crypto";
import { FileError } from "./watched-files.ts";

const algorithm = "aes-256-gcm";
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
// Eight digits are enough to distinguish the keys of one file, and reveal nothing of a random key.
const idLength = 8;

export class TextKey {
  /** The first 8 digits of the key's SHA-256 in lower-case hex. It names the key in texts for people. */
  readonly id: string;
  readonly #cipherKey: Buffer;
  readonly #digestKey: Buffer;

  /** @param secret 32 random bytes. */
  constructor(secret: Buffer) {
    this.id = hash("sha256", secret, "hex").slice(0, idLength);
    this.#cipherKey = derived(secret, "davit text");
    this.#digestKey = derived(secret, "davit text digest");
  }

  /** HMAC-SHA-256 of a text in lower-case hex. Without the key, nobody can check a guess of the text by it. */
  digest(text: string): string {
    return createHmac("sha256", this.#digestKey).update(text).digest("hex");
  }

  /**
   * Encrypts a text with a random nonce.
   * @param context where the text belongs. The result can only be decrypted with the same context.
   * @returns nonce, ciphertext and tag, in base64.
   */
  encrypt(text: string, context: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#cipherKey, nonce, { authTagLength: tagBytes });
    cipher.setAAD(Buffer.from(context));
    const encrypted = Buffer.concat([cipher.update(text), cipher.final()]);
    return Buffer.concat([nonce, encrypted, cipher.getAuthTag()]).toString("base64");
  }

  /** Returns the text that `encrypt` got; undefined if the key, the context or a byte differs. */
  decrypt(encoded: string, context: string): string | undefined {
    const bytes = Buffer.from(encoded, "base64");
    if (bytes.length < nonceBytes + tagBytes) return undefined;
    const tagAt = bytes.length - tagBytes;
    const nonce = bytes.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, this.#cipherKey, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(tagAt));
    const text = decipher.update(bytes.subarray(nonceBytes, tagAt));
    try {
      return Buffer.concat([text, decipher.final()]).toString("utf8");
    } catch {
      return undefined;
    }
  }
}

/**
 * Reads a file of keys, in their order.
 * @throws {FileError} if there is none, or a line is no key. The message has the line's number, never its text.
 */
export function readTextKeys(text: string): readonly TextKey[] {
  const lines = text.split("\n").map((line, at) => ({ line: line.trim(), number: at + 1 }));
  const given = lines.filter(({ line }) => line !== "" && !line.startsWith("#"));
  if (given.length === 0) throw new FileError("it has no key: openssl rand -base64 32 prints one");
  return given.map(({ line, number }) => {
    const secret = Buffer.from(line, "base64");
    if (secret.length !== keyBytes || secret.toString("base64") !== line)
      throw new FileError(`line ${number} is not ${keyBytes} bytes in base64: openssl rand -base64 32 prints a key`);
    return new TextKey(secret);
  });
}

function derived(secret: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", purpose, keyBytes));
}

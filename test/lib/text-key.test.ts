import { describe, expect, it } from "vitest";
import { readTextKeys, TextKey } from "../../src/lib/files/text-key.ts";

const [line, otherLine] = [
  "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=",
  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
];
const key = keyOf(line);
const other = keyOf(otherLine);
const text = "join-token-4711 \u00e9\u{1f511}";

function keyOf(base64: string): TextKey {
  return new TextKey(Buffer.from(base64, "base64"));
}

function refusalOf(file: string): string {
  try {
    readTextKeys(file);
    return "";
  } catch (error) {
    return String(error);
  }
}

describe("a key of texts", () => {
  it("decrypts what it encrypted, each time with other bytes, and with no part of the text in them", () => {
    const [one, another] = [key.encrypt(text, "/a"), key.encrypt(text, "/a")];
    expect(one).not.toBe(another);
    expect([one, another].map((each) => key.decrypt(each, "/a"))).toEqual([text, text]);
    expect(Buffer.from(one, "base64").toString("latin1")).not.toContain("join");
    expect(key.decrypt(key.encrypt("", "/a"), "/a")).toBe("");
  });

  it("decrypts nothing of another context, of another key, or that was changed or cut", () => {
    const bytes = Buffer.from(key.encrypt(text, "/a"), "base64");
    expect(key.decrypt(bytes.toString("base64"), "/b")).toBeUndefined();
    expect(other.decrypt(bytes.toString("base64"), "/a")).toBeUndefined();
    const changed = [...bytes].map((byte, at) => Buffer.from(bytes).fill(byte ^ 1, at, at + 1));
    const cut = [...bytes].map((_, at) => bytes.subarray(0, at));
    const read = [...changed, ...cut].map((each) => key.decrypt(each.toString("base64"), "/a"));
    expect(read).toEqual([...changed, ...cut].map(() => undefined));
    expect(key.decrypt(text, "/a")).toBeUndefined();
  });

  it("has a digest that only this key makes", () => {
    expect(key.digest(text)).toBe(keyOf(line).digest(text));
    expect(key.digest(text)).toMatch(/^[0-9a-f]{64}$/);
    expect(key.digest(text)).not.toBe(other.digest(text));
    expect(key.digest(text)).not.toBe(key.digest("other"));
  });
});

describe("a file of keys", () => {
  it("has one a line, in their order", () => {
    const keys = readTextKeys(`# the new one\n${otherLine}\r\n\n  ${line}`);
    expect(keys.map(({ id }) => id)).toEqual([other.id, key.id]);
  });

  it.each<[name: string, file: string, says: string]>([
    ["nothing", "", "it has no key"],
    ["only comments", "# none\n\n", "it has no key"],
    ["a line that is cut", `${line}\n${otherLine.slice(0, 20)}`, "line 2 is not 32 bytes in base64"],
    ["a line that lacks its last character", `\n${line.slice(0, -1)}`, "line 2 is not 32 bytes in base64"],
    ["hexadecimal digits", "ab".repeat(32), "line 1 is not 32 bytes in base64"],
    ["two keys on a line", `${line} ${otherLine}`, "line 1 is not 32 bytes in base64"],
  ])("with %s is refused, and the reason quotes nothing", (_, file, says) => {
    const refusal = refusalOf(file);
    expect(refusal).toContain(says);
    expect(refusal).toContain("openssl rand -base64 32");
    expect(refusal).not.toContain(line.slice(0, 8));
  });
});

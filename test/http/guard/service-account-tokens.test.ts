import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ServiceAccountTokens } from "../../../src/http/guard/service-account-tokens.ts";
import { diskFiles } from "../../../src/lib/files/files.ts";
import type { TokenKeys } from "../../../src/model/cluster-trust.ts";
import { parseJsonObject } from "../../../src/model/json.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { silentLog } from "../../helpers/test-store.ts";

const issuer = "https://kubernetes.default.svc.cluster.local";
const subject = "system:serviceaccount:lab:davit-boot";
type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

let first: KeyPair;
let second: KeyPair;
let folder: string;
let clock: FakeClock;
/** What the cluster answers; undefined while it is away. */
let cluster: TokenKeys | undefined;
let asked: number;
const running: ServiceAccountTokens[] = [];

beforeAll(async () => {
  first = await generateKeyPair("RS256", { extractable: true });
  second = await generateKeyPair("ES256", { extractable: true });
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-accounts-"));
  clock = new FakeClock();
  cluster = await keysOf({ first });
  asked = 0;
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((tokens) => tokens.stop()));
  await rm(folder, { recursive: true });
});

async function keysOf(pairs: Readonly<Record<string, KeyPair>>): Promise<TokenKeys> {
  const keys = Object.entries(pairs).map(async ([kid, { publicKey }]) => ({ ...(await exportJWK(publicKey)), kid }));
  return { issuer, keys: (await Promise.all(keys)).map((key) => parseJsonObject(JSON.stringify(key)) ?? {}) };
}

async function start(): Promise<ServiceAccountTokens> {
  const tokens = new ServiceAccountTokens({
    allowed: ["lab/davit-boot", "lab/both"],
    reading: ["lab/reader", "lab/both"],
    audience: "davit",
    fetchKeys: () => {
      asked += 1;
      return cluster === undefined ? Promise.reject(new Error("away")) : Promise.resolve(cluster);
    },
    files: diskFiles,
    directory: folder,
    clock,
    log: silentLog,
  });
  running.push(tokens);
  await tokens.start();
  return tokens;
}

interface Claims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: string | string[];
  readonly exp?: number;
  readonly nbf?: number;
}

/** A token for an hour, with these claims instead of good ones. */
async function tokenOf(claims: Claims = {}, { pair = first, kid = "first", alg = "RS256" } = {}): Promise<string> {
  const nowSeconds = Math.floor(clock.nowMs() / 1_000);
  const good = { iss: issuer, sub: subject, aud: ["davit"], exp: nowSeconds + 3_600 };
  return await new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg, kid }).sign(pair.privateKey);
}

const inSeconds = (seconds: number) => Math.floor(clock.nowMs() / 1_000) + seconds;

describe("the token of a ServiceAccount", () => {
  it("that is allowed lets in, and is known from then on until it expires", async () => {
    const tokens = await start();
    const token = await tokenOf();
    expect(tokens.known(token)).toBeUndefined();
    expect(await tokens.accessOf(token)).toBe("write");
    expect(tokens.known(token)).toBe("write");
    await clock.advance(3_599_000);
    expect(tokens.known(token)).toBe("write");
    await clock.advance(1_000);
    expect(tokens.known(token)).toBeUndefined();
    expect(await tokens.accessOf(token)).toBeUndefined();
  });

  it("is good for reading alone, or for writing too, as its account is listed", async () => {
    const tokens = await start();
    const reader = await tokenOf({ sub: "system:serviceaccount:lab:reader" });
    expect(await tokens.accessOf(reader)).toBe("read");
    expect(tokens.known(reader)).toBe("read");
    expect(await tokens.accessOf(await tokenOf({ sub: "system:serviceaccount:lab:both" }))).toBe("write");
  });

  it.each<[string, () => Claims]>([
    ["of another account", () => ({ sub: "system:serviceaccount:lab:default" })],
    ["of an account of that name elsewhere", () => ({ sub: "system:serviceaccount:other:davit-boot" })],
    ["of a user of that name", () => ({ sub: "lab:davit-boot" })],
    ["for another audience", () => ({ aud: ["https://kubernetes.default.svc"] })],
    ["of another issuer", () => ({ iss: "https://elsewhere" })],
    ["that has expired", () => ({ exp: inSeconds(-60) })],
    ["that is not good yet", () => ({ nbf: inSeconds(60) })],
  ])("%s does not", async (_what, claims) => {
    expect(await (await start()).accessOf(await tokenOf(claims()))).toBeUndefined();
  });

  it("by another key under the same name does not", async () => {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true });
    expect(await (await start()).accessOf(await tokenOf({}, { pair: { ...first, privateKey } }))).toBeUndefined();
  });

  it("without a signature does not", async () => {
    const unsigned = new UnsecuredJWT({ iss: issuer, sub: subject, aud: ["davit"], exp: inSeconds(60) }).encode();
    const tokens = await start();
    for (const token of [unsigned, `${unsigned}AAAA`, "a.b.c", "word", ""])
      expect(await tokens.accessOf(token)).toBeUndefined();
  });

  it("signed with a public key as if that were a secret does not", async () => {
    const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(first.publicKey)));
    const forged = await new SignJWT({ iss: issuer, sub: subject, aud: ["davit"], exp: inSeconds(60) })
      .setProtectedHeader({ alg: "HS256", kid: "first" })
      .sign(secret);
    expect(await (await start()).accessOf(forged)).toBeUndefined();
  });

  it("is judged while the cluster is away, also after a restart", async () => {
    expect(await (await start()).accessOf(await tokenOf())).toBe("write");
    await expect.poll(() => diskFiles.list(folder)).toEqual(["service-account-keys.json"]);
    cluster = undefined;
    expect(await (await start()).accessOf(await tokenOf({ exp: inSeconds(1_800) }))).toBe("write");
  });

  it("lets nobody in as long as no keys were ever read", async () => {
    cluster = undefined;
    const tokens = await start();
    const token = await tokenOf();
    expect(await tokens.accessOf(token)).toBeUndefined();
    cluster = await keysOf({ first });
    await clock.advance(10_000);
    expect(await tokens.accessOf(token)).toBe("write");
  });

  it("by a new key has the keys read anew, and nobody can have them read all the time", async () => {
    const tokens = await start();
    const renewed = await tokenOf({}, { pair: second, kid: "second", alg: "ES256" });
    expect(await tokens.accessOf(renewed)).toBeUndefined();
    cluster = await keysOf({ first, second });
    for (let count = 0; count < 100; count++) expect(await tokens.accessOf(renewed)).toBeUndefined();
    expect(asked).toBe(1);
    await clock.advance(10_000);
    expect(await tokens.accessOf(renewed)).toBe("write");
    expect(asked).toBe(2);
  });

  it("by a key that the cluster withdrew no longer lets in, once the keys are read", async () => {
    const tokens = await start();
    const token = await tokenOf({ exp: inSeconds(365 * 86_400) });
    expect(await tokens.accessOf(token)).toBe("write");
    cluster = await keysOf({ second });
    const later = () => clock.advance(60_000).then(() => tokens.known(token));
    await expect.poll(later).toBeUndefined();
    expect(await tokens.accessOf(token)).toBeUndefined();
  });

  it("is judged by fresh keys where those on the disk are garbage", async () => {
    await writeFile(join(folder, "service-account-keys.json"), "{");
    expect(await (await start()).accessOf(await tokenOf())).toBe("write");
  });
});

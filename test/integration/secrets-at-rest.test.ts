/**
 * Texts of Secrets at rest, in the files of real processes: with --secrets-key-file no file has the text. Without the
 * option the same search finds it, so it can fail.
 */

import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readTextKeys } from "../../src/lib/files/text-key.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 30_000, interval: 50 };
const query = "mac=52-54-00-a1-9c-ae";

let folder: string;
const running: { stop(signal?: "SIGKILL"): Promise<unknown> }[] = [];
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-at-rest-"));
  for (const name of ["manifests", "kept"]) await mkdir(at(name), { mode: 0o700 });
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

/** A secret that no other run has. */
const plant = () => `planted-${randomBytes(12).toString("hex")}`;
/** A key by the documented command. */
const newKey = () => execFileSync("openssl", ["rand", "-base64", "32"], { encoding: "utf8" });
const idOf = (line: string) => readTextKeys(line)[0]?.id ?? "";

async function writeObjects(secret: string): Promise<void> {
  const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/vmlinuz}
  generic: {templateFrom: {secretKeyRef: {name: join, key: token}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: all}
spec: {profileRef: {name: web}, matchAll: true}
---
apiVersion: v1
kind: Secret
metadata: {name: join, labels: {davit.dev/allow-template: "true"}}
stringData: {token: ${secret}}
`;
  await writeFile(at("manifests/objects.yaml"), objects);
}

async function writeKeys(...lines: readonly string[]): Promise<readonly string[]> {
  await writeFile(at("keys"), lines.join(""), { mode: 0o600 });
  return ["--secrets-key-file", at("keys")];
}

async function serve(args: readonly string[] = [], dataDir = at("kept/data")): Promise<DavitProcess> {
  const davit = await startDavit({ manifests: at("manifests"), dataDir, args });
  running.push(davit);
  return davit;
}

async function follow(args: readonly string[], copy = "copy"): Promise<DavitBootProcess> {
  const davit = await startDavitBoot(["--copy-file", at(`kept/${copy}`), ...args]);
  running.push(davit);
  return davit;
}

async function answer({ bootUrl }: DavitBootProcess): Promise<string> {
  return await (await fetch(`${bootUrl}/generic?${query}`)).text();
}

async function attention({ opsUrl }: DavitBootProcess): Promise<string> {
  return await (await fetch(`${opsUrl}/readyz?verbose`)).text();
}

/** The files below a folder that have a text in any byte. */
async function filesWith(text: string, below = at("kept")): Promise<readonly string[]> {
  const entries = await readdir(below, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const found = await Promise.all(files.map(async (file) => ((await readFile(file)).includes(text) ? [file] : [])));
  return found.flat().map((file) => file.slice(below.length + 1));
}

async function backup(from: DavitProcess): Promise<string> {
  expect(await runCommand(["backup", ...storeOf(from), "--output", at("kept/backup"), "--force"])).toMatchObject({
    code: 0,
  });
  return await secretsOf("kept/backup");
}

/** What `davit inspect` says of the texts of Secrets. */
async function secretsOf(path: string): Promise<string> {
  const { code, output } = await runCommand(["inspect", at(path)]);
  expect(code).toBe(0);
  return output
    .split("\n")
    .filter((line) => /texts/.test(line))
    .join()
    .trim();
}

it("no name of a text is its SHA-256, no web page reads davit's documents, and a restart keeps the names", async () => {
  const secret = plant();
  await writeObjects(secret);
  const documents = async ({ storeUrl }: DavitProcess) =>
    await fetch(`${storeUrl}/v2/keys/davit/profiles?recursive=true`);
  const before = await serve();
  await expect.poll(() => answer(before), soon).toBe(secret);
  const [read, whole] = [await documents(before), await fetch(`${before.storeUrl}/v2/keys/?recursive=true`)];
  const text = await read.text();
  expect(text).toContain("secret");
  for (const shown of [text, await whole.text()]) {
    expect(shown).not.toContain(createHash("sha256").update(secret).digest("hex"));
    expect(shown).not.toContain(secret);
  }
  for (const { headers } of [read, whole]) expect(headers.get("access-control-allow-origin")).toBe(null);
  const others = await fetch(`${before.storeUrl}/v2/keys/mine?dir=true`, { method: "PUT" });
  expect(others.headers.get("access-control-allow-origin")).toBe("*");
  await before.stop();
  const after = await serve();
  await expect.poll(() => answer(after), soon).toBe(secret);
  expect(JSON.parse(await (await documents(after)).text()).node).toEqual(JSON.parse(text).node);
}, 120_000);

it("No file has the text once there is a key, and none an older ciphertext after a rotation", async () => {
  const secret = plant();
  const [first, second] = [newKey(), newKey()];
  await writeObjects(secret);
  const before = await serve();
  const followerBefore = await follow(storeOf(before));
  for (const each of [before, followerBefore]) await expect.poll(() => answer(each), soon).toBe(secret);
  expect(await backup(before)).toBe("texts of Secrets  1 in the clear");
  // A stop writes the copy of the follower.
  for (const each of [followerBefore, before]) await each.stop();
  expect(await filesWith(secret)).toEqual(["backup", "copy", expect.stringMatching(/^data\/\d+\.log$/)]);
  expect(await secretsOf("kept/data")).toBe("texts of Secrets  1 in the clear");

  // On: the texts in the clear leave log, snapshots and history.
  const keys = await writeKeys(first);
  const writer = await serve(keys);
  const follower = await follow([...storeOf(writer), ...keys]);
  const answers = new Set<string>();
  const ask = (davit: DavitBootProcess) =>
    answer(davit).then(
      (each) => answers.add(each),
      () => undefined,
    );
  const polling = setInterval(() => [writer, follower].map(ask), 20);
  for (const each of [writer, follower]) await expect.poll(() => answer(each), soon).toBe(secret);
  await expect.poll(() => filesWith(secret), soon).toEqual(["backup"]);
  expect(await backup(writer)).toBe(`texts of Secrets  1 encrypted with key ${idOf(first)}`);
  expect(await filesWith(secret)).toEqual([]);

  // Rotation: the new key comes first, and the other one goes when nothing needs it.
  const named = (line: string) => filesWith(`encrypted-1-${idOf(line)}`);
  expect(await named(first)).toEqual([
    "backup",
    "copy",
    expect.stringMatching(/^data\/.*snapshot$/),
    expect.any(String),
  ]);
  await writeKeys(second, first);
  await expect.poll(() => named(second), soon).toContain("copy");
  await expect.poll(() => named(first), soon).toEqual(["backup"]);
  expect(await backup(writer)).toBe(`texts of Secrets  1 encrypted with key ${idOf(second)}`);
  expect(await named(first)).toEqual([]);
  await writeKeys(second);
  const readAgain = () => writer.log.filter(({ msg }) => String(msg).startsWith("keys of Secrets")).length;
  await expect.poll(readAgain, soon).toBe(2);

  // A file that is half written changes nothing.
  await writeKeys(second.slice(0, 20));
  await expect.poll(() => attention(writer), soon).toContain("line 1 is not 32 bytes in base64");
  expect(await answer(writer)).toBe(secret);
  clearInterval(polling);
  expect([...answers].filter((each) => each !== secret && !each.startsWith("503 "))).toEqual([]);
  for (const each of [follower, writer]) await each.stop();
  expect(await secretsOf("kept/data")).toBe(`texts of Secrets  1 encrypted with key ${idOf(second)}`);
  expect(JSON.stringify([writer.log, follower.log])).not.toContain(secret);

  // Without the option, davit would replace the text by one in the clear.
  await expect(serve()).rejects.toThrow(
    `Cannot use the store: a Secret's text in it cannot be read: it is encrypted with key ${idOf(second)}, which is not ` +
      "here: put this key into the file of --secrets-key-file",
  );
  expect(await filesWith(secret)).toEqual([]);
});

describe("a follower", () => {
  it("without the key makes machines wait that need the text, and serves it when the key comes", async () => {
    const secret = plant();
    const [key, other] = [newKey(), newKey()];
    await writeObjects(secret);
    const writer = await serve(await writeKeys(key));
    await writeFile(at("follower-keys"), other, { mode: 0o600 });
    const follower = await follow([...storeOf(writer), "--secrets-key-file", at("follower-keys")]);
    const keyless = await follow(storeOf(writer), "keyless");
    for (const each of [follower, keyless]) {
      await expect.poll(() => answer(each), soon).toBe("503 config not decryptable\n");
      expect(await (await fetch(`${each.bootUrl}/ipxe?${query}`)).text()).toContain("/assets/vmlinuz");
      expect(await attention(each)).toContain(
        `Profile default/web: spec.generic: it is encrypted with key ${idOf(key)}`,
      );
    }
    await writeFile(at("follower-keys"), `${other}${key}`);
    await expect.poll(() => answer(follower), soon).toBe(secret);

    // Its copy was changed while it did not run, and the store is away.
    for (const each of [follower, keyless, writer]) await each.stop();
    await tamper(at("kept/copy"));
    const alone = await follow([
      ...storeOf(writer),
      "--secrets-key-file",
      at("follower-keys"),
      "--limit",
      "source-grace=1s",
    ]);
    await expect.poll(() => answer(alone), soon).toBe("503 config not decryptable\n");
    expect(await attention(alone)).toContain("the stored text is not what key");
  });
});

/** Changes one character of the encrypted text in a follower's copy, and the copy's checksum with it. */
async function tamper(path: string): Promise<void> {
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n").slice(0, -1);
  const changed = lines.map((line) => {
    if (!line.includes("/_secrets/")) return line;
    const { text, ...rest } = JSON.parse(line);
    return JSON.stringify({ ...rest, text: `${text[0] === "A" ? "B" : "A"}${text.slice(1)}` });
  });
  expect(changed).not.toEqual(lines);
  const whole = `${changed.join("\n")}\n`;
  const sum = execFileSync("openssl", ["dgst", "-sha256", "-r"], { input: whole, encoding: "utf8" }).slice(0, 64);
  await writeFile(path, `${whole}${JSON.stringify({ kind: "end", sha256: sum })}\n`);
}

describe.skipIf(missing("etcd", "etcdctl"))("a store in etcd", () => {
  it("has the text only without a key: in the dump of its keys, and in the files of etcd", async () => {
    const [clear, encrypted] = [plant(), plant()];
    const etcd = await startEtcdV3();
    running.push(etcd);
    const dump = (prefix: string) =>
      execFileSync("etcdctl", ["--endpoints", etcd.urls[0]?.origin ?? "", "get", prefix, "--prefix"], {
        env: { ...process.env, ETCDCTL_API: "3" },
        encoding: "utf8",
      });
    for (const [secret, prefix, args] of [
      [clear, "/clear/", []],
      [encrypted, "/encrypted/", await writeKeys(newKey())],
    ] as const) {
      await writeObjects(secret);
      const place = [
        "--store-etcd-endpoints",
        etcd.urls.map(({ origin }) => origin).join(),
        "--store-etcd-prefix",
        prefix,
        "--store-address",
      ];
      const davit = await serve(
        [...place, "127.0.0.1:0", "--store-advertise-url", "http://127.0.0.1:1", ...args],
        at(prefix),
      );
      await expect.poll(() => answer(davit), soon).toBe(secret);
      await davit.stop();
      expect(dump(prefix)).toContain("/davit/_secrets/default/web");
    }
    const data = etcd.all[0]?.dataDir ?? "";
    expect([dump("/clear/").includes(clear), (await filesWith(clear, data)).length > 0]).toEqual([true, true]);
    expect([dump("/encrypted/").includes(encrypted), await filesWith(encrypted, data)]).toEqual([false, []]);
  });
});

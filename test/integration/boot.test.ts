/** `davit boot` as its users run it: processes that follow the store of another one, and what machines get of them. */

import { copyFile, mkdir, mkdtemp, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { makeAuthority } from "../helpers/certificates.ts";
import { missing } from "../helpers/requirements.ts";

const mac = "52:54:00:a1:9c:ae";
const soon = { timeout: 20_000 };

const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/vmlinuz, args: [quiet]}
  generic: {templateFrom: {secretKeyRef: {name: texts, key: motd}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "${mac}"}}}
---
apiVersion: v1
kind: Secret
metadata: {name: texts, labels: {davit.dev/allow-template: "true"}}
stringData: {motd: from a secret}
`;

let folder: string;
let manifests: string;
const running: DavitBootProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-boot-"));
  manifests = join(folder, "manifests");
  await mkdir(manifests);
  await writeObjects(objects);
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop()));
  await rm(folder, { recursive: true });
});

async function writeObjects(text: string): Promise<void> {
  await writeFile(join(folder, "next.yaml"), text);
  await rename(join(folder, "next.yaml"), join(manifests, "objects.yaml"));
}

async function serve(args: readonly string[] = [], dataDir = "data"): Promise<DavitProcess> {
  const davit = await startDavit({ manifests, dataDir: join(folder, dataDir), args });
  running.push(davit);
  return davit;
}

async function boot(...args: readonly string[]): Promise<DavitBootProcess> {
  const davit = await startDavitBoot(args);
  running.push(davit);
  return davit;
}

async function get(url: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url);
  return { status: response.status, body: await response.text() };
}

const script = ({ bootUrl }: DavitBootProcess) => get(`${bootUrl}/ipxe?mac=${mac}`);
const scriptWith = (args: string) => ({ status: 200, body: `#!ipxe\nkernel /assets/vmlinuz ${args}\nboot\n` });

async function metric({ opsUrl }: DavitBootProcess, name: string): Promise<number> {
  const { body } = await get(`${opsUrl}/metrics`);
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(body)?.[1]);
}

/** Where a store listens, to have it listen there again. */
function storeAddress({ storeUrl }: DavitProcess): readonly string[] {
  return ["--store-address", new URL(storeUrl).host];
}

describe("davit boot", () => {
  it("answers machines as the store's own davit does, templates of Secrets and changes too", async () => {
    const davit = await serve();
    const follower = await boot(...storeOf(davit));
    expect(await script(follower)).toEqual(scriptWith("quiet"));
    expect((await get(`${follower.bootUrl}/generic?mac=${mac}`)).body).toContain("from a secret");
    expect(await get(`${follower.opsUrl}/readyz`)).toEqual({ status: 200, body: "ok\n" });
    await writeObjects(objects.replace("quiet", "debug"));
    await expect.poll(() => script(follower), soon).toEqual(scriptWith("debug"));
    expect(await metric(follower, "davit_follow_connected")).toBe(1);
    expect(await metric(davit, "davit_store_followers")).toBe(1);
  });

  it("is on the console of the store's own davit, by its name, and shows whom it follows", async () => {
    const davit = await serve();
    const follower = await boot(...storeOf(davit));
    const { body } = await get(`${davit.opsUrl}/console/health`);
    expect(body).toMatch(new RegExp(`<th scope="row">${hostname()}</th>\n<td>127\\.0\\.0\\.1</td>`));
    const own = (await get(`${follower.opsUrl}/console/health`)).body;
    expect(own).toContain(new URL(davit.storeUrl).origin);
    expect(own).toContain("connected</span>");
  });

  it("lets the machine of a removed Group wait until its tombstone ends in the store", async () => {
    const davit = await serve(["--tombstone-ttl", "2s"]);
    const follower = await boot(...storeOf(davit));
    const statuses: number[] = [];
    const status = async () => {
      const last = (await script(follower)).status;
      if (statuses.at(-1) !== last) statuses.push(last);
      return last;
    };
    expect(await status()).toBe(200);
    await writeObjects(objects.split("---\n").toSpliced(1, 1).join("---\n"));
    await expect.poll(status, { ...soon, interval: 10 }).toBe(404);
    expect(statuses).toEqual([200, 503, 404]);
  });

  it("goes on answering while the store is gone, and follows it again after a crash and a restart", async () => {
    const davit = await serve();
    const follower = await boot(...storeOf(davit));
    await davit.stop("SIGKILL");
    await expect.poll(() => metric(follower, "davit_follow_connected"), soon).toBe(0);
    expect(await script(follower)).toEqual(scriptWith("quiet"));
    const { status, body } = await get(`${follower.opsUrl}/readyz?verbose`);
    expect([status, body]).toEqual([200, expect.stringMatching(/^\[!\] follow: the store at .* is not followed now/m)]);
    await serve(storeAddress(davit));
    await writeObjects(objects.replace("quiet", "debug"));
    await expect.poll(() => script(follower), soon).toEqual(scriptWith("debug"));
  });

  it("takes over another store at the same address, once that has a finished sync", async () => {
    const davit = await serve();
    const follower = await boot(...storeOf(davit));
    await davit.stop();
    await writeObjects(objects.replace("quiet", "anew"));
    // It shows the same token: that of the place where the follower looks.
    await mkdir(join(folder, "other-data"), { mode: 0o700 });
    await copyFile(join(davit.dataDir, "local-token"), join(folder, "other-data/local-token"));
    await serve(storeAddress(davit), "other-data");
    await expect.poll(() => script(follower), soon).toEqual(scriptWith("anew"));
  });

  it("answers after a restart without the store, from its copy on disk, which is its owner's alone", async () => {
    const copyFile = join(folder, "copy");
    const davit = await serve();
    const args = [...storeOf(davit), "--copy-file", copyFile, "--limit", "source-grace=100ms"];
    const follower = await boot(...args);
    await expect.poll(() => stat(copyFile).then(({ mode }) => mode & 0o777), soon).toBe(0o600);
    await davit.stop();
    expect(await follower.stop("SIGKILL")).toBeNull();
    const again = await boot(...args);
    expect(await script(again)).toEqual(scriptWith("quiet"));
    expect(again.log.map(({ msg }) => msg)).toContain("source not heard in time, serving the copy on disk");
    expect(await metric(again, "davit_follow_age_seconds")).toBeGreaterThan(0);
    await serve(storeAddress(davit));
    await writeObjects(objects.replace("quiet", "debug"));
    await expect.poll(() => script(again), soon).toEqual(scriptWith("debug"));
  });

  it("stops on SIGTERM with exit code 0", async () => {
    const follower = await boot(...storeOf(await serve()));
    expect(await follower.stop()).toBe(0);
  });

  it.each([
    { name: "a token file without a token", file: "# none\n", said: /^Cannot use ".*tokens": it has no token$/m },
    { name: "a token file with half a token", file: "short\n", said: /^Cannot use ".*tokens": the token of line 1/m },
  ])("does not start with $name", async ({ file, said }) => {
    const path = join(folder, "tokens");
    await writeFile(path, file, { mode: 0o600 });
    await expect(boot("--store", "http://127.0.0.1:1", "--store-token-file", path)).rejects.toThrow(said);
  });
});

describe.skipIf(missing("openssl"))("davit boot with a guarded store", () => {
  it("shows its certificate and its token, and goes on when both ends get new ones", async () => {
    const authority = makeAuthority(folder);
    const own = (name: string) => {
      const { certFile, keyFile } = authority.issue(name);
      return ["--store-cert-file", certFile, "--store-key-file", keyFile];
    };
    const [theirTokens, ourTokens] = [join(folder, "their-tokens"), join(folder, "our-tokens")];
    await writeFile(theirTokens, "the-first-token-0123\n", { mode: 0o600 });
    await writeFile(ourTokens, "the-first-token-0123\n", { mode: 0o600 });
    const door = [...own("server"), "--store-client-ca-file", authority.certFile, "--store-token-file", theirTokens];
    const davit = await serve(door);
    expect(davit.storeUrl).toMatch(/^https:/);
    const ours = [...own("client"), "--store-ca-file", authority.certFile, "--store-token-file", ourTokens];
    const follower = await boot("--store", davit.storeUrl, ...ours);
    await writeFile(theirTokens, "the-other-token-0123\n");
    const why = () => follower.log.map((entry) => entry.why);
    await expect.poll(why, soon).toContain("status 401");
    expect(await script(follower)).toEqual(scriptWith("quiet"));
    await writeFile(ourTokens, "the-other-token-0123\n");
    await writeObjects(objects.replace("quiet", "debug"));
    await expect.poll(() => script(follower), soon).toEqual(scriptWith("debug"));
  });
});

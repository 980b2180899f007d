/**
 * Profiles that install, and everybody who cannot know what the objects say by now: a follower that was cut off, a
 * follower of a store that cannot read its source, a copy on disk. What boots from the disk is answered all the time.
 */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;
const maxStaleness = ["--install-max-source-age", "2s"];

const objectsWith = (hold: boolean) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, boot: {kernel: /assets/wipe}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: running}
spec: {profileRef: {name: disk}, selector: {matchLabels: {mac: "52:54:00:00:00:01"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: "new"}
spec: {profileRef: {name: wipe}, hold: ${hold}, selector: {matchLabels: {mac: "52:54:00:00:00:02"}}}
`;

let folder: string;
let manifests: string;
const running: DavitBootProcess[] = [];
const stops: (() => void)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-staleness-"));
  manifests = join(folder, "manifests");
  await mkdir(manifests);
  await writeObjects(false);
});

afterEach(async () => {
  for (const stop of stops.splice(0)) stop();
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

async function writeObjects(hold: boolean): Promise<void> {
  await writeFile(join(folder, "next.yaml"), objectsWith(hold));
  await rename(join(folder, "next.yaml"), join(manifests, "objects.yaml"));
}

function groupOf(name: string, mac: string, more = "hold: false", profile = "wipe"): string {
  const spec = `{profileRef: {name: ${profile}}, selector: {matchLabels: {mac: "${mac}"}}, ${more}}`;
  return `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: "${name}"}\nspec: ${spec}\n`;
}

/** The same objects, each in a file of its own. */
async function writeParts(): Promise<void> {
  const profileOf = (name: string, spec: string) =>
    `apiVersion: davit.dev/v1alpha1\nkind: Profile\nmetadata: {name: ${name}}\nspec: {${spec}}\n`;
  const reference = "generic: {templateFrom: {configMapKeyRef: {name: texts, key: a}}}";
  const files = {
    "objects.yaml": [
      profileOf("disk", "boot: {kernel: /assets/disk}"),
      groupOf("running", "52:54:00:00:00:01", "hold: false", "disk"),
    ].join("---\n"),
    "group.yaml": groupOf("new", "52:54:00:00:00:02"),
    "profile.yaml": profileOf("wipe", `effect: Install, boot: {kernel: /assets/wipe}, ${reference}`),
    "text.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: texts}\ndata: {a: hello}\n",
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, "next"), text);
    await rename(join(folder, "next"), join(manifests, name));
  }
}

async function serve(args: readonly string[] = maxStaleness): Promise<DavitProcess> {
  const davit = await startDavit({ manifests, dataDir: join(folder, "data"), args });
  running.push(davit);
  return davit;
}

async function boot(store: string, args: readonly string[] = []): Promise<DavitBootProcess> {
  const limit = args.includes("--install-max-source-age") ? [] : maxStaleness;
  // Where the store keeps the token that it wants on loopback.
  const davit = await startDavitBoot(["--store", store, "--data-dir", join(folder, "data"), ...limit, ...args]);
  running.push(davit);
  return davit;
}

async function answerOf({ bootUrl }: DavitBootProcess, mac: string): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?mac=${mac}`);
  const text = await response.text();
  return /assets\/(\w+)/.exec(text)?.[1] ?? `${response.status} retry after ${response.headers.get("retry-after")}`;
}

const runningOne = (davit: DavitBootProcess) => answerOf(davit, "52:54:00:00:00:01");
const newOne = (davit: DavitBootProcess) => answerOf(davit, "52:54:00:00:00:02");
const waits = "503 retry after 5";

async function opsText({ opsUrl }: DavitBootProcess, path: string): Promise<string> {
  return await (await fetch(`${opsUrl}${path}`)).text();
}

/** Asks for both machines again and again, for as long as a follower might still think that it is well. */
async function answersFor(davit: DavitBootProcess, rounds: number): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    seen.add(`new ${await newOne(davit)}`).add(`running ${await runningOne(davit)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return seen;
}

/** Passes bytes on until it is told to keep those of the store to itself: connections stay, and nothing comes. */
async function startProxy(target: URL): Promise<{ url: string; swallow: () => void }> {
  const sockets = new Set<Socket>();
  let isSwallowing = false;
  const server: Server = createServer((client) => {
    const store = tcpConnect(Number(target.port), "127.0.0.1");
    sockets.add(client).add(store);
    for (const socket of [client, store]) socket.on("error", () => {});
    client.pipe(store);
    store.on("data", (bytes) => isSwallowing || client.write(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}`, swallow: () => (isSwallowing = true) };
}

describe("a machine of a Profile that installs", { timeout: limitMs }, () => {
  it("waits where a follower does not hear its store any more, whatever was held since", async () => {
    const davit = await serve();
    const follower = await boot(davit.storeUrl);
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
    process.kill(davit.pid, "SIGSTOP");
    await writeObjects(true);
    await expect.poll(() => newOne(follower), soon).toBe(waits);
    expect(await answersFor(follower, 40)).toEqual(new Set([`new ${waits}`, "running disk"]));
    expect(await opsText(follower, "/readyz?verbose")).toContain("no Profile with effect Install is answered");
    const metrics = await opsText(follower, "/metrics");
    expect(metrics).toMatch(/^davit_install_doubt\{doubt="stale"\} 1$/m);
    expect(Number(/^davit_source_staleness_seconds (\S+)$/m.exec(metrics)?.[1])).toBeGreaterThan(2);
    // The store goes on: now the hold is known.
    process.kill(davit.pid, "SIGCONT");
    await expect.poll(() => newOne(davit), soon).toBe(waits);
    expect(await answersFor(follower, 40)).toEqual(new Set([`new ${waits}`, "running disk"]));
    await writeObjects(false);
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
  });

  it("waits where something between keeps what the store says", async () => {
    const davit = await serve();
    const proxy = await startProxy(new URL(davit.storeUrl));
    const follower = await boot(proxy.url);
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
    proxy.swallow();
    await writeObjects(true);
    await expect.poll(() => newOne(follower), soon).toBe(waits);
    expect(await answersFor(follower, 40)).toEqual(new Set([`new ${waits}`, "running disk"]));
  });

  it("waits at once, of followers too, while part of the source cannot be read", async () => {
    const davit = await serve();
    const follower = await boot(davit.storeUrl);
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
    await writeFile(join(manifests, "next"), "kind: [");
    await rename(join(manifests, "next"), join(manifests, "broken.yaml"));
    await expect.poll(() => newOne(davit), soon).toBe(waits);
    await expect.poll(() => newOne(follower), soon).toBe(waits);
    expect(await answersFor(follower, 10)).toEqual(new Set([`new ${waits}`, "running disk"]));
    await expect.poll(() => opsText(follower, "/metrics"), soon).toMatch(/^davit_install_doubt\{doubt="half"\} 1$/m);
    await rm(join(manifests, "broken.yaml"));
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
  });

  it("waits while the deletion of its Group, Profile or ConfigMap has to wait for another file", async () => {
    await writeParts();
    const davit = await serve([]);
    await expect.poll(() => newOne(davit), soon).toBe("wipe");
    // It has a name, so that it can be no other object: nobody waits for it.
    await writeFile(join(folder, "next"), groupOf("other", "52:54:00:00:00:03", "priority: 9999"));
    await rename(join(folder, "next"), join(manifests, "refused.yaml"));
    await expect.poll(() => opsText(davit, "/readyz?verbose"), soon).toContain("refused.yaml");
    for (const file of ["text.yaml", "profile.yaml", "group.yaml"]) {
      await expect.poll(() => newOne(davit), soon).toBe("wipe");
      await rm(join(manifests, file));
      await expect.poll(() => newOne(davit), soon).toBe(waits);
      expect(await answersFor(davit, 5)).toEqual(new Set([`new ${waits}`, "running disk"]));
      if (file !== "group.yaml") await writeParts();
    }
    await davit.stop();
    const again = await serve([]);
    expect(await answersFor(again, 10)).toEqual(new Set([`new ${waits}`, "running disk"]));
    await writeParts();
    await expect.poll(() => newOne(again), soon).toBe("wipe");
  });

  it("waits while a copy on disk is served that nobody has confirmed", async () => {
    const davit = await serve();
    const copy = ["--copy-file", join(folder, "copy"), "--limit", "source-grace=100ms"];
    const follower = await boot(davit.storeUrl, copy);
    await expect.poll(() => newOne(follower), soon).toBe("wipe");
    await follower.stop();
    await davit.stop();
    const again = await boot(davit.storeUrl, copy);
    expect(await answersFor(again, 5)).toEqual(new Set([`new ${waits}`, "running disk"]));
    const careless = await boot(davit.storeUrl, [...copy, "--install-max-source-age", "0s"]);
    expect(await answersFor(careless, 5)).toEqual(new Set(["new wipe", "running disk"]));
    await serve([...maxStaleness, "--store-address", new URL(davit.storeUrl).host]);
    await expect.poll(() => newOne(again), soon).toBe("wipe");
  });
});

/** `spec.assets` in a real cluster: `kubectl wait` returns when the files are there, and a mistake is refused. */

import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type Answer, type FileServer, file, startFileServer, status } from "../assets/file-server.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { profileText } from "../sources/directory/manifests.ts";

const content = Buffer.alloc(1_000_000, "kernel");
const sha256 = createHash("sha256").update(content).digest("hex");
const patience = { timeout: 30_000, interval: 100 };

describe.skipIf(missing("kube-apiserver", "kubectl"))("the assets of a Profile", { timeout: 60_000 }, () => {
  let folder: string;
  let cluster: ClusterAccess;
  let server: FileServer;
  let davit: DavitProcess;
  /** What the server answers until the test lets it send the file. */
  let answer: Answer = status(503);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-cluster-assets-"));
    await mkdir(join(folder, "assets"));
    cluster = await sharedCluster("profile-assets");
    server = await startFileServer([(request, response) => answer(request, response)]);
    const args = ["--assets-dir", join(folder, "assets"), "--fetch-assets-from", new URL(server.url).host];
    davit = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: join(folder, "data"), args });
  }, 180_000);
  afterAll(async () => {
    await davit?.stop();
    server?.close();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  const web = (more: object = {}) => {
    const asset = { name: "os/vmlinuz", url: `${server.url}/vmlinuz`, sha256, ...more };
    return profileText("web", `  boot: {kernel: /assets/os/vmlinuz}\n  assets: [${JSON.stringify(asset)}]`);
  };
  const wait = (condition: string, timeout: string) =>
    cluster.kubectl(["wait", `--for=condition=${condition}`, `--timeout=${timeout}`, "profiles.davit.dev/web"]);
  const reason = async () => {
    const path = '{.status.conditions[?(@.type=="AssetsReady")].reason}';
    return (await cluster.kubectl(["get", "profiles.davit.dev/web", "-o", `jsonpath=${path}`])).stdout;
  };

  it("are waited for by kubectl", async () => {
    await cluster.apply(web());
    await expect.poll(reason, patience).toBe("Fetching");
    expect(await wait("AssetsReady", "1s")).toMatchObject({ code: 1 });
    answer = file(content);
    expect(await wait("AssetsReady", "30s")).toMatchObject({
      code: 0,
      stdout: "profile.davit.dev/web condition met\n",
    });
    expect((await fetch(`${davit.bootUrl}/assets/os/vmlinuz`)).status).toBe(200);
  });

  it("are refused by the API server for a typo in the digest and for a directory, with the cure", async () => {
    const { stderr: digest } = await cluster.kubectl(["apply", "-f", "-"], { input: web({ sha256: sha256.slice(1) }) });
    expect(digest).toContain("sha256 is 64 hexadecimal digits in lower case, as sha256sum prints them: correct it");
    const { stderr: url } = await cluster.kubectl(["apply", "-f", "-"], { input: web({ url: `${server.url}/os/` }) });
    expect(url).toContain("url is a directory: name the file in it");
    expect(await reason()).toBe("Fetched");
  });

  it("stay as they were checked last when the Profile names another digest", async () => {
    await cluster.apply(web({ sha256: "0".repeat(64) }));
    await expect.poll(reason, patience).toBe("Conflict");
    expect(Buffer.from(await (await fetch(`${davit.bootUrl}/assets/os/vmlinuz`)).arrayBuffer()).equals(content)).toBe(
      true,
    );
  });
});

/** The store's door in a cluster: followers get in by tokens and an authority that the cluster hands out. */

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FollowError } from "../../src/follow/follow-error.ts";
import { answerTo, askStore } from "../../src/follow/store-request.ts";
import { parseJsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { type DavitBootProcess, type DavitProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";
import { createAll, machineGroup, macOf, profile } from "./machines.ts";

const configMap = "davit-store-ca";
const soon = { timeout: 20_000 };

describe.skipIf(missing("kube-apiserver", "kubectl"))("in a cluster, the store", () => {
  let cluster: Cluster;
  let folder: string;
  let davit: DavitProcess | undefined;
  let follower: DavitBootProcess | undefined;
  const at = (name: string) => join(folder, name);

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-trust-"));
    cluster = await startCluster();
    await createAll(cluster, [profile("work", "work"), machineGroup(1)]);
    await cluster.kubectl(["create", "configmap", configMap]);
  }, 180_000);
  afterEach(async () => {
    await follower?.stop();
    await davit?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  async function serve(): Promise<DavitProcess> {
    const door = ["--store-own-certificate", "--store-ca-configmap", configMap];
    const writer = ["--store-allow-service-account", "default/pipeline"];
    const reader = ["--store-read-service-account", "default/davit-boot"];
    const args = [...door, ...writer, ...reader, "--limit", "source-grace=1s"];
    davit = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: at("data"), args });
    return davit;
  }

  async function tokenFor(account: string, audience: string): Promise<string> {
    await cluster.kubectl(["create", "serviceaccount", account]);
    const { stdout, stderr } = await cluster.kubectl(["create", "token", account, "--audience", audience]);
    expect(stderr).toBe("");
    return stdout.trim();
  }

  async function publishedAuthority(): Promise<string> {
    const { stdout } = await cluster.kubectl(["get", "configmap", configMap, "-o", "json"]);
    const { data } = parseJsonObject(stdout) ?? {};
    return parseJsonObject(JSON.stringify(data ?? {}))?.["ca.crt"]?.toString() ?? "";
  }

  async function follow(storeUrl: string): Promise<DavitBootProcess> {
    const files = ["--store-ca-file", at("ca.crt"), "--store-token-file", at("token")];
    follower = await startDavitBoot(["--store", storeUrl, ...files]);
    return follower;
  }

  const boots = async ({ bootUrl }: DavitBootProcess) => (await fetch(`${bootUrl}/ipxe?mac=${macOf(1)}`)).status;

  it("lets followers in by a ServiceAccount's token, also after both restart without the API server", async () => {
    const { storeUrl, opsUrl } = await serve();
    expect(storeUrl).toMatch(/^https:/);
    await expect.poll(publishedAuthority, soon).toContain("-----BEGIN CERTIFICATE-----");
    await writeFile(at("ca.crt"), await publishedAuthority());
    await writeFile(at("token"), await tokenFor("davit-boot", "davit"), { mode: 0o600 });
    expect(await boots(await follow(storeUrl))).toBe(200);
    // It changes no key, so an account that may only read may hand its history on.
    const shown = async () => await (await fetch(`${opsUrl}/history?mac=${macOf(1)}`)).text();
    await expect.poll(shown, soon).toContain("  via ");
    await follower?.stop();
    await davit?.stop();
    await cluster.kill();
    const again = await serve();
    expect(await boots(await follow(again.storeUrl))).toBe(200);
  }, 120_000);

  it("refuses accounts that are not named, tokens for others, and none", async () => {
    const { storeUrl } = await serve();
    await expect.poll(publishedAuthority, soon).not.toBe("");
    const ca = await publishedAuthority();
    const keys = new URL("/v2/keys/", storeUrl);
    const ask = (token: string | undefined) => answerTo(askStore(keys, { ca, token })).then(() => "let in", detailOf);
    expect(await ask(await tokenFor("davit-boot", "davit"))).toBe("let in");
    const others = [
      await tokenFor("someone", "davit"),
      await tokenFor("davit-boot", "https://kubernetes.default.svc"),
      cluster.adminToken,
      undefined,
    ];
    for (const token of others) expect(await ask(token)).toBe("status 401");
  }, 120_000);

  it("lets followers read and not write, and writes for who was named for that", async () => {
    const { storeUrl } = await serve();
    await expect.poll(publishedAuthority, soon).not.toBe("");
    const ca = await publishedAuthority();
    const ask = (token: string, method: string, target: string, body?: string) =>
      statusOf(new URL(target, storeUrl), { ca, method, authorization: `Bearer ${token}` }, body);
    const reader = await tokenFor("davit-boot", "davit");
    const writer = await tokenFor("pipeline", "davit");
    // A small form, which has a way of its own, what the routes take, and what the token is not known for yet.
    const writes = [
      ["PUT", "/v2/keys/rack", "value=7"],
      ["PUT", "/v2/keys/rack?value=7", ""],
      ["POST", "/v2/keys/queue", "value=7"],
      ["DELETE", "/v2/keys/rack", undefined],
    ] as const;
    for (const [method, target, body] of writes) expect(await ask(reader, method, target, body)).toBe(403);
    for (const target of ["/v2/keys/", "/v2/stats/store", "/davit/v1/backup"])
      expect(await ask(reader, "GET", target)).toBe(200);
    expect(await ask(reader, "HEAD", "/v2/keys/")).toBe(200);
    expect(await ask(reader, "PUT", "/v2/keys/rack", "value=7")).toBe(403);
    expect(await ask(reader, "GET", "/v2/keys/rack")).toBe(404);
    for (const [method, target, body] of writes) expect(await ask(writer, method, target, body)).toBeLessThan(300);
  }, 120_000);
});

interface Asking {
  readonly ca: string;
  readonly method: string;
  readonly authorization: string;
}

/** The status of an answer, whose body is let go. */
async function statusOf(url: URL, { authorization, ...options }: Asking, body?: string): Promise<number | undefined> {
  const type = body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" };
  const sent = request(url, { ...options, headers: { authorization, ...type } });
  sent.end(body);
  const [answer]: IncomingMessage[] = await once(sent, "response");
  answer?.resume();
  return answer?.statusCode;
}

function detailOf(error: unknown): unknown {
  return error instanceof FollowError ? error.detail : error;
}

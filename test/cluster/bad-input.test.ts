/** Objects that the API server takes and that are odd, large, gone again, or of another version: never a crash or a loop. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";
import { requestsTo } from "./metric.ts";

/** As much of a CRD's schema as is changed here. */
interface Schema {
  readonly properties: {
    readonly status: { readonly properties: { configs?: object } };
    readonly spec: { readonly properties: { readonly boot: Boot } };
  };
}

interface Boot {
  "x-kubernetes-validations"?: object;
  readonly properties: { firmware?: object };
}

const mac = "52:54:00:a1:9c:ae";
const metadata = `/metadata?mac=${mac}`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("in a cluster", () => {
  let cluster: Cluster;
  let beside: Beside;
  let before = 0;
  beforeAll(async () => {
    cluster = await startCluster();
    beside = await Beside.make(cluster, "odd");
    await beside.put(profile("web"));
    await beside.start();
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });
  beforeEach(async () => {
    before = await calls();
  });
  const calls = () => beside.metric("rest_client_requests_total");
  const node = { kind: "Group", name: "node" } as const;

  /** A line of what its machine gets as metadata. */
  const shown = async (name: string) =>
    (await beside.get(metadata)).body
      .split("\n")
      .find((line) => line.startsWith(`${name}=`))
      ?.slice(name.length + 1);

  it.each([500, 1_000, 1_300])("metadata of %d KiB are served", async (kib) => {
    const text = "x".repeat(kib * 1024);
    await beside.put(group("node", mac, { metadata: { text } }));
    await expect.poll(async () => (await shown("TEXT"))?.length).toBe(text.length);
    await expect.poll(() => beside.conditions(node)).toMatchObject({ Ready: "True Ready" });
    expect((await calls()) - before).toBeLessThanOrEqual(4);
  });

  it.each([
    { text: "9007199254740993", read: "9007199254740992" },
    { text: "-9223372036854775808", read: "-9223372036854776000" },
    { text: "12345678901234567890", read: "12345678901234567000" },
    { text: '"12345678901234567890"', read: "12345678901234567890" },
  ])("the number $text is read as $read, and its status written once", async ({ text, read }) => {
    const head = "apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: node, namespace: odd}\n";
    const selector = `selector: {matchLabels: {mac: "${mac}"}}`;
    const input = `${head}spec: {profileRef: {name: web}, ${selector}, metadata: {n1: ${text}}}`;
    await cluster.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], { input });
    await expect.poll(() => shown("N1")).toBe(read);
    await expect.poll(() => beside.conditions(node)).toMatchObject({ Ready: "True Ready" });
    expect((await calls()) - before).toBeLessThanOrEqual(4);
  });

  it("names with dots are names", async () => {
    await beside.put(
      profile("web.v1.2-x"),
      group("node.a.b", "52:54:00:00:00:01", { profileRef: { name: "web.v1.2-x" } }),
    );
    await expect
      .poll(async () => (await beside.get("/ipxe?mac=52:54:00:00:00:01")).body)
      .toContain("kernel /assets/web.v1.2-x");
    await expect
      .poll(() => beside.conditions({ kind: "Group", name: "node.a.b" }))
      .toMatchObject({ Ready: "True Ready" });
  });

  it("objects that are gone or others before their status is written end with the right one", async () => {
    const macOf = (at: number) => `52:54:00:00:01:${at.toString(16).padStart(2, "0")}`;
    const names = Array.from({ length: 40 }, (_, at) => ({ kind: "Group", name: `brief-${at}` }) as const);
    for (const round of [1, 2, 3]) {
      await Promise.all(names.map(({ name }, at) => beside.put(group(name, macOf(at), { metadata: { round } }))));
      await Promise.all(names.map((name) => beside.delete(name)));
    }
    await Promise.all(names.map(({ name }, at) => beside.put(group(name, macOf(at)))));
    for (const name of names) await expect.poll(() => beside.conditions(name)).toMatchObject({ Ready: "True Ready" });
    expect((await calls()) - before).toBeLessThanOrEqual(4 * 2 * names.length);
  });

  it("a CRD that lacks a field of the status costs that status, and nothing else", async () => {
    await replaceProfileCrd(({ properties: { status } }) => void delete status.properties.configs);
    await beside.put(profile("older"), group("older", "52:54:00:00:00:02", { profileRef: { name: "older" } }));
    // Beside others, such as of a Profile whose Groups were counted just now.
    const ofOlder = () => warnings().filter(({ name }) => name === "older");
    await expect.poll(() => ofOlder()[0]).toMatchObject({ kind: "Profile", name: "older" });
    await expect.poll(() => beside.conditions({ kind: "Group", name: "older" })).toMatchObject({ Ready: "True Ready" });
    expect((await beside.get("/ipxe?mac=52:54:00:00:00:02")).body).toContain("kernel /assets/older");
    expect((await calls()) - before).toBeLessThanOrEqual(20);
  });

  it("a CRD that lets more through than davit understands gets its objects a condition", async () => {
    await replaceProfileCrd(({ properties: { spec } }) => {
      delete spec.properties.boot["x-kubernetes-validations"];
      spec.properties.boot.properties.firmware = { type: "string" };
    });
    await beside.put(profile("later"), group("later", "52:54:00:00:00:03", { profileRef: { name: "later" } }));
    const later = { kind: "Profile", name: "later" } as const;
    await expect.poll(() => beside.conditions(later)).toMatchObject({ Ready: "True Ready" });
    await beside.put(profile("later", { boot: { kernel: "/assets/new", firmware: "uefi" } }));
    await expect
      .poll(() => beside.conditions(later))
      .toEqual({
        Accepted: "False Refused",
        ResolvedRefs: "True Resolved",
        Synced: "False ServingLastGood",
        Ready: "False Refused",
        Stalled: "True Refused",
      });
    expect(await beside.message(later)).toMatch(
      /^spec\.boot: has a field .*; is the CRD in the cluster of this version/,
    );
    await beside.put(profile("never", { boot: { kernel: "k", local: "exit" } }));
    await expect
      .poll(() => beside.message({ kind: "Profile", name: "never" }))
      .toContain("exactly one of kernel, local and script");
    await beside.put(group("never", "52:54:00:00:00:04", { profileRef: { name: "never" } }));
    await expect.poll(() => beside.message({ kind: "Group", name: "never" })).toContain("is refused, see its status");
    expect((await beside.get("/ipxe?mac=52:54:00:00:00:03")).body).toContain("kernel /assets/later");
    const events = async () => (await cluster.kubectl(["-n", "odd", "get", "events"])).stdout;
    await expect.poll(events).toMatch(/Warning +Refused +profile\/later /);
    expect((await calls()) - before).toBeLessThanOrEqual(20);
  });

  const warnings = () =>
    beside.davit.log.filter(({ msg }) => String(msg).startsWith("the API server refuses a status"));

  async function replaceProfileCrd(change: (schema: Schema) => void): Promise<void> {
    const text = (await readCrds(packagedCrdsDirectory)).find((crd) => crd.includes("name: profiles.davit.dev"));
    const crd = parse(text ?? "");
    change(crd.spec.versions[0].schema.openAPIV3Schema);
    const path =
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/profiles.davit.dev?fieldManager=test&force=true";
    const asked = { method: "PATCH", path, body: crd, contentType: "application/apply-patch+yaml" } as const;
    const endedWatches = () => requestsTo(cluster, { resource: "profiles", verb: "WATCH" });
    const ended = await endedWatches();
    expect(await cluster.ask(asked)).toMatchObject({ status: 200 });
    // Watches of the old one go on for a second, and leave out fields that it did not have.
    await expect.poll(endedWatches).toBeGreaterThan(ended);
  }
});

/**
 * A Group that the API server takes and davit refuses, in a cluster whose CRDs are older than davit: it keeps itself and
 * nothing else. Whatever is deleted beside it is gone, in every namespace, over a restart as well.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";

const patience = { timeout: 30_000, interval: 50 };
const scope = ["--namespace", "infra", "--namespace", "team-b"];
const args = ["--admin-namespace", "infra", "--tombstone-ttl", "2s"];
const mac = (last: string) => `52:54:00:00:00:${last}`;
const installer = { profileRef: { name: "installer" } };
const catchAll = { kind: "Group", name: "all", spec: { ...installer, matchAll: true } } as const;
const secretText = { kind: "Secret", name: "tokens", labels: { "davit.dev/allow-template": "true" } } as const;
const data = { text: Buffer.from("secret").toString("base64") };
const fromSecret = { templateFrom: { secretKeyRef: { name: "tokens", key: "text" } } };
/** The mistake of one digit that an older CRD lets through. */
const bad = (values: readonly string[]) => ({ ...installer, selector: { matchExpressions: [macIn(values)] } });
const macIn = (values: readonly string[]) => ({ key: "mac", operator: "In", values });

describe.skipIf(missing("kube-apiserver"))("one refused Group", { timeout: 120_000 }, () => {
  let cluster: Cluster;
  let infra: Beside;
  let teamB: Beside;
  beforeAll(async () => {
    cluster = await startCluster();
    await allowAnyExpression(cluster);
    infra = await Beside.make(cluster, "infra");
    teamB = await Beside.make(cluster, "team-b");
    await infra.put(profile("installer", { effect: "Install" }), profile("disk"));
    await teamB.put(profile("installer", { effect: "Install" }), profile("disk"));
    await infra.start(args, { scope });
  }, 180_000);
  afterAll(async () => {
    await infra?.stop();
    await teamB?.stop();
    await cluster?.stop();
  });

  const boots = async (last: string) => {
    const { status, body } = await infra.get(`/ipxe?mac=${mac(last)}`);
    return status === 200 ? (/assets\/(\S+)/.exec(body)?.[1] ?? body) : status;
  };
  const booted = (last: string) => expect.poll(() => boots(last), patience);

  it.each(["while davit runs", "over a restart"])("stops no deletion in any namespace, %s", async (when) => {
    await infra.put(profile("secret", { generic: fromSecret }), { ...secretText, data }, catchAll);
    await infra.put(group("one", mac("01"), installer), group("two", mac("02"), { profileRef: { name: "secret" } }));
    await teamB.put({ kind: "Group", name: "slip", spec: bad([mac("0g")]) });
    await expect
      .poll(() => teamB.conditions({ kind: "Group", name: "slip" }), patience)
      .toMatchObject({ Ready: "False Refused" });
    await booted("01").toBe("installer");
    await booted("09").toBe("installer");
    const generic = () => infra.get(`/generic?mac=${mac("02")}`);
    await expect.poll(generic, patience).toEqual({ status: 200, body: "secret" });
    if (when === "over a restart") await infra.end();
    await infra.delete({ kind: "Group", name: "one" }, { kind: "Group", name: "all" }, secretText);
    if (when === "over a restart") await infra.start(args, { scope });
    await booted("01").toBe(404);
    await booted("09").toBe(404);
    await expect.poll(generic, patience).toMatchObject({ status: 500 });
    expect(await boots("02")).toBe("secret");
    expect(await infra.metric("davit_withheld_deletions")).toBe(0);
  });

  it("keeps the machines that it names waiting from the first list on, and an Install from whomever it may name", async () => {
    await infra.put(catchAll, group("one", mac("01"), installer), group("three", mac("03"), installer));
    await infra.put({ kind: "Group", name: "slip", spec: bad([mac("03"), mac("04"), mac("0g")]) });
    await infra.end();
    // Nothing is known of the time before.
    await infra.start(args, { scope, dataDir: `${infra.dataDir}/anew` });
    expect(await boots("01")).toBe("installer");
    expect(await boots("03")).toBe("installer");
    expect(await boots("04")).toBe(503);
    expect(await boots("09")).toBe(503);
    expect(await infra.ops("/readyz?verbose")).toContain(
      'namespace "infra": the selector of Group infra/slip cannot be read: ',
    );
    await infra.put({ kind: "Group", name: "slip", spec: bad([mac("03"), mac("04"), mac("05")]) });
    await booted("09").toBe("installer");
    await booted("05").toBe("installer");
    await infra.put({ kind: "Group", name: "slip", spec: bad([mac("03"), mac("04"), mac("0h")]) });
    await booted("09").toBe(503);
    await infra.delete({ kind: "Group", name: "slip" });
    await booted("09").toBe("installer");
    expect(await infra.ops("/readyz?verbose")).not.toContain("infra/slip");
  });

  it("that never was accepted keeps the machines of its readable labels from an Install, and nobody else", async () => {
    const serial = "SN1";
    const named = async () => (await infra.get(`/ipxe?mac=${mac("21")}&serial=${serial}`)).status;
    const seen: number[] = [];
    await infra.put(catchAll);
    await booted("22").toBe("installer");
    const selector = { matchLabels: { serial }, matchExpressions: [macIn([mac("0g")])] };
    await infra.put({ kind: "Group", name: "new", spec: { profileRef: { name: "disk" }, selector } });
    await expect.poll(named, patience).toBe(503);
    const list = { ...installer, selector: { matchExpressions: [macIn([mac("21"), mac("22")])] } };
    await infra.put({ kind: "Group", name: "list", spec: list });
    await expect
      .poll(async () => {
        seen.push(await named());
        return infra.conditions({ kind: "Group", name: "list" });
      }, patience)
      .toMatchObject({ Ready: "True Ready" });
    for (let times = 0; times < 20; times++) seen.push(await named());
    expect(new Set(seen)).toEqual(new Set([503]));
    expect(await boots("22")).toBe("installer");
    expect(await boots("09")).toBe("installer");
    await infra.put({
      kind: "Group",
      name: "new",
      spec: { profileRef: { name: "disk" }, selector: { matchLabels: { serial } } },
    });
    await expect.poll(named, patience).toBe(200);
    expect((await infra.get(`/ipxe?mac=${mac("21")}&serial=${serial}`)).body).toContain("/assets/disk");
    await infra.delete({ kind: "Group", name: "new" }, { kind: "Group", name: "list" });
  });
});

/** As CRDs of before the rules of expressions were: what is in the lists is nobody's concern. */
async function allowAnyExpression(cluster: Cluster): Promise<void> {
  const text = (await readCrds(packagedCrdsDirectory)).find((crd) => crd.includes("name: groups.davit.dev"));
  const crd = parse(text ?? "");
  const { selector } = crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties;
  delete selector.properties.matchExpressions.items.allOf;
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/groups.davit.dev?fieldManager=test&force=true";
  const contentType = "application/apply-patch+yaml";
  expect(await cluster.ask({ method: "PATCH", path, body: crd, contentType })).toMatchObject({ status: 200 });
}

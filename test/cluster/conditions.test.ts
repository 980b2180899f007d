/**
 * Every condition that a user can bring about, in a real cluster, with the words that docs/reference/crds has for it; and what
 * machines get meanwhile, which is the last good content.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside, type ClusterObject, group, profile } from "./beside.ts";

const pages = {
  Profile: readFileSync(join(import.meta.dirname, "../../docs/reference/crds/profile.md"), "utf8"),
  Group: readFileSync(join(import.meta.dirname, "../../docs/reference/crds/group.md"), "utf8"),
};

const mac = "52:54:00:a1:9c:ae";
const fromConfigMap = (key = "worker.ign") => ({
  templateFrom: { configMapKeyRef: { name: "worker-templates", key } },
});
const fromSecret = { templateFrom: { secretKeyRef: { name: "worker-tokens", key: "join.txt" } } };
const base64 = (text: string) => Buffer.from(text).toString("base64");
const ign = '{"ignition":{"version":"3.4.0"}}';
const allowed = { "davit.dev/allow-template": "true" };
const good = {
  configMap: { kind: "ConfigMap", name: "worker-templates", data: { "worker.ign": ign } },
  secret: { kind: "Secret", name: "worker-tokens", labels: allowed, data: { "join.txt": base64("t") } },
} as const satisfies Readonly<Record<string, ClusterObject>>;

interface Own {
  readonly kind: "Profile" | "Group";
  readonly name: string;
}

interface Trouble {
  readonly what: string;
  /** The Profile's spec beside its kernel, and what else there is while all is well. */
  readonly spec: JsonObject;
  readonly others?: readonly ClusterObject[];
  /** What is changed then. */
  readonly change: readonly ClusterObject[] | "delete the others";
  readonly conditions: Readonly<Record<string, string>>;
  readonly path: string;
  /** What the path is answered with before and, unless told, after the change. */
  readonly body: string;
  readonly statusAfter?: number;
}

const lastGood = { Synced: "False ServingLastGood", Accepted: "True Valid", ResolvedRefs: "True Resolved" };

/** Of what only a person can mend. */
function stalled(reason: string) {
  return { Ready: `False ${reason}`, Stalled: `True ${reason}` };
}

const troubles: readonly Trouble[] = [
  {
    what: "a ConfigMap that goes",
    spec: { ignition: fromConfigMap() },
    others: [good.configMap],
    change: "delete the others",
    conditions: { ...lastGood, ResolvedRefs: "False TemplateNotFound", Ready: "False TemplateNotFound" },
    path: "/ignition",
    body: ign,
  },
  {
    what: "a key that goes",
    spec: { ignition: fromConfigMap() },
    others: [good.configMap],
    change: [{ ...good.configMap, data: { other: ign } }],
    conditions: { ...lastGood, ResolvedRefs: "False KeyNotFound", ...stalled("KeyNotFound") },
    path: "/ignition",
    body: ign,
  },
  {
    what: "a Secret that loses its label",
    spec: { generic: fromSecret },
    others: [good.secret],
    change: [{ ...good.secret, labels: {} }],
    conditions: { ...lastGood, ResolvedRefs: "False RefNotPermitted", ...stalled("RefNotPermitted") },
    path: "/generic",
    body: "t",
    statusAfter: 500,
  },
];

describe.skipIf(missing("kube-apiserver", "kubectl"))("in a cluster", () => {
  let cluster: ClusterAccess;
  let lab: Beside;
  let standard: Beside;
  beforeAll(async () => {
    cluster = await sharedCluster("conditions");
    lab = await Beside.make(cluster, "lab");
    standard = await Beside.make(cluster, "default");
    await Promise.all([lab.start(), standard.start()]);
  }, 180_000);
  afterAll(async () => {
    await Promise.all([lab?.stop(), standard?.stop()]);
    await cluster?.stop();
  });
  const worker = { kind: "Profile", name: "worker" } as const;
  const node = { kind: "Group", name: "node" } as const;

  /** Holds the message of Ready, and that the page of its kind has it, word by word. */
  async function expectDocumented(name: Own, beside = lab): Promise<void> {
    const { Ready = "" } = await beside.conditions(name);
    const row = `| \`${Ready.replace("False ", "")}\` | \`${await beside.message(name)}\` |`;
    expect(pages[name.kind]).toContain(row);
  }

  /** The conditions of the sample of a page, and those of an object, without what differs from object to object. */
  async function expectAsInSample(name: Own, beside = lab): Promise<void> {
    const [, sample = ""] = /^```yaml\n(status:\n.*?)^```$/ms.exec(pages[name.kind]) ?? [];
    const { status } = parse(sample);
    await expect
      .poll(async () => (await beside.object(name)).status)
      .toMatchObject({
        conditions: status.conditions,
        ...("selector" in status && { selector: status.selector }),
        ...("configs" in status && { configs: status.configs }),
      });
  }

  it.each(troubles)("$what shows, in the words of the documents, and spoils nothing", async (trouble) => {
    const { spec, others = [], change, conditions, path, body, statusAfter = 200 } = trouble;
    await lab.put(...others, profile("worker", spec), group("node", mac, { profileRef: { name: "worker" } }));
    await expect.poll(() => lab.get(`${path}?mac=${mac}`)).toEqual({ status: 200, body });
    await expect.poll(() => lab.conditions(worker)).toMatchObject({ Ready: "True Ready" });
    if (change === "delete the others") await lab.delete(...others);
    else await lab.put(...change);
    await expect.poll(() => lab.conditions(worker)).toEqual(conditions);
    await expectDocumented(worker);
    expect((await lab.get(`${path}?mac=${mac}`)).status).toBe(statusAfter);
    expect((await lab.get(`/ipxe?mac=${mac}`)).body).toContain("kernel /assets/worker");
    await lab.delete(worker, node, ...others);
    await expect.poll(() => lab.get(`/generic?mac=${mac}`)).toMatchObject({ status: 503 });
  });

  it("a template that cannot be parsed has the status of the page's sample", async () => {
    const sound = { ignition: { inline: ign, raw: true }, generic: { inline: "sound" } };
    await lab.put(profile("worker", sound), group("node", mac, { profileRef: { name: "worker" } }));
    await expect.poll(() => lab.get(`/generic?mac=${mac}`)).toEqual({ status: 200, body: "sound" });
    await lab.put(profile("worker", { ...sound, generic: { inline: '{{#if role}}{"a": "bcd"}' } }));
    await expectAsInSample(worker);
    expect(await lab.get(`/generic?mac=${mac}`)).toEqual({ status: 200, body: "sound" });
  });

  it("advice shows, and the object is ready", async () => {
    await lab.put({ ...profile("advised"), spec: { boot: { kernel: "k", initrd: ["i"] } } });
    const advised = { kind: "Profile", name: "advised" } as const;
    await expect.poll(() => lab.conditions(advised)).toMatchObject({ Ready: "True Ready" });
    expect(await lab.conditions(advised)).toMatchObject({ Accepted: "True ValidWithAdvice" });
    expect(pages.Profile).toContain(`| \`ValidWithAdvice\` | \`${await lab.message(advised, "Accepted")}\` |`);
  });

  it("a Group whose Profile went has its machines wait, and never hands them to another", async () => {
    await lab.put(profile("other"), { ...group("all", ""), spec: { profileRef: { name: "other" }, matchAll: true } });
    await lab.put(group("lonely", "52:54:00:00:00:01", { profileRef: { name: "worker" } }));
    await lab.delete(worker);
    const lonely = { kind: "Group", name: "lonely" } as const;
    await expect.poll(() => lab.conditions(lonely)).toMatchObject({ ResolvedRefs: "False ProfileNotFound" });
    await expectDocumented(lonely);
    expect(await lab.get("/ipxe?mac=52:54:00:00:00:01")).toEqual({
      status: 503,
      body: expect.stringMatching(/^503 profile/),
    });
    expect((await lab.get("/ipxe?mac=52:54:00:00:00:02")).status).toBe(200);
  });

  it("a Group that another one covers names it", async () => {
    await lab.put(profile("worker"));
    const spec = { profileRef: { name: "worker" }, selector: { matchLabels: { role: "worker" } }, priority: 10 };
    await lab.put({ kind: "Group", name: "workers", spec });
    const covered = { kind: "Group", name: "covered" } as const;
    await lab.put({
      ...covered,
      spec: { ...spec, selector: { matchLabels: { role: "worker", rack: "4" } }, priority: 5 },
    });
    await expect.poll(() => lab.conditions(covered)).toMatchObject({ Conflicted: "True SelectorOverlap" });
    await expectDocumented(covered);
    expect(await lab.conditions({ kind: "Group", name: "workers" })).toMatchObject({ Conflicted: "False NoConflict" });
    await lab.delete({ kind: "Group", name: "workers" });
    await expect.poll(() => lab.conditions(covered)).toMatchObject({ Ready: "True Ready" });
  });

  it("a Group that another one replaces has the status of the page's sample", async () => {
    await standard.put(profile("web"), group("node-1", mac), group("node-1-new", mac, { priority: 1 }));
    await expectAsInSample({ kind: "Group", name: "node-1" }, standard);
  });

  it("a Group whose label kubectl dropped is refused, and no machine gets it", async () => {
    const dropped = { kind: "Group", name: "dropped" } as const;
    const text = "apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: dropped, namespace: lab}\nspec:\n";
    await cluster.apply(`${text}  {profileRef: {name: worker}, selector: {matchLabels: {mac: , rack: "7"}}}\n`);
    await expect
      .poll(() => lab.conditions(dropped))
      .toEqual({
        Accepted: "False Refused",
        ResolvedRefs: "Unknown NotAccepted",
        Synced: "False NotServed",
        Rendered: "Unknown NotRendered",
        ...stalled("Refused"),
      });
    await expectDocumented(dropped);
    expect((await lab.get("/ipxe?rack=7")).body).toContain("kernel /assets/other");
    expect(await lab.ops("/readyz?verbose")).toContain("Group lab/dropped, spec.selector.matchLabels: kubectl apply");
    await cluster.apply(`${text}  {profileRef: {name: worker}, selector: {matchLabels: {rack: "7"}}}\n`);
    await expect.poll(() => lab.conditions(dropped)).toMatchObject({ Ready: "True Ready" });
    expect((await lab.get("/ipxe?rack=7")).body).toContain("kernel /assets/worker");
  });

  it("a text of 1 MiB is served, and a ConfigMap cannot have a longer one", async () => {
    const text = "x".repeat(1024 * 1024);
    const big = { kind: "ConfigMap", name: "big", data: { text } } as const;
    const templateFrom = { configMapKeyRef: { name: "big", key: "text" } };
    await lab.put(big, profile("big", { generic: { templateFrom, raw: true } }));
    await lab.put(group("big", "52:54:00:00:00:03", { profileRef: { name: "big" } }));
    await expect.poll(async () => (await lab.get("/generic?mac=52:54:00:00:00:03")).body).toBe(text);
    await expect(lab.put({ ...big, data: { text: `${text}x` } })).rejects.toThrow(
      /Too long: may not be more than 1048576/,
    );
  });
});

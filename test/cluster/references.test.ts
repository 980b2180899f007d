/** ConfigMaps and Secrets that Profiles name: what becomes of their texts, and what davit asks the API server for them. */

import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";
import { requestsTo } from "./metric.ts";

const label = { "davit.dev/allow-template": "true" };
const kinds = ["ConfigMap", "Secret"] as const;
type Kind = (typeof kinds)[number];

function texts(kind: Kind, name: string, text: string, labels: Record<string, string> = label) {
  const data: JsonObject = { text: kind === "Secret" ? Buffer.from(text).toString("base64") : text };
  return { kind, name, labels, data };
}

function from(kind: Kind, name: string): JsonObject {
  const ref = { name, key: "text" };
  return { templateFrom: kind === "Secret" ? { secretKeyRef: ref } : { configMapKeyRef: ref } };
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("a text from a", () => {
  let cluster: Cluster;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await startCluster();
    beside = await Beside.make(cluster, "texts");
    for (const kind of kinds) {
      const name = kind.toLowerCase();
      await beside.put(texts(kind, `other-${name}`, "other"));
      await beside.put(profile(`other-${name}`, { generic: from(kind, `other-${name}`) }));
      await beside.put(profile(name, { generic: from(kind, name) }));
      await beside.put(group(name, macs[kind], { profileRef: { name } }));
    }
    await beside.start();
    // davit lists the Machines, which are none, a second time after 5 s, and looks at everything then.
    await setTimeout(5_000);
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });

  const macs = { ConfigMap: "52:54:00:00:00:01", Secret: "52:54:00:00:00:02" };
  const generic = (kind: Kind) => beside.get(`/generic?mac=${macs[kind]}`);
  const ready = async (kind: Kind) => (await beside.conditions({ kind: "Profile", name: kind.toLowerCase() })).Ready;
  const secretTexts = async () =>
    [...(await beside.stored())].flatMap(([path, text]) =>
      path.startsWith("/davit/_secrets/texts/secret/") ? [text] : [],
    );
  const reconciles = () => beside.metric("controller_runtime_reconcile_total", { controller: "profile" });
  /** The number after davit has counted the Groups of new Profiles, which it does a second later. */
  const reconcilesAtRest = async () => {
    for (let before = await reconciles(); ; ) {
      await setTimeout(1_500);
      const after = await reconciles();
      if (after === before) return after;
      before = after;
    }
  };

  describe.each(kinds)("%s", (kind) => {
    const name = kind.toLowerCase();

    it("is answered 500 while it is not there, and served when it comes", async () => {
      expect((await generic(kind)).status).toBe(500);
      await expect.poll(() => ready(kind)).toBe("False TemplateNotFound");
      await beside.put(texts(kind, name, "first"));
      await expect.poll(() => generic(kind)).toEqual({ status: 200, body: "first" });
      await expect.poll(() => ready(kind)).toBe("True Ready");
    });

    it("follows an edit, which makes davit look at its Profile alone", async () => {
      const before = await reconcilesAtRest();
      await beside.put(texts(kind, `unnamed-${name}`, "nobody"), texts(kind, name, "second"));
      await expect.poll(() => generic(kind)).toEqual({ status: 200, body: "second" });
      expect((await reconciles()) - before).toBe(1);
      await beside.put(texts(kind, `unnamed-${name}`, "nobody at all"), texts(kind, name, "third"));
      await expect.poll(() => generic(kind)).toEqual({ status: 200, body: "third" });
      expect((await reconciles()) - before).toBe(2);
    });
  });

  it("ConfigMap stays when that is deleted, and comes back with it", async () => {
    await beside.delete({ kind: "ConfigMap", name: "configmap" });
    await expect.poll(() => ready("ConfigMap")).toBe("False TemplateNotFound");
    expect(await generic("ConfigMap")).toEqual({ status: 200, body: "third" });
    await beside.put(texts("ConfigMap", "configmap", "fourth"));
    await expect.poll(() => generic("ConfigMap")).toEqual({ status: 200, body: "fourth" });
  });

  it.each([
    {
      what: "is deleted",
      withdraw: () => beside.delete({ kind: "Secret", name: "secret" }),
      reason: "TemplateNotFound",
    },
    {
      what: "loses its label",
      withdraw: () => beside.put(texts("Secret", "secret", "third", {})),
      reason: "RefNotPermitted",
    },
    {
      what: "loses its key",
      withdraw: () => beside.put({ kind: "Secret", name: "secret", labels: label, data: {} }),
      reason: "KeyNotFound",
    },
  ])("Secret that $what is answered 500, and its stored copy is erased", async ({ withdraw, reason }) => {
    await beside.put(texts("Secret", "secret", "third"));
    await expect.poll(() => generic("Secret")).toEqual({ status: 200, body: "third" });
    expect(await secretTexts()).toEqual(["third"]);
    await withdraw();
    await expect.poll(() => generic("Secret")).toMatchObject({ status: 500 });
    expect(await secretTexts()).toEqual([]);
    expect((await beside.get(`/ipxe?mac=${macs.Secret}`)).body).toContain("kernel /assets/secret");
    await expect.poll(() => ready("Secret")).toBe(`False ${reason}`);
  });

  it("ConfigMap is read when a Profile names it, and then when it has changed", async () => {
    // Of three ConfigMaps one is named and never changed, one is named and had four versions, and one is not named.
    // A version that is told while the one before is being read is read again, which a busy machine shows.
    const reads = await requestsTo(cluster, { resource: "configmaps", verb: "GET" });
    expect(reads).toBeGreaterThanOrEqual(1 + 1);
    expect(reads).toBeLessThanOrEqual(1 + 2 * 4);
    // Of all of them, one list of their metadata.
    expect(await requestsTo(cluster, { resource: "configmaps", verb: "LIST", scope: "namespace" })).toBe(1);
    expect(await beside.metric("davit_watch_connected", { resource: "secrets" })).toBe(1);
  });
});

/** What becomes of a selector's expressions where the cluster's CRD does not have them: nothing that davit would miss. */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { packagedCrdsDirectory, readCrds } from "../../src/admission/crds.ts";
import { droppedRequirements } from "../../src/kubernetes/dropped-requirements.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../cluster/cluster.ts";
import { groupText } from "../directory/manifests.ts";
import { missing } from "../helpers/requirements.ts";

const expressions = "matchExpressions: [{key: os, operator: Exists}]";
const textOf = (name: string) => groupText(name, `  selector: {matchLabels: {zone: a}, ${expressions}}`);

/** The CRD of Groups as it was before it had expressions. */
async function olderCrd(): Promise<JsonValue> {
  const crds = (await readCrds(packagedCrdsDirectory)).map((text): JsonValue => parse(text));
  const crd = crds.find((each) => JSON.stringify(each).includes('"groups.davit.dev"'));
  return without(crd ?? null, new Set(["matchExpressions", "x-kubernetes-validations"]));
}

/** A value without fields of these names, wherever they are. */
function without(value: JsonValue, names: ReadonlySet<string>): JsonValue {
  if (Array.isArray(value)) return value.map((each: JsonValue) => without(each, names));
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !names.has(name));
  return Object.fromEntries(kept.map(([name, child]) => [name, without(child, names)]));
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("expressions that an older CRD hides", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
    await cluster.apply(textOf("client-side"));
    await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: textOf("server-side") });
    await cluster.kubectl(["create", "-f", "-"], { input: textOf("created") });
    const flags = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    const { code } = await cluster.kubectl(flags, { input: JSON.stringify(await olderCrd()) });
    expect(code).toBe(0);
    await vi.waitFor(async () => expect(selectorOf(await group("created"))).toEqual(labelsAlone), { timeout: 30_000 });
  }, 180_000);
  afterAll(() => cluster?.stop());

  const labelsAlone = { matchLabels: { zone: "a" } };

  async function group(name: string): Promise<JsonObject> {
    return (await cluster.ask({ path: `/apis/davit.dev/v1alpha1/namespaces/default/groups/${name}` })).body;
  }

  /** As davit does it. */
  async function writeStatus(name: string): Promise<void> {
    await cluster.ask({
      method: "PATCH",
      path: `/apis/davit.dev/v1alpha1/namespaces/default/groups/${name}/status?fieldManager=davit&force=true`,
      body: { apiVersion: "davit.dev/v1alpha1", kind: "Group", metadata: { name }, status: { selector: "zone=a" } },
      contentType: "application/apply-patch+yaml",
    });
  }

  it.each(["client-side", "server-side", "created"])("are missed in the Group that was made %s", async (name) => {
    const found = await group(name);
    expect([selectorOf(found), droppedRequirements(found).expressions]).toEqual([labelsAlone, true]);
  });

  it.each(["client-side", "server-side", "created"])(
    "are still missed once the Group %s has a status",
    async (name) => {
      await writeStatus(name);
      expect(droppedRequirements(await group(name)).expressions).toBe(true);
    },
  );

  it("are missed in a Group that kubectl applied without looking at the schema", async () => {
    await expect(cluster.apply(textOf("late"))).rejects.toThrow('unknown field "spec.selector.matchExpressions"');
    await cluster.kubectl(["apply", "--validate=false", "-f", "-"], { input: textOf("late") });
    const found = await group("late");
    expect([selectorOf(found), droppedRequirements(found).expressions]).toEqual([labelsAlone, true]);
  });

  it.each(["client-side", "late"])("are not missed when the Group %s is applied without them", async (name) => {
    await cluster.apply(textOf(name).replace(`, ${expressions}`, ""));
    expect(droppedRequirements(await group(name)).expressions).toBe(false);
  });
});

function selectorOf({ spec }: JsonObject): JsonValue {
  return (isJsonObject(spec) ? spec.selector : null) ?? null;
}

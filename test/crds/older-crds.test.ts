/** What becomes of a selector's expressions where the cluster's CRD does not have them: nothing that davit would miss. */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { droppedFields } from "../../src/sources/kubernetes/source/dropped-fields.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { groupText } from "../sources/directory/manifests.ts";
import { applyOlderCrd } from "./older-crd.ts";

const expressions = "matchExpressions: [{key: os, operator: Exists}]";
const textOf = (name: string) => groupText(name, `  selector: {matchLabels: {zone: a}, ${expressions}}`);

describe.skipIf(missing("kube-apiserver", "kubectl"))("expressions that an older CRD hides", () => {
  let cluster: Cluster;
  let before: readonly unknown[];
  beforeAll(async () => {
    cluster = await startCluster();
    await cluster.apply(textOf("client-side"));
    await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: textOf("server-side") });
    await cluster.kubectl(["create", "-f", "-"], { input: textOf("created") });
    before = await Promise.all(tellingNothing.map(versionOf));
    await applyOlderCrd(cluster, "groups", ["matchExpressions"]);
    await vi.waitFor(async () => expect(selectorOf(await group("created"))).toEqual(labelsAlone), { timeout: 30_000 });
  }, 180_000);
  afterAll(() => cluster?.stop());

  const labelsAlone = { matchLabels: { zone: "a" } };
  // Of a selector that is one field nobody is told to have written expressions: the generation alone tells of them.
  const tellingNothing = ["server-side", "created"];

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

  /** By which davit knows what it accepted before. */
  async function versionOf(name: string): Promise<unknown> {
    const { metadata } = await group(name);
    const { uid, generation } = isJsonObject(metadata) ? metadata : {};
    return [uid, generation];
  }

  it("are missed in the Group that was applied, also once it has a status", async () => {
    const found = await group("client-side");
    expect([selectorOf(found), droppedFields("Group", found).expressions]).toEqual([labelsAlone, true]);
    await writeStatus("client-side");
    expect(droppedFields("Group", await group("client-side")).expressions).toBe(true);
  });

  it("leave the others with the generation that had them, also once they have a status", async () => {
    for (const name of tellingNothing) {
      expect(selectorOf(await group(name))).toEqual(labelsAlone);
      await writeStatus(name);
    }
    expect(before).toEqual([
      [expect.any(String), 1],
      [expect.any(String), 1],
    ]);
    expect(await Promise.all(tellingNothing.map(versionOf))).toEqual(before);
  });

  it("are missed in a Group that kubectl applied without looking at the schema", async () => {
    await expect(cluster.apply(textOf("late"))).rejects.toThrow('unknown field "spec.selector.matchExpressions"');
    await cluster.kubectl(["apply", "--validate=false", "-f", "-"], { input: textOf("late") });
    const found = await group("late");
    expect([selectorOf(found), droppedFields("Group", found).expressions]).toEqual([labelsAlone, true]);
  });

  it("have other misspelt names dropped where kubectl is not strict, where davit finds it", async () => {
    const text = groupText("loose", "  selector: {matchLabels: {role: a}, matchExpresions: [{key: b}]}");
    const apply = (input: string) => cluster.kubectl(["apply", "--validate=false", "-f", "-"], { input });
    await apply(text);
    expect(droppedFields("Group", await group("loose")).unknownIn).toBe("spec.selector");
    await apply(text.replace("matchExpresions: [{key: b}]", ""));
    expect(droppedFields("Group", await group("loose")).unknownIn).toBeUndefined();
  });

  it.each(["client-side", "late"])("are not missed when the Group %s is applied without them", async (name) => {
    await cluster.apply(textOf(name).replace(`, ${expressions}`, ""));
    expect(droppedFields("Group", await group(name)).expressions).toBe(false);
  });
});

function selectorOf({ spec }: JsonObject): JsonValue {
  return (isJsonObject(spec) ? spec.selector : null) ?? null;
}

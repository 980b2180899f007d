/** What a user sees of the objects through kubectl, and what the API server takes as their status. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { Admission } from "../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { readFileBytes } from "../../src/sources/directory/read-file.ts";
import { droppedFields } from "../../src/sources/kubernetes/source/dropped-fields.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { emptiedSpecs, exactNumbers, groupText, oddNames, profileText } from "../sources/directory/manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));
const quickstart = join(import.meta.dirname, "../../manifests/quickstart");
const objects = "/apis/davit.dev/v1alpha1/namespaces/crds-kubectl";

const managed = ["apply", "--server-side", "--force-conflicts", "--field-manager=gitops"];

const condition = {
  type: "Ready",
  status: "True",
  observedGeneration: 1,
  lastTransitionTime: "2026-01-02T03:04:05Z",
  reason: "Ready",
  message: "",
};

describe.skipIf(missing("kube-apiserver", "kubectl"))("kubectl", () => {
  let cluster: ClusterAccess;
  beforeAll(async () => {
    cluster = await sharedCluster("crds-kubectl");
    await cluster.apply(profileText("web", "  effect: Install\n  boot: {kernel: /assets/vmlinuz}"));
    await cluster.apply(groupText("web", '  selector: {matchLabels: {mac: "52:54:00:a1:9c:ae"}}\n  priority: 5'));
  }, 180_000);
  afterAll(() => cluster?.stop());

  /** What it prints; ages differ from run to run. */
  async function shown(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await cluster.kubectl(args);
    return (stderr + stdout).replace(/\b\d+[ms](\d+s)?$/gm, "AGE").replaceAll(/ +$/gm, "");
  }

  /** Server-side apply to the status subresource, as the controller does it. */
  async function applyStatus(object: string, status: JsonObject, manager = "davit-controller") {
    const kind = object.startsWith("profiles/") ? "Profile" : "Group";
    const body = { apiVersion: "davit.dev/v1alpha1", kind, metadata: { name: object.split("/")[1] ?? "" }, status };
    const path = `${objects}/${object}/status?fieldManager=${manager}&force=true`;
    return cluster.ask({ method: "PATCH", path, body, contentType: "application/apply-patch+yaml" });
  }

  it("applies the quickstart without a warning, and nothing changes when it is applied again", async () => {
    const apply = () => cluster.kubectl(["apply", "--warnings-as-errors", "-f", quickstart]);
    const names = ["group.davit.dev/first-machine", "group.davit.dev/everyone-else", "profile.davit.dev/quickstart"];
    const told = (what: string) => names.map((name) => `${name} ${what}\n`).join("");
    expect(await apply()).toEqual({ code: 0, stdout: told("created"), stderr: "" });
    expect(await apply()).toEqual({ code: 0, stdout: told("unchanged"), stderr: "" });
  });

  it.each([
    { file: "groups.yaml", names: ["groups/first-machine", "groups/everyone-else"] },
    { file: "profile.yaml", names: ["profiles/quickstart"] },
  ])("stores of $file what davit reads in it", async ({ file, names }) => {
    await cluster.kubectl(["apply", "-f", quickstart]);
    const { definitions } = readFileBytes(file, await readFile(join(quickstart, file)), admission);
    const specs = definitions.map((read) => (read.kind === "accepted" ? read.object : undefined));
    expect(specs).toHaveLength(names.length);
    for (const [at, name] of names.entries()) expect(await stored(name)).toEqual(specOf(specs[at]));
  });

  it.each(oddNames)("stores metadata and labels called `%s` as davit reads them", async (name) => {
    const text = groupText("odd", `  selector: {matchLabels: {role: a}}\n  metadata: {${name}: {${name}: [1]}}`);
    await cluster.apply(text);
    const [read] = readFileBytes("a.yaml", Buffer.from(text), admission).definitions;
    expect(await stored("groups/odd")).toEqual(specOf(read?.kind === "accepted" ? read.object : undefined));
  });

  it.each(exactNumbers)("stores the number $text as davit reads it", async ({ text, value }) => {
    await cluster.apply(groupText("odd", `  selector: {matchLabels: {role: a}}\n  metadata: {n1: ${text}}`));
    expect(await stored("groups/odd")).toMatchObject({ metadata: { n1: value } });
  });

  it.each(emptiedSpecs)("refuses a Group whose template emptied $name", async ({ spec }) => {
    await expect(cluster.apply(groupText("emptied", spec))).rejects.toThrow(/is invalid: .*spec/s);
  });

  it("drops a label without a value, where davit finds it, and does not with --server-side", async () => {
    const text = groupText("dropped", "  selector: {matchLabels: {role: a, mac: }}");
    await expect(applyServerSide(text)).resolves.toContain("a label needs a value: write it, or remove the label");
    await cluster.apply(text);
    const { body } = await cluster.ask({ path: `${objects}/groups/dropped` });
    expect(body.spec).toMatchObject({ selector: { matchLabels: { role: "a" } } });
    expect(droppedFields("Group", body).labels).toEqual(["mac"]);
    await applyServerSide(text.replace("mac: ", "mac: 52-54-00-a1-9c-ae"));
    expect(droppedFields("Group", (await cluster.ask({ path: `${objects}/groups/dropped` })).body).labels).toEqual([]);
  });

  it("drops expressions of null, where davit finds it, and is refused with --server-side", async () => {
    const text = groupText("nulled", "  selector: {matchLabels: {role: a}, matchExpressions: }");
    await cluster.apply(text);
    const at = { path: `${objects}/groups/nulled` };
    expect(droppedFields("Group", (await cluster.ask(at)).body).expressions).toBe(true);
    await cluster.kubectl(["delete", "dgrp", "nulled"]);
    await expect(applyServerSide(text)).resolves.toContain('"spec.selector" must not validate the schema (not)');
  });

  it.each<[by: string, write: readonly string[], remove: readonly string[], found: readonly string[]]>([
    ["apply, by apply", ["apply"], ["apply"], []],
    ["apply, by replace", ["apply"], ["replace"], []],
    ["apply --server-side, by the same", ["apply", "--server-side"], ["apply", "--server-side"], []],
    ["apply --server-side, by a patch", ["apply", "--server-side"], ["patch"], []],
    ["apply, by apply --server-side", ["apply"], ["apply", "--server-side"], []],
    ["apply of another manager, by the same", managed, managed, []],
    ["create, by a patch", ["create"], ["patch"], []],
    ["create, by replace", ["create"], ["replace"], []],
    ["apply, by a patch, which leaves the annotation", ["apply"], ["patch"], ["hold", "approval", "args"]],
  ])("shows whether fields were dropped or removed: written by %s", async (_by, write, remove, found) => {
    const at = "  selector: {matchLabels: {role: a}}\n";
    const closed = groupText("removed", `${at}  hold: true\n  approval: Required\n  args: [a]`);
    const run = async (verb: readonly string[], input: string) => {
      const nulls = '{"spec": {"hold": null, "approval": null, "args": null}}';
      const patch = ["patch", "dgrp", "removed", "--type=merge", "-p", nulls];
      const { code, stderr } = await cluster.kubectl(verb[0] === "patch" ? patch : [...verb, "-f", "-"], { input });
      expect([code, stderr]).toEqual([0, expect.not.stringContaining("rror")]);
    };
    const closing = async () => {
      const { body } = await cluster.ask({ path: `${objects}/groups/removed` });
      return [isJsonObject(body.spec) && "hold" in body.spec, droppedFields("Group", body).closing];
    };
    await run(write, closed);
    expect(await closing()).toEqual([true, []]);
    await run(remove, groupText("removed", at));
    expect(await closing()).toEqual([false, found]);
    await cluster.kubectl(["delete", "dgrp", "removed"]);
  });

  it.each(["--validate=strict", "--validate=false"])("is refused a misspelt name with %s", async (validate) => {
    const input = groupText("loose", "  selector: {matchLabels: {role: a}, matchExpresions: []}\n  onHold: true");
    const { stderr } = await cluster.kubectl(["apply", validate, "-f", "-"], { input });
    const text = "Invalid value: has a field that does not exist: remove it or correct its name to one of";
    expect(stderr).toContain(`spec: ${text} approval, args, displayName, enroll, hold,`);
    expect(stderr).toContain(`spec.selector: ${text} matchExpressions, matchLabels`);
  });

  it("never merges the selectors of two who apply a Group", async () => {
    const apply = (manager: string, labels: string, ...flags: readonly string[]) => {
      const input = groupText("two", `  selector: {matchLabels: {mac: "52:54:00:a1:9c:ae", ${labels}}}`);
      return cluster.kubectl(["apply", "--server-side", `--field-manager=${manager}`, ...flags, "-f", "-"], { input });
    };
    expect(await apply("first", "os: a")).toMatchObject({ code: 0 });
    const { code, stderr } = await apply("second", "serial: b");
    expect([code, stderr]).toEqual([1, expect.stringContaining('conflict with "first": .spec.selector')]);
    expect(await apply("second", "serial: b", "--force-conflicts")).toMatchObject({ code: 0 });
    const { body } = await cluster.ask({ path: `${objects}/groups/two` });
    expect(body.spec).toMatchObject({ selector: { matchLabels: { mac: "52:54:00:a1:9c:ae", serial: "b" } } });
    expect(body.spec).not.toMatchObject({ selector: { matchLabels: { os: "a" } } });
  });

  it("lets others apply what the one who applies the selector does not say", async () => {
    const apply = (manager: string, spec: string) =>
      cluster.kubectl(["apply", "--server-side", `--field-manager=${manager}`, "-f", "-"], {
        input: `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: shared}\nspec: {${spec}}`,
      });
    expect(await apply("first", "profileRef: {name: web}, selector: {matchLabels: {role: shared}}")).toMatchObject({
      code: 0,
    });
    expect(await apply("second", "hold: true")).toMatchObject({ code: 0 });
    const { body } = await cluster.ask({ path: `${objects}/groups/shared` });
    expect(body.spec).toMatchObject({ hold: true, profileRef: { name: "web" } });
  });

  it("shows objects that nobody looked at yet", async () => {
    await cluster.apply(profileText("new"));
    await cluster.apply(groupText("new"));
    expect(await shown("get", "dprof,dgrp", "--field-selector", "metadata.name=new")).toMatchInlineSnapshot(`
      "NAME                    READY   REASON   EFFECT   GROUPS   AGE
      profile.davit.dev/new                                      AGE

      NAME                  READY   PROFILE   SELECTOR   PRIORITY   HOLD   RENDERED   AGE
      group.davit.dev/new           web                  0                            AGE
      "
    `);
  });

  it("shows objects with a status", async () => {
    const failed = { ...condition, status: "False", reason: "ProfileNotFound", message: "Create it" };
    await applyStatus("profiles/web", {
      observedGeneration: 1,
      groupCount: 3,
      configs: "ipxe",
      conditions: [condition],
    });
    await applyStatus("groups/web", { selector: "mac=52:54:00:a1:9c:ae", conditions: [failed] });
    const only = ["--field-selector", "metadata.name=web"];
    expect(await shown("get", "profiles.davit.dev", ...only)).toMatchInlineSnapshot(`
      "NAME   READY   REASON   EFFECT    GROUPS   AGE
      web    True    Ready    Install   3        AGE
      "
    `);
    expect(await shown("get", "profiles.davit.dev", "-o", "wide", ...only)).toMatchInlineSnapshot(`
      "NAME   READY   REASON   EFFECT    GROUPS   KERNEL            CONFIGS   AGE
      web    True    Ready    Install   3        /assets/vmlinuz   ipxe      AGE
      "
    `);
    expect(await shown("get", "dgrp", ...only)).toMatchInlineSnapshot(`
      "NAME   READY   PROFILE   SELECTOR                PRIORITY   HOLD   RENDERED   AGE
      web    False   web       mac=52:54:00:a1:9c:ae   5                            AGE
      "
    `);
    expect(await shown("get", "dgrp", "-o", "wide", ...only)).toMatchInlineSnapshot(`
      "NAME   READY   PROFILE   SELECTOR                PRIORITY   HOLD   RENDERED   REASON            AGE
      web    False   web       mac=52:54:00:a1:9c:ae   5                            ProfileNotFound   AGE
      "
    `);
  });

  it("finds the Groups of a Profile, and all that is davit's", async () => {
    const ofWeb = ["--field-selector", "spec.profileRef.name=quickstart", "-o", "name"];
    await cluster.kubectl(["apply", "-f", quickstart]);
    expect(await shown("get", "dgrp", ...ofWeb)).toBe("group.davit.dev/everyone-else\ngroup.davit.dev/first-machine\n");
    expect(await shown("get", "davit", "-o", "name")).toContain("profile.davit.dev/web\n");
  });

  it("waits for a condition", async () => {
    await applyStatus("profiles/web", { conditions: [condition] });
    const wait = ["wait", "--for=condition=Ready", "--timeout=20s", "profiles.davit.dev/web"];
    expect(await shown(...wait)).toBe("profile.davit.dev/web condition met\n");
  });

  it.each(["profile.spec.boot", "profile.spec.ignition.templateFrom", "groups.davit.dev.spec"])(
    "explains %s",
    async (place) => {
      const file = `../golden/kubectl/explain-${place.replaceAll(".", "-")}.txt`;
      await expect(await shown("explain", place)).toMatchFileSnapshot(file);
    },
  );

  it("leaves the status alone when the spec is applied, and the generation when the status is", async () => {
    await cluster.apply(groupText("kept"));
    await applyStatus("groups/kept", { selector: "kept", conditions: [condition] });
    const before = await cluster.ask({ path: `${objects}/groups/kept` });
    await cluster.apply(`${groupText("kept", "  matchAll: true")}status: {selector: lost}\n`);
    const after = await cluster.ask({ path: `${objects}/groups/kept` });
    expect(before.body).toMatchObject({ metadata: { generation: 1 }, status: { selector: "kept" } });
    expect(after.body).toMatchObject({
      metadata: { generation: 2 },
      spec: { matchAll: true },
      status: { selector: "kept" },
    });
  });

  it("keeps the condition that somebody else added", async () => {
    const foreign = { ...condition, type: "example.com/Audited", reason: "Seen" };
    await cluster.apply(groupText("audited"));
    await applyStatus("groups/audited", { conditions: [foreign] }, "auditor");
    await applyStatus("groups/audited", { conditions: [{ ...condition, type: "Accepted" }, condition] });
    await applyStatus("groups/audited", { conditions: [{ ...condition, status: "False" }] });
    const told = ["-o", 'jsonpath={range .status.conditions[*]}{.type}={.status}{"\\n"}{end}'];
    expect(await shown("get", "dgrp", "audited", ...told)).toBe("example.com/Audited=True\nReady=False\n");
  });

  // Server-side apply answers 500 where its merge fails before the schema is asked.
  it.each<{ name: string; status: JsonObject; place: string; code?: number }>([
    { name: "a condition neither true nor false", status: having({ status: "Maybe" }), place: "status" },
    { name: "a condition without a type", status: without("type"), place: "type", code: 500 },
    { name: "a condition without a reason", status: without("reason"), place: "reason" },
    { name: "a condition without a message", status: without("message"), place: "message" },
    { name: "a condition without a time", status: without("lastTransitionTime"), place: "lastTransitionTime" },
    { name: "a time that is none", status: having({ lastTransitionTime: "yesterday" }), place: "lastTransitionTime" },
    { name: "a reason of no letters", status: having({ reason: "" }), place: "reason" },
    { name: "a message beyond 32 KiB", status: having({ message: "x".repeat(32_769) }), place: "message" },
    { name: "a condition of an unknown form", status: having({ severity: "high" }), place: "severity", code: 500 },
    { name: "one type twice", status: { conditions: [condition, condition] }, place: "conditions", code: 500 },
    { name: "a negative generation", status: { observedGeneration: -2 }, place: "observedGeneration" },
    { name: "a phase", status: { phase: "Ready" }, place: "phase", code: 500 },
  ])("cannot give an object $name", async ({ status, place, code = 422 }) => {
    for (const object of ["profiles/web", "groups/web"]) {
      const answer = await applyStatus(object, status);
      expect(answer).toMatchObject({ status: code, body: { message: expect.stringContaining(place) } });
    }
  });

  /** What it complains of. */
  async function applyServerSide(input: string): Promise<string> {
    const flags = ["--server-side", "--force-conflicts"];
    return (await cluster.kubectl(["apply", ...flags, "-f", "-"], { input })).stderr;
  }

  /** The spec that davit reads in what the API server has. */
  async function stored(name: string): Promise<unknown> {
    const { body } = await cluster.ask({ path: `${objects}/${name}` });
    const { apiVersion = "", kind = "", spec = {} } = body;
    const document = { apiVersion, kind, metadata: { name: name.split("/")[1] ?? "" }, spec };
    const verdict = admission.admit(document, { origin: "cluster", findings: [] });
    return verdict.kind === "accepted" ? specOf(verdict.object) : verdict;
  }
});

function specOf(object: object | undefined): unknown {
  return object !== undefined && "spec" in object ? object.spec : undefined;
}

function having(part: JsonObject): JsonObject {
  return { conditions: [{ ...condition, ...part }] };
}

function without(field: string): JsonObject {
  return { conditions: [Object.fromEntries(Object.entries(condition).filter(([name]) => name !== field))] };
}

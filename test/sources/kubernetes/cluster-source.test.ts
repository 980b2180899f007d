import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import { until } from "./client-under-test.ts";
import { sendStatus } from "./fake-api-server.ts";
import {
  fromConfigMap,
  fromSecret,
  groupOf,
  profileOf,
  type SourceUnderTest,
  secretOf,
  useSources,
} from "./source-under-test.ts";

const { suite, sourceOf } = useSources();

const groupsPath = /\/groups$/;
const secretPath = /\/secrets$/;

describe("the objects of a cluster", () => {
  it("are those of the model, with defaults, uid and generation", async () => {
    suite.server.put(profileOf("web", { ignition: { inline: "{}" } }, 3));
    suite.server.put(groupOf("a", { selector: { matchLabels: { mac: "52-54-00-A1-9C-AE" } } }));
    const under = sourceOf();
    await under.list();
    const { view } = under.source;
    expect(under.listed).toEqual([true]);
    expect(view.get("Profile", "default", "web")).toMatchObject({
      uid: "uid-1",
      generation: 3,
      origin: "cluster",
      spec: { boot: { kind: "kernel", kernel: "/assets/vmlinuz" }, templates: { ignition: { text: "{}" } } },
    });
    expect(view.get("Group", "default", "a")?.spec).toMatchObject({
      profile: "web",
      selector: { mac: "52:54:00:a1:9c:ae" },
      priority: 0,
      hold: false,
    });
  });

  it("come and go with those of the API server; a change of status alone is told to nobody", async () => {
    suite.server.put(groupOf("a"));
    const under = sourceOf();
    await under.list();
    await under.tells("Group/default/b", () => suite.server.put(groupOf("b")));
    await under.tells("Group/default/b", () => suite.server.delete("Group", "b"));
    const count = under.changed.length;
    const name = { kind: "Group", namespace: "default", name: "a" } as const;
    const before = under.source.seen(name)?.resourceVersion;
    suite.server.put({ ...groupOf("a"), labels: { touched: "yes" } });
    await until(() => under.source.seen(name)?.resourceVersion !== before);
    expect(under.changed).toHaveLength(count);
    expect([...under.source.view.all("Group")].map((group) => group.name)).toEqual(["a"]);
  });

  it.each<{ name: string; namespaces: readonly string[] | "all"; found: readonly string[]; paths: number }>([
    { name: "one namespace", namespaces: ["a"], found: ["a/x"], paths: 1 },
    { name: "several namespaces", namespaces: ["a", "b"], found: ["a/x", "b/x"], paths: 2 },
    { name: "all namespaces", namespaces: "all", found: ["a/x", "b/x", "c/x"], paths: 1 },
  ])("are those of $name", async ({ namespaces, found, paths }) => {
    for (const namespace of ["a", "b", "c"]) suite.server.put(groupOf("x", {}, { namespace }));
    const under = sourceOf({ namespaces });
    await under.list();
    const groups = [...under.source.view.all("Group")].map(({ namespace, name }) => `${namespace}/${name}`);
    expect(groups.toSorted()).toEqual(found);
    expect(suite.server.seen("list", groupsPath)).toHaveLength(paths);
    expect(under.source.seen({ kind: "Group", namespace: "b", name: "x" }) !== undefined).toBe(found.includes("b/x"));
  });

  it("that have taken the place of others are told as such", async () => {
    suite.server.put({ ...groupOf("a"), uid: "one" });
    const under = sourceOf();
    await under.list();
    await under.tells("Group/default/a", () => suite.server.put({ ...groupOf("a"), uid: "two" }));
    expect(under.replaced).toEqual(["Group/default/a"]);
    expect(under.source.view.get("Group", "default", "a")?.uid).toBe("two");
  });
});

describe("an object that davit does not understand", () => {
  it("is a Group with metadata that are nested deeper than any stack may be", async () => {
    // The document, its spec and the scalar are levels, too.
    const nested = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`);
    suite.server.put(groupOf("good", { metadata: nested(98) }));
    suite.server.put(groupOf("deep", { metadata: nested(99) }));
    const under = sourceOf();
    await under.list();
    const refusalOf = (name: string) => under.source.view.get("Group", "default", name)?.refusal;
    expect(refusalOf("good")).toBe(undefined);
    expect(refusalOf("deep")).toContain("spec: is nested deeper than 100 levels: write it flatter");
  });

  it("is a Group that is refused, if it says which machines are its own", async () => {
    suite.server.put(groupOf("a", { priority: 5000 }));
    const under = sourceOf();
    await under.list();
    const group = under.source.view.get("Group", "default", "a");
    expect(group?.spec.selector).toEqual({ role: "a" });
    expect(group?.refusal).toContain("spec.priority: must be 1000 or less");
    expect(under.source.view.complete).toBe(true);
    expect([...under.source.view.refusals]).toMatchObject([{ kind: "Group", name: "a", generation: 1 }]);
  });

  it("keeps its version before, and the repaired one takes its place", async () => {
    suite.server.put(profileOf("web", { displayName: "good" }));
    const under = sourceOf();
    await under.list();
    await under.tells("Profile/default/web", () =>
      suite.server.put(profileOf("web", { field: "of a later version" }, 2)),
    );
    await until(() => under.listed.length === 2);
    expect(under.source.view.refusalOf({ kind: "Profile", namespace: "default", name: "web" })).toEqual({
      kind: "Profile",
      namespace: "default",
      name: "web",
      uid: expect.any(String),
      generation: 2,
      origin: "cluster",
      message: expect.stringMatching(/^spec: has a field that does not exist: .*; is the CRD in the cluster of this/),
    });
    expect(under.source.view.get("Profile", "default", "web")?.spec.displayName).toBe("good");
    expect(under.source.view.problems.map(({ message }) => message).join()).toContain("Profile default/web");
    await under.tells("Profile/default/web", () => suite.server.put(profileOf("web", { displayName: "new" }, 3)));
    await until(() => under.listed.length === 3);
    expect(under.listed).toEqual([true, true, true]);
    expect(under.source.view.get("Profile", "default", "web")?.spec.displayName).toBe("new");
  });

  it.each([
    { name: "no spec", content: {} },
    { name: "a spec that is a text", content: { spec: "x" } },
    { name: "a spec of null", content: { spec: null } },
    { name: "lists in the place of objects", content: { spec: { boot: [], ignition: [] } } },
    { name: "a status that is a list", content: { spec: [], status: [1] } },
  ])("is a problem with $name, never a crash", async ({ content }) => {
    suite.server.put({ kind: "Profile", name: "web", content });
    suite.server.put({ kind: "Group", name: "a", content });
    const under = sourceOf();
    await under.list();
    expect(under.source.view.problems).toHaveLength(2);
    expect(under.source.view.complete).toBe(true);
  });
});

describe("a label that kubectl apply dropped, since it had no value", () => {
  const name = "kubectl.kubernetes.io/last-applied-configuration";
  const annotations = (matchLabels: JsonObject) => ({
    [name]: JSON.stringify({ spec: { selector: { matchLabels } } }),
  });
  const withoutValue = annotations({ role: "a", mac: null });
  const dropped = "Group default/a, spec.selector.matchLabels: kubectl apply dropped a label without a value";

  it("makes no wider Group, and the version before stays", async () => {
    const mac = "52:54:00:a1:9c:ae";
    suite.server.put(groupOf("a", { selector: { matchLabels: { role: "a", mac } } }));
    const under = sourceOf();
    await under.list();
    suite.server.put({ ...groupOf("a", {}, { generation: 2 }), annotations: withoutValue });
    await until(() => under.listed.length === 2);
    expect(under.source.view.get("Group", "default", "a")?.spec.selector).toEqual({ role: "a", mac });
    expect(under.source.view.problems.map(({ message }) => message).join()).toContain(dropped);
  });

  it("is found though nothing else of the object changed, and so is its repair", async () => {
    suite.server.put(groupOf("a"));
    const under = sourceOf();
    await under.list();
    suite.server.put({ ...groupOf("a"), annotations: withoutValue });
    await until(() => under.listed.length === 2);
    suite.server.put({ ...groupOf("a"), annotations: annotations({ role: "a" }) });
    await until(() => under.listed.length === 3);
    expect(under.listed).toEqual([true, true, true]);
  });

  it.each([
    { what: "has a value by now", matchLabels: { role: null } },
    { what: "was never written", matchLabels: { role: "a" } },
    { what: "is somewhere else", matchLabels: { role: "null" } },
  ])("is none that $what", async ({ matchLabels }) => {
    suite.server.put({ ...groupOf("a"), annotations: annotations(matchLabels) });
    const under = sourceOf();
    await under.list();
    expect(under.source.view.get("Group", "default", "a")?.refusal).toBeUndefined();
    expect(under.listed).toEqual([true]);
  });

  it.each(["null", "{", '{"spec": null}', '{"spec": {"selector": [null]}}'])(
    "is not looked for in %s",
    async (text) => {
      suite.server.put({ ...groupOf("a"), annotations: { [name]: text } });
      const under = sourceOf();
      await under.list();
      expect(under.listed).toEqual([true]);
    },
  );
});

describe("a misspelt name that kubectl apply --validate=false dropped", () => {
  const matchLabels = { role: "a" };
  const annotationOf = (spec: JsonObject) => ({
    "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify({ spec }),
  });

  it("in a selector makes no wider Group, and the version before stays", async () => {
    const narrow = { role: "a", mac: "52:54:00:a1:9c:ae" };
    suite.server.put(groupOf("a", { selector: { matchLabels: narrow } }));
    const under = sourceOf();
    await under.list();
    const annotations = annotationOf({ selector: { matchLabels, matchExpresions: [] } });
    suite.server.put({ ...groupOf("a", { selector: { matchLabels } }, { generation: 2 }), annotations });
    await until(() => under.listed.length === 2);
    expect(under.source.view.get("Group", "default", "a")?.spec.selector).toEqual(narrow);
    expect(under.source.view.problems.map(({ message }) => message).join()).toContain(
      "Group default/a, spec.selector: a name was written that it does not have, and dropped",
    );
  });

  it("in a spec leaves the Group refused: its machines wait", async () => {
    const annotations = annotationOf({ selector: { matchLabels }, holds: true });
    suite.server.put({ ...groupOf("a", { selector: { matchLabels } }), annotations });
    const under = sourceOf();
    await under.list();
    expect(under.source.view.get("Group", "default", "a")).toMatchObject({
      refusal: expect.stringContaining("a name was written that it does not have"),
    });
  });
});

describe("expressions of a selector", () => {
  const matchLabels = { role: "a" };
  const matchExpressions = [{ key: "os", operator: "Exists" }];

  it("that an older CRD hides make no wider Group, and the version before stays", async () => {
    suite.server.put(groupOf("a", { selector: { matchLabels, matchExpressions } }));
    const under = sourceOf();
    await under.list();
    const text = JSON.stringify({ spec: { selector: { matchLabels, matchExpressions } } });
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": text };
    suite.server.put({ ...groupOf("a", { selector: { matchLabels } }, { generation: 2 }), annotations });
    await until(() => under.listed.length === 2);
    expect(under.source.view.get("Group", "default", "a")?.spec.expressions).toHaveLength(1);
    expect(under.source.view.problems.map(({ message }) => message)).toEqual([
      "Group default/a, spec.selector.matchExpressions: it was written and dropped, by an older CRD or since it was " +
        "empty: apply the CRDs of this version of davit, then the Group again, with its expressions",
    ]);
  });

  it("with a value that no machine has are refused by its place, and the machines of the others wait", async () => {
    const values = ["52:54:00:a1:9c:ae", "node-1"];
    const selector = { matchLabels, matchExpressions: [{ key: "mac", operator: "In", values }] };
    suite.server.put(groupOf("a", { selector }));
    const under = sourceOf();
    await under.list();
    expect(under.source.view.get("Group", "default", "a")).toMatchObject({
      refusal: 'spec.selector.matchExpressions.0.values.1: is no MAC address: write one such as "52:54:00:a1:9c:ae"',
      spec: { selector: matchLabels, expressions: [{ key: "mac", values: ["52:54:00:a1:9c:ae"] }] },
    });
  });
});

describe("the first list", () => {
  it("is told when every list is in, and what Profiles refer to is known", async () => {
    suite.server.put(profileOf("web", { ignition: fromConfigMap("texts"), generic: fromSecret("keys") }));
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    suite.server.put(secretOf("keys", "s3cret"));
    const under = sourceOf();
    await under.list();
    expect(under.listed).toEqual([true]);
    const { view } = under.source;
    expect(view.get("ConfigMap", "default", "texts")?.data).toEqual({ text: "{}" });
    expect(view.get("Secret", "default", "keys")).toMatchObject({ data: { text: "s3cret" }, allowsTemplate: true });
    expect(view.get("Profile", "default", "web")).toBeDefined();
  });

  it("is not told while one of them is missing", async () => {
    const off = suite.server.always(groupsPath, (_, response) => sendStatus(response, 404, "NotFound"));
    suite.server.put(profileOf("web", {}));
    const under = sourceOf();
    await under.start();
    await until(() => under.source.view.get("Profile", "default", "web") !== undefined);
    await until(() => suite.server.seen("list", groupsPath).length === 1);
    expect(under.listed).toEqual([]);
    expect(under.source.view.complete).toBe(false);
    off();
    await until(() => under.bed.told("not following the cluster, what is known stays").length > 0);
    await under.bed.clock.advance(800);
    await until(() => under.listed.length > 0);
    expect(under.source.view.complete).toBe(true);
  });

  it("that is empty is looked at a second time, and told again", async () => {
    const under = sourceOf();
    await under.list();
    const count = suite.server.seen("list", groupsPath).length;
    await until(() => under.bed.clock.nextWakeMs === 5_000);
    await under.bed.clock.advance(5_000);
    await until(() => under.listed.length === 2);
    expect(suite.server.seen("list", groupsPath)).toHaveLength(count + 1);
    await under.bed.clock.advance(60_000);
    expect(under.listed).toHaveLength(2);
  });

  it("is told as half while a Secret cannot be read, and as whole once it can", async () => {
    suite.server.put(profileOf("web", { generic: fromSecret("keys") }));
    suite.server.put(secretOf("keys", "s3cret"));
    const off = suite.server.always(secretPath, (_, response) => sendStatus(response, 500, "InternalError"));
    const under = sourceOf();
    await under.list();
    expect(under.listed).toEqual([false]);
    expect(under.source.view.get("Profile", "default", "web")).toBeUndefined();
    off();
    await under.tells("Profile/default/web", () => under.bed.clock.advance(800));
    await until(() => under.listed.length === 2);
    expect(under.listed).toEqual([false, true]);
  });
});

describe("metrics", () => {
  it("tell which resources are connected, and how old the view is", async () => {
    suite.server.put(groupOf("a"));
    const under = sourceOf({ namespaces: ["default", "other"] });
    await under.list();
    await until(() => suite.server.openWatches === 8);
    const connected = () => under.bed.measured("davit_watch_connected");
    while ((await connected()).length < 3) await new Promise((resolve) => setImmediate(resolve));
    expect(await connected()).toEqual([
      'davit_watch_connected{resource="configmaps"} 1',
      'davit_watch_connected{resource="groups"} 1',
      'davit_watch_connected{resource="profiles"} 1',
    ]);
    await under.bed.clock.advance(12_000);
    under.source.measure();
    expect(await under.bed.measured("davit_cache_age_seconds")).toEqual(["davit_cache_age_seconds 12"]);
  });
});

describe("stopping", () => {
  it.each([
    { name: "before the first list", reach: (under: SourceUnderTest) => under.start() },
    { name: "while it follows", reach: (under: SourceUnderTest) => under.list() },
  ])("$name leaves no timer and no socket", async ({ reach }) => {
    suite.server.put(profileOf("web", { generic: fromSecret("keys"), ignition: fromConfigMap("texts") }));
    const under = sourceOf();
    await reach(under);
    await under.stop();
    await under.stop();
    await until(() => suite.server.openSockets === 0);
    expect(under.bed.clock.sleeping).toBe(0);
  });
});

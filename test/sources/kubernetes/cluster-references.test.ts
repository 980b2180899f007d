import { describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { sendStatus } from "./fake-api-server.ts";
import { fromConfigMap, fromSecret, profileOf, secretOf, useSources } from "./source-under-test.ts";

const { suite, sourceOf } = useSources();

const secretPath = /\/secrets$/;

describe("what Profiles refer to", () => {
  it("is all that is read of ConfigMaps; of the others only the metadata", async () => {
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    suite.server.put({ kind: "ConfigMap", name: "other", content: { data: { text: "private" } } });
    suite.server.put(profileOf("web", { ignition: fromConfigMap("texts") }));
    const under = sourceOf();
    await under.list();
    expect(suite.server.seen("get").map(({ path }) => path)).toEqual(["/api/v1/namespaces/default/configmaps/texts"]);
    expect(suite.server.seen("list", /configmaps/)[0]?.headers.accept).toContain("as=PartialObjectMetadataList");
    expect(under.source.view.get("ConfigMap", "default", "other")).toBeUndefined();
  });

  it("is all that is asked for of Secrets: one named watch each", async () => {
    suite.server.put(profileOf("web", { generic: fromSecret("keys") }));
    suite.server.put(secretOf("keys", "s3cret"));
    suite.server.put(secretOf("other", "private"));
    const under = sourceOf();
    await under.list();
    for (const { query } of suite.server.requests.filter(({ path }) => secretPath.test(path))) {
      expect(query.get("fieldSelector")).toBe("metadata.name=keys");
    }
    expect(under.source.view.get("Secret", "default", "other")).toBeUndefined();
  });

  it("is what their generic parts refer to, too", async () => {
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "one" } } });
    suite.server.put(secretOf("keys", "s3cret"));
    const parts = [
      { name: "user-data", ...fromSecret("keys") },
      { name: "meta-data", ...fromConfigMap("texts") },
    ];
    suite.server.put(profileOf("web", { genericParts: parts }));
    const under = sourceOf();
    await under.list();
    expect(under.source.view.get("ConfigMap", "default", "texts")?.data.text).toBe("one");
    expect(under.source.view.get("Secret", "default", "keys")?.data.text).toBe("s3cret");
  });

  it("is told when it changes, comes or goes", async () => {
    suite.server.put(profileOf("web", { ignition: fromConfigMap("texts"), generic: fromSecret("keys") }));
    const under = sourceOf();
    await under.list();
    const { view } = under.source;
    const texts = (text: string) => suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text } } });
    await under.tells("ConfigMap/default/texts", () => texts("one"));
    await under.tells("ConfigMap/default/texts", () => texts("two"));
    expect(view.get("ConfigMap", "default", "texts")?.data.text).toBe("two");
    await under.tells("ConfigMap/default/texts", () => suite.server.delete("ConfigMap", "texts"));
    expect(view.get("ConfigMap", "default", "texts")).toBeUndefined();
    await under.tells("Secret/default/keys", () => suite.server.put(secretOf("keys", "one")));
    expect(view.get("Secret", "default", "keys")?.data.text).toBe("one");
    await under.tells("Secret/default/keys", () => suite.server.delete("Secret", "keys"));
    expect(view.get("Secret", "default", "keys")).toBeUndefined();
    expect(under.listed).toEqual([true]);
  });

  it("decides when a new version of a Profile shows: not before it is known", async () => {
    suite.server.put(profileOf("web", { displayName: "old" }));
    const under = sourceOf();
    await under.list();
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    await under.tells("Profile/default/web", () =>
      suite.server.put(profileOf("web", { displayName: "new", ignition: fromConfigMap("texts") }, 2)),
    );
    expect(under.source.view.get("ConfigMap", "default", "texts")?.data.text).toBe("{}");
    expect(under.source.view.get("Profile", "default", "web")?.spec.displayName).toBe("new");
    expect(under.listed).toEqual([true]);
  });

  it("leaves nothing in view of a Profile that went, while the new one of that name is not known", async () => {
    suite.server.put(profileOf("web", { displayName: "old" }));
    const under = sourceOf();
    await under.list();
    const name = { kind: "Profile", namespace: "default", name: "web" } as const;
    const old = under.source.view.get("Profile", "default", "web");
    expect(under.source.view.pendingOf?.(name)).toBeUndefined();
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    const held = suite.server.always(/configmaps\/texts/, (_, response) => sendStatus(response, 503, "Unavailable"));
    suite.server.delete("Profile", "web");
    suite.server.put(profileOf("web", { displayName: "new", ignition: fromConfigMap("texts") }));
    await until(() => under.source.view.pendingOf?.(name) !== undefined);
    expect(under.source.view.get("Profile", "default", "web")).toBeUndefined();
    expect(under.source.view.pendingOf?.(name)?.uid).not.toBe(old?.uid);
    held();
    await until(() => under.source.view.get("Profile", "default", "web")?.spec.displayName === "new");
    expect(under.source.view.pendingOf?.(name)).toBeUndefined();
  });

  it("is let go when nobody refers to it any more", async () => {
    suite.server.put(profileOf("web", { generic: fromSecret("keys"), ignition: fromConfigMap("texts") }));
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    suite.server.put(secretOf("keys", "s3cret"));
    const under = sourceOf();
    await under.list();
    await until(() => suite.server.openWatches === 5);
    await under.tells("Profile/default/web", () => suite.server.put(profileOf("web", {}, 2)));
    await until(() => suite.server.openWatches === 4);
    expect(under.source.view.get("Secret", "default", "keys")).toBeUndefined();
    expect(under.source.view.get("ConfigMap", "default", "texts")).toBeUndefined();
  });

  it("counts as not there when it may not be read, without holding up the rest", async () => {
    const forbid = (path: RegExp) => suite.server.always(path, (_, response) => sendStatus(response, 403, "Forbidden"));
    forbid(secretPath);
    forbid(/configmaps/);
    suite.server.put(profileOf("web", { generic: fromSecret("keys"), ignition: fromConfigMap("texts") }));
    const under = sourceOf();
    await under.list();
    expect(under.listed).toEqual([true]);
    expect(under.source.view.get("Profile", "default", "web")).toBeDefined();
    expect(under.source.view.get("Secret", "default", "keys")).toBeUndefined();
  });

  it("is told apart from what is not there when it may not be read, until it may", async () => {
    const references = [
      { kind: "Secret", namespace: "default", name: "keys" },
      { kind: "ConfigMap", namespace: "default", name: "texts" },
    ] as const;
    const forbid = (path: RegExp) => suite.server.always(path, (_, response) => sendStatus(response, 403, "Forbidden"));
    const off = [secretPath, /configmaps/].map(forbid);
    suite.server.put(profileOf("web", { generic: fromSecret("keys"), ignition: fromConfigMap("texts") }));
    const under = sourceOf();
    await under.list();
    const areForbidden = () => references.map((reference) => under.source.view.isForbidden?.(reference));
    expect(areForbidden()).toEqual([true, true]);
    for (const admit of off) admit();
    const told = under.changed.length;
    await under.bed.clock.advance(10_000);
    await until(() => ["Secret", "ConfigMap"].every((kind) => under.changed.slice(told).join().includes(`${kind}/`)));
    expect(areForbidden()).toEqual([false, false]);
    expect(under.source.view.isForbidden?.({ kind: "Group", namespace: "default", name: "a" })).toBe(false);
  });

  it("is told apart, too, when the list is allowed and the reading is not", async () => {
    const off = suite.server.always(/configmaps\/texts/, (_, response) => sendStatus(response, 403, "Forbidden"));
    suite.server.put(profileOf("web", { ignition: fromConfigMap("texts") }));
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    const under = sourceOf();
    await under.list();
    const texts = { kind: "ConfigMap", namespace: "default", name: "texts" } as const;
    expect(under.source.view.isForbidden?.(texts)).toBe(true);
    off();
    await under.tells("ConfigMap/default/texts", () => under.bed.clock.advance(10_000));
    expect(under.source.view.isForbidden?.(texts)).toBe(false);
    expect(under.source.view.get("ConfigMap", "default", "texts")?.data.text).toBe("{}");
  });

  it("does not count as not there when davit is not let in at all: nothing is taken for gone", async () => {
    const off = [secretPath, /configmaps/].map((path) =>
      suite.server.always(path, (_, response) => sendStatus(response, 401, "Unauthorized")),
    );
    suite.server.put(profileOf("web", { generic: fromSecret("keys"), ignition: fromConfigMap("texts") }));
    suite.server.put(secretOf("keys", "s3cret"));
    suite.server.put({ kind: "ConfigMap", name: "texts", content: { data: { text: "{}" } } });
    const under = sourceOf();
    await under.list();
    expect(under.listed).toEqual([false]);
    expect(under.source.view.get("Profile", "default", "web")).toBeUndefined();
    for (const admit of off) admit();
    await until(
      () => suite.server.seen("list", secretPath).length > 1 && suite.server.seen("list", /configmaps/).length > 1,
    );
    await under.tells("Profile/default/web", () => under.bed.clock.advance(10_000));
    expect(under.source.view.get("Secret", "default", "keys")?.data.text).toBe("s3cret");
    expect(under.source.view.complete).toBe(true);
  });

  it("stays as it was while the API server is away", async () => {
    suite.server.put(profileOf("web", { generic: fromSecret("keys") }));
    suite.server.put(secretOf("keys", "s3cret"));
    const under = sourceOf();
    await under.list();
    await until(() => suite.server.openWatches === 5);
    const listed = suite.server.requests.length;
    suite.server.always(/./, (_, response) => sendStatus(response, 403, "Forbidden"));
    suite.server.cut();
    await under.bed.clock.advance(60_000);
    await until(() => suite.server.requests.length > listed);
    expect(under.source.view.get("Secret", "default", "keys")?.data.text).toBe("s3cret");
    expect(under.source.view.complete).toBe(true);
  });

  it("is at most 100 Secrets; one more waits until another is let go", async () => {
    for (let count = 0; count <= 100; count++) {
      suite.server.put(profileOf(`p${count}`, { generic: fromSecret(`s${count}`) }));
      suite.server.put(secretOf(`s${count}`, "text"));
    }
    const under = sourceOf();
    await under.list();
    expect([...under.source.view.all("Secret")]).toHaveLength(100);
    expect(under.bed.told("too many Secrets, this one is not read")).toHaveLength(1);
    await under.tells("Secret/default/s100", () => suite.server.delete("Profile", "p0"));
    expect(under.source.view.get("Secret", "default", "s100")?.data.text).toBe("text");
  });
});

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { StoredProfile } from "../../src/controller/core/stored-documents.ts";
import { reconcileProfile, removeProfile } from "../../src/controller/reconcile/reconcile-profile.ts";
import type { ProfileWorld } from "../../src/controller/reconcile/resolve-profile.ts";
import type { DocumentChange } from "../../src/model/feed.ts";
import { decodeProfile, encodeDocument, type ProfileDocument } from "../../src/model/objects/documents.ts";
import type { TemplateSource } from "../../src/model/objects/profile.ts";
import type { ConfigMapObject, ProfileObject, SecretObject } from "../../src/model/objects/source.ts";
import { configMapObject, kernelBoot, profileObject, secretObject } from "./objects.ts";

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const nothingStored: StoredProfile = { document: undefined, secrets: new Map() };
const rawIgnition = '{"ignition": {"version": "3.4.0"}}';
const inline = (text: string): TemplateSource => ({ kind: "inline", text, raw: false });
const fromSecret: TemplateSource = { kind: "secret", name: "secrets", key: "ign", raw: false };

/** A world in which a template is broken when it says so. */
function world(
  objects: { configMap?: ConfigMapObject; secret?: SecretObject; isViewComplete?: boolean; isForbidden?: boolean } = {},
): ProfileWorld {
  return {
    sha256,
    secretName: sha256,
    isGone: ({ name }) => objects.secret?.name !== name && objects.isViewComplete !== false,
    isForbidden: () => objects.isForbidden === true,
    configMap: (_namespace, name) => (objects.configMap?.name === name ? objects.configMap : undefined),
    secret: (_namespace, name) => (objects.secret?.name === name ? objects.secret : undefined),
    checkTemplate: (text) =>
      text.includes("broken") ? { reason: "notClosed", message: "Unclosed block", line: 2, column: 7 } : undefined,
  };
}

function condition(outcome: ReturnType<typeof reconcileProfile>, type: string) {
  return outcome.status?.conditions.find((candidate) => candidate.type === type);
}

/** Reconciles and keeps what was written, as the store would. */
function store(object: ProfileObject, before: StoredProfile, in_: ProfileWorld): StoredProfile {
  let document: ProfileDocument | undefined = before.document;
  const secrets = new Map(before.secrets);
  for (const { path, text } of reconcileProfile(object, before, in_).changes) {
    if (path.startsWith("/davit/profiles/")) document = text === undefined ? undefined : decodeProfile(text);
    else if (text === undefined) secrets.delete(path.split("/").at(-1) ?? "");
    else secrets.set(sha256(text), { isReadable: true, read: () => ({ name: sha256(text), text }) });
  }
  return { document, secrets };
}

/** What is written of a Profile whose newest version is not what machines get. */
function keptFrom({ document }: StoredProfile): readonly DocumentChange[] {
  if (document === undefined) throw new Error("Nothing is stored");
  return [{ path: "/davit/profiles/default/web", text: encodeDocument({ ...document, outdated: true }) }];
}

describe("a valid Profile", () => {
  it("is written whole, with its references resolved", () => {
    const ignition: TemplateSource = { kind: "configMap", name: "templates", key: "ign", raw: true };
    const object = profileObject({ templates: { ignition } });
    const outcome = reconcileProfile(
      object,
      nothingStored,
      world({ configMap: configMapObject({ ign: rawIgnition }) }),
    );
    expect(outcome.changes).toHaveLength(1);
    expect(JSON.parse(outcome.changes[0]?.text ?? "")).toMatchObject({
      origin: object.origin,
      content: {
        displayName: "web",
        boot: kernelBoot,
        templates: { ignition: { kind: "text", text: rawIgnition, raw: true } },
      },
    });
    expect(condition(outcome, "Ready")).toMatchObject({ status: "True" });
    expect(outcome.status?.configs).toBe("ipxe,ignition");
  });

  it("is not written again when nothing changed", () => {
    const object = profileObject({ templates: { generic: inline("a") } });
    const stored = store(object, nothingStored, world());
    expect(reconcileProfile(object, stored, world()).changes).toEqual([]);
  });

  it("has another revision when a reference's text changed", () => {
    const object = profileObject({
      templates: { generic: { kind: "configMap", name: "templates", key: "g", raw: false } },
    });
    const before = store(object, nothingStored, world({ configMap: configMapObject({ g: "one" }) }));
    const after = store(object, before, world({ configMap: configMapObject({ g: "two" }) }));
    expect(after.document?.revision).not.toBe(before.document?.revision);
  });
});

describe("a ConfigMap or Secret that is not in view", () => {
  it.each([
    { isForbidden: false, says: ["does not exist", "does not exist"] },
    {
      isForbidden: true,
      says: ["[configmaps]", "[secrets], resourceNames: [secrets]"].map(
        (what) =>
          `does not exist, or davit may not read it: its Role lacks the rule {apiGroups: [""], resources: ${what}, verbs: [get, list, watch]}: upgrade the chart, or see docs/internals/controller.md#rbac`,
      ),
    },
  ])("names the missing rule when isForbidden is $isForbidden", ({ isForbidden, says }) => {
    const templates = {
      ignition: { kind: "configMap", name: "absent", key: "k", raw: false },
      generic: fromSecret,
    } as const;
    const messages = Object.entries(templates).map(([part, template]) => {
      const object = profileObject({ templates: { [part]: template } });
      return condition(reconcileProfile(object, nothingStored, world({ isForbidden })), "ResolvedRefs")?.message;
    });
    expect(messages).toEqual([
      `spec.ignition: ConfigMap "absent" ${says[0]}`,
      `spec.generic: Secret "secrets" ${says[1]}`,
    ]);
  });
});

describe("a Profile that was never valid", () => {
  it.each([
    { name: "template", templates: { ignition: inline("broken") }, reason: "InvalidTemplate", type: "Accepted" },
    {
      name: "template over 1 MiB",
      templates: { ignition: inline("é".repeat(600_000)) },
      reason: "TooLarge",
      type: "Accepted",
    },
    {
      name: "missing ConfigMap",
      templates: { ignition: { kind: "configMap", name: "absent", key: "k", raw: false } as const },
      reason: "TemplateNotFound",
      type: "ResolvedRefs",
    },
    {
      name: "missing ConfigMap key",
      templates: { ignition: { kind: "configMap", name: "templates", key: "constructor", raw: false } as const },
      reason: "KeyNotFound",
      type: "ResolvedRefs",
    },
    {
      name: "finished Ignition document that is none",
      templates: { ignition: { kind: "inline", text: "{}", raw: true } as const },
      reason: "InvalidTemplate",
      type: "Accepted",
    },
    {
      name: "Butane document",
      templates: { ignition: inline("variant: fcos\nversion: 1.9.0\n") },
      reason: "InvalidTemplate",
      type: "Accepted",
    },
    {
      name: "Butane document as JSON",
      templates: { ignition: inline('{"version": "1.5.0", "variant": "fcos"}') },
      reason: "InvalidTemplate",
      type: "Accepted",
    },
    { name: "missing Secret", templates: { ignition: fromSecret }, reason: "TemplateNotFound", type: "ResolvedRefs" },
  ])("tells $reason and breaks only that part: $name", ({ templates, reason, type }) => {
    const object = profileObject({ templates: { ...templates, generic: inline("fine") } });
    const outcome = reconcileProfile(object, nothingStored, world({ configMap: configMapObject({ a: "b" }) }));
    expect(condition(outcome, type)).toMatchObject({ status: "False", reason });
    expect(condition(outcome, type)?.message).toMatch(/^spec\.ignition: /);
    expect(condition(outcome, "Ready")).toMatchObject({ status: "False", reason });
    const { content } = JSON.parse(outcome.changes[0]?.text ?? "");
    expect(content.templates).toEqual({
      ignition: { kind: "broken" },
      generic: { kind: "text", text: "fine", raw: false },
    });
    expect(content.boot).toEqual(kernelBoot);
  });

  it("tells of a URL by its field, without its text, in which a password may be", () => {
    const boot = {
      kind: "kernel",
      kernel: "/k",
      initrd: ["/a", "http://user:secret@/b"],
      args: [],
      efiInitrd: false,
    } as const;
    const outcome = reconcileProfile(profileObject({ boot, templates: {} }), nothingStored, world());
    expect(condition(outcome, "Accepted")).toMatchObject({
      status: "False",
      reason: "InvalidURL",
      message: "spec.boot.initrd[1]: is no URL that a machine can follow: write http://HOST:PORT/PATH",
    });
  });

  it("tells where a finished generic document is not the JSON that it promises to be", () => {
    const generic = { kind: "inline", text: '{"a":\n', raw: true, format: "json" } as const;
    const outcome = reconcileProfile(profileObject({ templates: { generic } }), nothingStored, world());
    expect(condition(outcome, "Accepted")?.message).toBe(
      "spec.generic: Read generic result: not JSON, which its format says it is (line 2, column 1 of the result)",
    );
  });

  it("hands on what a generic config promises to be", () => {
    const generic = { kind: "inline", text: "{{a}}", raw: false, format: "json" } as const;
    const outcome = reconcileProfile(profileObject({ templates: { generic } }), nothingStored, world());
    expect(JSON.parse(outcome.changes[0]?.text ?? "").content.templates.generic).toMatchObject({ format: "json" });
  });

  it("tells the place of a template mistake in a kernel argument", () => {
    const object = profileObject({ boot: { ...kernelBoot, args: ["quiet", "{{broken"] } });
    const outcome = reconcileProfile(object, nothingStored, world());
    expect(condition(outcome, "Accepted")?.message).toBe("spec.boot.args[1]: line 2, column 7: Unclosed block");
    expect(JSON.parse(outcome.changes[0]?.text ?? "").content.boot).toEqual({ kind: "broken" });
  });

  it.each([
    { name: "script", spec: { boot: { kind: "script", script: "#!ipxe {{broken" } } },
    { name: "grubScript", spec: { boot: kernelBoot, grubScript: "{{broken" } },
  ] as const)(
    "tells the place of a template mistake in its $name, and neither client gets half of it",
    ({ name, spec }) => {
      const outcome = reconcileProfile(profileObject(spec), nothingStored, world());
      expect(condition(outcome, "Accepted")?.message).toBe(`spec.boot.${name}: line 2, column 7: Unclosed block`);
      const { content } = JSON.parse(outcome.changes[0]?.text ?? "");
      expect(content).toEqual({ displayName: "web", boot: { kind: "broken" }, templates: {} });
    },
  );

  it("hands on its metadata, and scripts of its own", () => {
    const spec = { metadata: { a: [1] }, boot: { kind: "script", script: "#!ipxe" }, grubScript: "exit" } as const;
    const outcome = reconcileProfile(profileObject(spec), nothingStored, world());
    expect(JSON.parse(outcome.changes[0]?.text ?? "").content).toEqual({ displayName: "web", templates: {}, ...spec });
    expect(outcome.status?.configs).toBe("ipxe,grub");
  });
});

describe("a Profile that was valid before", () => {
  const good = profileObject({ templates: { generic: inline("good") } });
  const stored = store(good, nothingStored, world());

  it("keeps its last good content whole when the new one is not usable", () => {
    const bad = profileObject({ boot: { ...kernelBoot, kernel: "/new" }, templates: { generic: inline("broken") } });
    const outcome = reconcileProfile({ ...bad, generation: 2 }, stored, world());
    expect(outcome.changes).toEqual(keptFrom(stored));
    expect(condition(outcome, "Synced")).toMatchObject({ status: "False", reason: "ServingLastGood" });
    expect(outcome.status?.observedGeneration).toBe(2);
  });

  it("takes the next valid content", () => {
    const next = profileObject({ templates: { generic: inline("better") } });
    expect(store(next, stored, world()).document?.content.templates.generic).toMatchObject({ text: "better" });
  });

  it("is not outdated any more with the next valid content, be it the old one", () => {
    const bad = profileObject({ templates: { generic: inline("broken") } });
    const kept = store(bad, stored, world());
    expect(kept.document?.outdated).toBe(true);
    expect(store(good, kept, world()).document).toEqual(stored.document);
  });
});

describe("a Secret's template", () => {
  const object = profileObject({ templates: { ignition: fromSecret } });
  const allowed = world({ secret: secretObject({ ign: "password" }) });
  const hash = sha256("password");

  it("is stored under its hash, before the document that names it", () => {
    const { changes } = reconcileProfile(object, nothingStored, allowed);
    expect(changes.map(({ path }) => path)).toEqual([
      `/davit/_secrets/default/web/${hash}`,
      "/davit/profiles/default/web",
    ]);
    expect(changes[1]?.text).not.toContain("password");
  });

  it("needs the label on the Secret", () => {
    const outcome = reconcileProfile(
      object,
      nothingStored,
      world({ secret: secretObject({ ign: "password" }, false) }),
    );
    expect(condition(outcome, "ResolvedRefs")).toMatchObject({ reason: "RefNotPermitted" });
    expect(JSON.stringify(outcome)).not.toContain("password");
  });

  it("is replaced when the Secret changes, and its old text is removed last", () => {
    const stored = store(object, nothingStored, allowed);
    const { changes } = reconcileProfile(object, stored, world({ secret: secretObject({ ign: "new" }) }));
    expect(changes.map(({ text }) => text === undefined)).toEqual([false, false, true]);
    expect(changes[2]?.path).toBe(`/davit/_secrets/default/web/${hash}`);
  });

  it.each([
    { name: "deleted", after: world() },
    { name: "no longer allowed", after: world({ secret: secretObject({ ign: "password" }, false) }) },
    { name: "without the key", after: world({ secret: secretObject({}) }) },
  ])("is erased and its part broken once the Secret is $name, and the rest goes on", ({ after }) => {
    const stored = store(object, nothingStored, allowed);
    const gone = store(object, stored, after);
    expect([...gone.secrets.keys()]).toEqual([]);
    expect(gone.document?.content.templates.ignition).toEqual({ kind: "broken", withdrawn: true });
    expect(gone.document?.content.boot).toEqual(kernelBoot);
    expect(reconcileProfile(object, gone, after).changes).toEqual([]);
    expect(store(object, gone, allowed).document?.content).toEqual(stored.document?.content);
  });
});

describe("generic parts", () => {
  const again: TemplateSource = { ...fromSecret, raw: true };
  const object = profileObject({
    templates: { generic: inline("whole"), "generic/user-data": fromSecret, "generic/meta-data": again },
  });
  const allowed = world({ secret: secretObject({ ign: "password" }) });

  it("are written beside the generic config, and told by their paths", () => {
    const outcome = reconcileProfile(object, nothingStored, allowed);
    expect(outcome.status?.configs).toBe("ipxe,generic,generic/user-data,generic/meta-data");
    const { document } = store(object, nothingStored, allowed);
    expect(Object.keys(document?.content.templates ?? {})).toEqual([
      "generic",
      "generic/user-data",
      "generic/meta-data",
    ]);
  });

  it("have 4 MiB together with all other texts, and the first that has no room is told", () => {
    const mebibyte = { kind: "configMap", name: "templates", key: "g", raw: false } as const;
    const templates = Object.fromEntries(["a", "b", "c"].map((name) => [`generic/${name}`, mebibyte]));
    const large = world({ configMap: configMapObject({ g: "x".repeat(1024 * 1024) }) });
    const full = profileObject({ templates: { cloudConfig: { ...mebibyte }, generic: mebibyte, ...templates } });
    expect(condition(reconcileProfile(full, nothingStored, large), "Accepted")).toMatchObject({
      reason: "TooLarge",
      message: "spec.genericParts[c]: Template and those before it are longer than 4 MiB together",
    });
    const fitting = profileObject({ templates: { generic: mebibyte, ...templates } });
    expect(condition(reconcileProfile(fitting, nothingStored, large), "Ready")).toMatchObject({ status: "True" });
  });

  it("of one secret text store it once, and it goes with the last of them", () => {
    const stored = store(object, nothingStored, allowed);
    expect([...stored.secrets.keys()]).toEqual([sha256("password")]);
    const one = profileObject({ templates: { "generic/meta-data": again } });
    expect([...store(one, stored, allowed).secrets.keys()]).toEqual([sha256("password")]);
    expect([...store(profileObject(), stored, allowed).secrets.keys()]).toEqual([]);
  });

  it("are each erased with their Secret, and the others go on", () => {
    const stored = store(object, nothingStored, allowed);
    const gone = store(object, stored, world());
    expect([...gone.secrets.keys()]).toEqual([]);
    expect(gone.document?.content.templates).toMatchObject({
      generic: { kind: "text" },
      "generic/user-data": { kind: "broken", withdrawn: true },
      "generic/meta-data": { kind: "broken", withdrawn: true },
    });
  });

  it.each([
    { what: "a template", part: inline("broken"), type: "Accepted", says: "line 2, column 7: Unclosed block" },
    {
      what: "a raw text that is not the JSON it promises to be",
      part: { kind: "inline", text: "[", raw: true, format: "json" } as const,
      type: "Accepted",
      says: "Read generic result: not JSON, which its format says it is (line 1, column 2 of the result)",
    },
    { what: "a Secret", part: fromSecret, type: "ResolvedRefs", says: 'Secret "secrets" does not exist' },
  ])("name themselves where $what is wrong, and the last good content stays whole", ({ part, type, says }) => {
    const good = profileObject({ templates: { "generic/user-data": inline("old"), "generic/b": inline("old") } });
    const stored = store(good, nothingStored, world());
    const bad = profileObject({ templates: { "generic/user-data": part, "generic/b": inline("new") } });
    const outcome = reconcileProfile(bad, stored, world());
    expect(condition(outcome, type)?.message).toBe(`spec.genericParts[user-data]: ${says}`);
    expect(outcome.changes).toEqual(keptFrom(stored));
    expect(condition(outcome, "Synced")).toMatchObject({ reason: "ServingLastGood" });
  });
});

describe("a Secret that is out of view while part of the source cannot be read", () => {
  const object = profileObject({ templates: { ignition: fromSecret } });
  const stored = store(object, nothingStored, world({ secret: secretObject({ ign: "x" }) }));

  it("is not taken for withdrawn: its template is served as before", () => {
    const outcome = reconcileProfile(object, stored, world({ isViewComplete: false }));
    expect(outcome.changes).toEqual(keptFrom(stored));
    expect(condition(outcome, "Synced")).toMatchObject({ reason: "ServingLastGood" });
  });

  it("is withdrawn all the same when it can be seen to forbid it", () => {
    const forbidden = world({ secret: secretObject({ ign: "x" }, false), isViewComplete: false });
    expect([...store(object, stored, forbidden).secrets.keys()]).toEqual([]);
  });
});

it("A Profile that is gone leaves nothing behind", () => {
  const object = profileObject({ templates: { ignition: fromSecret } });
  const stored = store(object, nothingStored, world({ secret: secretObject({ ign: "x" }) }));
  const paths = removeProfile("default", "web", stored).changes.map(({ path, text }) => [path, text]);
  expect(paths).toEqual([
    ["/davit/profiles/default/web", undefined],
    [`/davit/_secrets/default/web/${sha256("x")}`, undefined],
  ]);
});

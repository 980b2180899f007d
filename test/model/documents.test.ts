import { describe, expect, it } from "vitest";
import {
  decodeGroup,
  decodeProfile,
  decodeSynced,
  decodeTombstone,
  documentAddress,
  encodeDocument,
  type GroupDocument,
  groupPath,
  type ProfileDocument,
  profilePath,
  profileTombstonePath,
  type SyncedDocument,
  secretPath,
  syncedPath,
  type TombstoneDocument,
  tombstonePath,
  tombstoneSelectors,
} from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { storePath } from "../../src/store/core/node.ts";

const provenance = { origin: "web.yaml, document 1 (line 1)", uid: "u", generation: 1 };
const profile: ProfileDocument = { ...provenance, revision: "r", content: { displayName: "Web", templates: {} } };
const group: GroupDocument = {
  ...provenance,
  spec: {
    profile: "web",
    selector: { mac: "m" },
    matchAll: false,
    priority: 0,
    hold: false,
    metadata: { a: [1, null] },
  },
};
const tombstone: TombstoneDocument = { group: "lab/node", selector: "mac=m", labels: [{ mac: "m" }] };
const synced: SyncedDocument = { source: "directory", at: "2026-01-01T00:00:00Z", revision: "r", complete: true };

describe("documentAddress", () => {
  it("reads the paths that this module makes", () => {
    expect(documentAddress(profilePath("ns", "web"))).toEqual({ kind: "profile", namespace: "ns", name: "web" });
    expect(documentAddress(groupPath("ns", "web"))).toEqual({ kind: "group", namespace: "ns", name: "web" });
    expect(documentAddress(secretPath("ns", "web", "abc"))).toEqual({
      kind: "secret",
      namespace: "ns",
      profile: "web",
      text: "abc",
    });
    expect(documentAddress(syncedPath)).toEqual({ kind: "synced" });
    const gone = { kind: "goneProfile", namespace: "ns", name: "web" };
    expect(documentAddress(profileTombstonePath("ns", "web"))).toEqual(gone);
  });

  it("shows a MAC address in a tombstone's path as it is written", () => {
    expect(tombstonePath("mac", "52:54:00:a1:9c:ae")).toBe("/davit/tombstones/mac/52:54:00:a1:9c:ae");
  });

  it.each(["4c4c4544-0042", "a/b", "../..", ".", "..", "...", "%2e", "%", "ü \u{1F600}", "a b?c#d", "_hidden"])(
    "makes one segment of a tombstone's value %j, and reads it back",
    (value) => {
      const path = tombstonePath("uuid", value);
      expect(storePath(path).split("/")).toHaveLength(5);
      expect(documentAddress(path)).toEqual({ kind: "tombstone", label: "uuid", value });
    },
  );

  it("keeps a tenant's tombstones apart, whatever its name", () => {
    for (const tenant of ["team-b", "tenant", "profile", "mac"]) {
      const path = tombstonePath("mac", "a/b", tenant);
      expect(path).toBe(`/davit/tombstones/tenant/${tenant}/mac/a%2Fb`);
      expect(documentAddress(path)).toEqual({ kind: "tombstone", label: "mac", value: "a/b", tenant });
    }
  });

  it("makes a path of a value that is no Unicode text, too", () => {
    expect(documentAddress(tombstonePath("uuid", "\ud800"))).toMatchObject({ value: "\ufffd" });
  });

  it.each([
    ["another root", "/other/groups/ns/web"],
    ["no root", "x/davit/groups/ns/web"],
    ["an unknown folder", "/davit/else/ns/web"],
    ["a path that is too short", "/davit/groups/ns"],
    ["a path that is too long", "/davit/groups/ns/web/more"],
    ["a secret without hash", "/davit/_secrets/ns/web"],
    ["a secret with more", "/davit/_secrets/ns/web/abc/more"],
    ["a tombstone of another label", "/davit/tombstones/role/web"],
    ["a tombstone without a value", "/davit/tombstones/mac"],
    ["a tombstone with more", "/davit/tombstones/uuid/a/b"],
    ["a tenant's tombstone without a value", "/davit/tombstones/tenant/ns/mac"],
    ["a tenant's tombstone of another label", "/davit/tombstones/tenant/ns/role/web"],
    ["a tenant's tombstone with more", "/davit/tombstones/tenant/ns/mac/a/b"],
    ["a tombstone of a tenant without a name", "/davit/tombstones/tenant//mac/a"],
    ["a Profile's tombstone without a name", "/davit/tombstones/profile/ns/"],
    ["a Profile's tombstone with more", "/davit/tombstones/profile/ns/web/more"],
    ["a tombstone with a bad escape", "/davit/tombstones/uuid/%zz"],
    ["something below synced", "/davit/synced/x"],
    ["an empty name", "/davit/groups/ns/"],
    ["an empty namespace", "/davit/groups//web"],
  ])("knows no document at %s", (_name, path) => {
    expect(documentAddress(path)).toBeUndefined();
  });
});

describe("documents", () => {
  it("come back as they were written", () => {
    expect(decodeProfile(encodeDocument(profile))).toEqual(profile);
    expect(decodeGroup(encodeDocument(group))).toEqual(group);
    expect(decodeSynced(encodeDocument(synced))).toEqual(synced);
    expect(decodeTombstone(encodeDocument(tombstone))).toEqual(tombstone);
  });

  it.each([
    ["no JSON", "{"],
    ["nothing", ""],
    ["a list", "[]"],
    ["null", "null"],
    ["an object of another kind", "{}"],
    ["parts of the wrong type", '{"content":1,"spec":"x","complete":"yes"}'],
    ["a spec without its fields", '{"content":{},"spec":{},"complete":null}'],
  ])("are not read from %s", (_name, text) => {
    expect(decodeProfile(text)).toBeUndefined();
    expect(decodeGroup(text)).toBeUndefined();
    expect(decodeSynced(text)).toBeUndefined();
  });

  it.each(["no JSON", "[]", '{"labels":{}}', '{"labels":[]}', '{"labels":["mac"]}', '{"labels":[{"mac":1}]}'])(
    "are no tombstone of %s",
    (text) => {
      expect(decodeTombstone(text)).toBeUndefined();
    },
  );
});

describe("tombstoneSelectors", () => {
  it("are those that the tombstone tells", () => {
    expect(tombstoneSelectors(tombstone, "mac", "m")).toEqual([{ labels: { mac: "m" }, expressions: [] }]);
    expect(tombstoneSelectors({ labels: [{ uuid: "u", mac: "m" }, { mac: "m" }] }, "mac", "m")).toHaveLength(2);
  });

  it.each([{}, { group: "lab/node", selector: "mac=m,role=web" }])("are the label alone of %j", (older) => {
    expect(tombstoneSelectors(older, "mac", "m")).toEqual([{ labels: { mac: "m" }, expressions: [] }]);
  });
});

describe("a Group's document with expressions", () => {
  const expressions = [{ key: "mac", operator: "In", values: ["a", "b"] }] as const;
  const written = (spec: Partial<GroupSpec>, marks: Partial<GroupDocument> = {}): GroupDocument => ({
    ...{ origin: "o", uid: "u", generation: 1 },
    spec: { profile: "web", selector: {}, matchAll: false, priority: 0, hold: false, metadata: {}, ...spec },
    ...marks,
  });

  it.each<[name: string, document: GroupDocument]>([
    ["expressions alone", written({ expressions, priority: 7 })],
    ["labels beside them", written({ expressions, selector: { role: "web" } })],
    ["a refusal", written({ expressions }, { refused: true })],
    ["a tie", written({ expressions, hold: true }, { tied: true })],
  ])("with %s is read as it was written", (_name, document) => {
    const text = encodeDocument(document);
    expect(decodeGroup(text)).toEqual(document);
    expect(encodeDocument(decodeGroup(text) ?? document)).toBe(text);
  });

  it.each([
    { selector: {}, matchAll: true },
    { selector: { role: "web" }, matchAll: false },
  ])("is a refused one of $selector before all others of its priority to who does not know them", (older) => {
    const text = encodeDocument(written({ expressions, selector: older.selector, priority: 7 }));
    expect(JSON.parse(text)).toMatchObject({ refused: true, spec: { ...older, priority: 7.5 } });
    expect(JSON.parse(text).spec).not.toHaveProperty("expressions");
  });

  it("is a refused one where an operator is not known", () => {
    const text = encodeDocument(written({ expressions })).replace('"In"', '"Near"');
    expect(decodeGroup(text)).toMatchObject({ refused: true, spec: { matchAll: true, priority: 0.5 } });
  });
});

it.each([
  { labels: [{ mac: "m" }], expressions: [] },
  { labels: [{ mac: "m" }], expressions: [[{ key: "os", operator: "Near", values: [] }]] },
  { expressions: [[]] },
])("a tombstone of %j cannot be read", (tombstone) => {
  expect(decodeTombstone(JSON.stringify(tombstone))).toBeUndefined();
});

describe("a Profile with a text that is only for installs", () => {
  const sealed = {
    kind: "secret",
    name: "join",
    key: "token",
    sha256: "abc",
    raw: false,
    duringInstall: true,
  } as const;
  const open = { kind: "secret", name: "join", key: "ca", sha256: "def", raw: false } as const;
  const content = {
    ...profile.content,
    effect: "Install",
    install: { then: "exit", timeoutSeconds: 60 },
    templates: { ignition: open, generic: sealed, "generic/a": sealed },
  } as const satisfies ProfileDocument["content"];
  const text = encodeDocument({ ...profile, content });

  it("comes back as it was", () => {
    expect(decodeProfile(text)).toEqual({ ...profile, content });
  });

  it("has no text for an older davit, also for one that knows permits", () => {
    const written = JSON.parse(text);
    expect(written.failed).toBe(true);
    expect(written.content.templates).toMatchObject({
      ignition: open,
      generic: { kind: "broken" },
      "generic/a": { kind: "broken" },
    });
  });
});

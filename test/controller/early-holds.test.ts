/** What counts of a Group at a start, while the first list is not whole. */

import { expect, it } from "vitest";
import { earlyHolds } from "../../src/controller/reconcile/reconcile-group.ts";
import { decodeGroup, encodeDocument, type GroupDocument, groupPath } from "../../src/model/documents.ts";
import type { GroupObject } from "../../src/model/source.ts";
import { groupObject } from "./objects.ts";

const name = { kind: "Group", namespace: "default", name: "node1" } as const;

function writesFor(
  stored: GroupObject | undefined,
  newest: GroupObject | undefined,
): readonly (GroupDocument | undefined)[] {
  const document = stored && {
    uid: stored.uid,
    generation: stored.generation,
    origin: stored.origin,
    spec: stored.spec,
  };
  const documents = { group: () => document, textAt: () => document && encodeDocument(document) };
  const view = { get: <Found>() => newest as Found | undefined };
  const writes = earlyHolds([name, { ...name, kind: "Profile" }], view, documents);
  for (const { path } of writes) expect(path).toBe(groupPath("default", "node1"));
  return writes.map(({ text }) => decodeGroup(text ?? ""));
}

const group = groupObject();
const mac = "52:54:00:a1:9c:ae";

it.each([
  { what: "a hold", newest: groupObject({ hold: true }) },
  { what: "one label more", newest: groupObject({ selector: { mac, os: "none" } }) },
  { what: "another machine", newest: groupObject({ selector: { mac: "52:54:00:a1:9c:af" } }) },
])("$what has the stored Group's machines wait", ({ newest }) => {
  const [held, ...others] = writesFor(group, newest);
  expect(held?.spec).toEqual({ ...group.spec, hold: true });
  expect(others).toEqual([]);
});

it.each([
  { what: "another Profile", stored: group, newest: groupObject({ profile: "other" }) },
  { what: "a release", stored: groupObject({ hold: true }), newest: group },
  { what: "a Group that the store does not have", stored: undefined, newest: groupObject({ hold: true }) },
  { what: "one that was not heard of", stored: group, newest: undefined },
])("$what waits for the list", ({ stored, newest }) => {
  expect(writesFor(stored, newest)).toEqual([]);
});

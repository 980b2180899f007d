/** What counts of a Group or Machine at a start, while the first list is not whole. */

import { expect, it } from "vitest";
import { earlyMachineHolds } from "../../src/controller/machines/draft-machine.ts";
import { earlyHolds } from "../../src/controller/reconcile/reconcile-group.ts";
import { decodeGroup, encodeDocument, type GroupDocument, groupPath } from "../../src/model/objects/documents.ts";
import { decodeMachine } from "../../src/model/objects/machine.ts";
import type { GroupObject } from "../../src/model/objects/source.ts";
import { groupObject, machineObject } from "./objects.ts";

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

function machineAfter(stored: object, newest: object) {
  const { uid, generation, origin, spec } = machineObject(stored);
  const documents = { machine: () => ({ uid, generation, origin, spec }) };
  const view = { get: <Found>() => machineObject(newest) as Found };
  const writes = earlyMachineHolds([{ ...name, kind: "Machine" }, name], view, documents);
  return writes.map(({ text }) => decodeMachine(text ?? "")?.spec);
}

it("holds a Machine and withdraws its approval early, and grants nothing early", () => {
  expect(machineAfter({ approved: true }, { approved: false })).toMatchObject([{ approved: false, hold: false }]);
  expect(machineAfter({ approved: true }, { approved: true, hold: true })).toMatchObject([
    { approved: true, hold: true },
  ]);
  expect(machineAfter({ hold: true }, { approved: true })).toEqual([]);
});

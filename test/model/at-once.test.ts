/** What of a change counts before the whole change is known: only what makes machines wait. */

import { describe, expect, it } from "vitest";
import type { MachineSpec } from "../../src/model/objects/machine.ts";
import { type GroupObject, type MachineObject, refusedMachine } from "../../src/model/objects/source.ts";
import type { InstallGrant } from "../../src/model/permits/permit.ts";
import { countingAtOnce } from "../../src/model/selection/at-once.ts";

const meta = { namespace: "default", name: "a", uid: "1", generation: 1, origin: "test" };
const grant: InstallGrant = { generation: 1, ledger: "9f3c0a52", untilMs: 1, scope: "All" };
const next: InstallGrant = { ...grant, generation: 2 };

function machine(spec: Partial<MachineSpec> = {}): MachineObject {
  const preset = { identities: ["mac/a"], approved: true, hold: false, labels: { rack: "7" }, metadata: { ip: "x" } };
  return { kind: "Machine", ...meta, spec: { ...preset, ...spec } };
}

function group(spec: Partial<GroupObject["spec"]> = {}): GroupObject {
  const preset = { profile: "web", selector: { role: "a" }, matchAll: false, priority: 0, hold: false, metadata: {} };
  return { kind: "Group", ...meta, spec: { ...preset, ...spec } };
}

describe("of a Machine's change counts at once", () => {
  it.each<{ what: string; from?: Partial<MachineSpec>; to: Partial<MachineSpec>; counts: Partial<MachineSpec> }>([
    { what: "a hold", to: { hold: true }, counts: { hold: true } },
    { what: "no release", from: { hold: true }, to: {}, counts: { hold: true } },
    { what: "a withdrawn approval", to: { approved: false }, counts: { approved: false } },
    { what: "no approval", from: { approved: false }, to: {}, counts: { approved: false } },
    { what: "a withdrawn grant", from: { install: grant }, to: {}, counts: {} },
    { what: "no grant", to: { install: grant }, counts: {} },
    { what: "no raised generation", from: { install: grant }, to: { install: next }, counts: {} },
    { what: "a lost identity, as a hold", to: { identities: ["mac/b"] }, counts: { hold: true } },
    { what: "no further identity", to: { identities: ["mac/a", "mac/b"] }, counts: {} },
    { what: "another label, as a hold", to: { labels: { rack: "8" } }, counts: { hold: true } },
    { what: "a removed label, as a hold", to: { labels: {} }, counts: { hold: true } },
    { what: "no metadata", to: { metadata: { ip: "y" } }, counts: {} },
  ])("$what", ({ from = {}, to, counts }) => {
    expect(countingAtOnce(machine(from), machine(to))).toEqual(machine(counts));
  });

  it("its removal, as a hold that approves and grants nothing", () => {
    const held = machine({ install: grant });
    expect(countingAtOnce(held, undefined)).toEqual(machine({ hold: true, approved: false }));
  });

  it("nothing, as the same object, where nothing is withdrawn", () => {
    const held = machine({ install: grant });
    expect(countingAtOnce(held, machine({ install: { ...grant } }))).toBe(held);
  });

  it("a new one only if it is held", () => {
    expect(countingAtOnce(undefined, machine())).toBeUndefined();
    const held = machine({ hold: true });
    expect(countingAtOnce(undefined, held)).toBe(held);
  });
});

describe("of a Group's change counts at once", () => {
  it.each<{ what: string; from?: Partial<GroupObject["spec"]>; to: Partial<GroupObject["spec"]>; counts: object }>([
    { what: "that it asks for approval", to: { approval: "Required" }, counts: { approval: "Required" } },
    {
      what: "not that it asks for none",
      from: { approval: "Required" },
      to: {},
      counts: { approval: "Required" },
    },
    { what: "a withdrawn grant", from: { install: grant }, to: {}, counts: {} },
    {
      what: "a wider scope, as no grant",
      from: { install: { ...grant, scope: "NeverInstalled" } },
      to: { install: grant },
      counts: {},
    },
    { what: "no grant", to: { install: grant }, counts: {} },
    { what: "a hold", to: { hold: true }, counts: { hold: true } },
    { what: "another selector, as a hold", to: { selector: { role: "b" } }, counts: { hold: true } },
    { what: "no other Profile", to: { profile: "wipe" }, counts: {} },
  ])("$what", ({ from = {}, to, counts }) => {
    expect(countingAtOnce(group(from), group(to))).toEqual(group(counts));
  });

  it("its removal, as a hold without a grant", () => {
    expect(countingAtOnce(group({ install: grant }), undefined)).toEqual(group({ hold: true }));
  });
});

describe("of a refused Machine count", () => {
  const read = machine({ identities: ["mac/b"], approved: false, labels: {}, metadata: {} });

  it("its identities beside those of the last accepted version, whose labels and metadata stay", () => {
    const held = machine({ install: grant });
    expect(refusedMachine(held, [read], "broken")).toEqual({
      ...machine({ identities: ["mac/a", "mac/b"], approved: false }),
      refusal: "broken",
    });
  });

  it.each([
    { held: machine({ hold: true }), of: [read] },
    { held: machine(), of: [{ ...read, spec: { ...read.spec, hold: true } }] },
    { held: undefined, of: [read, { ...read, spec: { ...read.spec, hold: true } }] },
  ])("each hold", ({ held, of }) => {
    expect(refusedMachine(held, of, "broken")?.spec).toMatchObject({ hold: true, approved: false });
  });

  it("neither approval nor labels nor a grant of versions that were never accepted", () => {
    const approved = machine({ install: grant });
    const counted = refusedMachine(undefined, [approved, approved], "twice")?.spec;
    expect(counted).toEqual({ identities: ["mac/a"], approved: false, hold: false, labels: {}, metadata: {} });
  });

  it("nothing where nothing is known", () => {
    expect(refusedMachine(undefined, [], "broken")).toBeUndefined();
  });
});

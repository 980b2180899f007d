/** Sequences of changes to a few Groups that select a few machines, so that the Groups often match the same ones. */

import fc from "fast-check";
import type { Expression } from "../../src/model/labels/expression.ts";
import type { Labels } from "../../src/model/labels/labels.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";

/** How long a tombstone stays. */
export const ttlMs = 60_000;
export const names = ["a", "b", "c", "d"] as const;
/** Profiles: `web` boots, `wipe` overwrites disks. */
export const profiles = ["web", "wipe"] as const;

const expressions: readonly Expression[] = [
  { key: "serial", operator: "In", values: ["s1", "s2"] },
  { key: "serial", operator: "In", values: ["s1"] },
  { key: "serial", operator: "Prefix", values: ["s"] },
  { key: "role", operator: "Exists", values: [] },
];

type Selecting = Pick<GroupSpec, "selector" | "expressions">;

/** One of a few selectors, so that Groups often select the same machines. */
const selectors: fc.Arbitrary<Selecting> = fc
  .record({
    labels: fc.subarray(["uuid", "serial", "role"]),
    values: fc.record({
      uuid: fc.constantFrom("u1", "u2"),
      serial: fc.constantFrom("s1", "s2"),
      role: fc.constantFrom("x", "y"),
    }),
    list: fc.constantFrom(undefined, undefined, ...expressions.map((each) => [each])),
  })
  .map(({ labels, values, list }) => {
    const selector = Object.fromEntries(Object.entries(values).filter(([label]) => labels.includes(label)));
    return { selector, ...(list && { expressions: list }) };
  });

export const machines: readonly Labels[] = ["u1", "u2", undefined].flatMap((uuid) =>
  ["s1", "s2", undefined].flatMap((serial) =>
    ["x", "y", undefined].map((role) => {
      const labels = Object.entries({ uuid, serial, role });
      return new Map(labels.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const])));
    }),
  ),
);

export interface Put extends Selecting {
  readonly kind: "put";
  readonly name: string;
  readonly priority: number;
  readonly profile: string;
}

export type Action =
  | Put
  | { readonly kind: "drop"; readonly name: string }
  | { readonly kind: "dropAll" | "step" | "stepAll" | "restart" }
  | { readonly kind: "wait"; readonly ms: number };

const actions: fc.Arbitrary<Action> = fc.oneof(
  fc
    .record({
      name: fc.constantFrom(...names),
      selecting: selectors,
      priority: fc.constantFrom(0, 0, 0, 10),
      profile: fc.constantFrom(...profiles),
    })
    .map(({ selecting, ...rest }) => ({ kind: "put" as const, ...rest, ...selecting })),
  fc.record({ kind: fc.constant("drop" as const), name: fc.constantFrom(...names) }),
  fc.record({ kind: fc.constantFrom("dropAll" as const, "restart" as const, "stepAll" as const) }),
  fc.record({ kind: fc.constant("step" as const) }),
  fc.record({ kind: fc.constant("step" as const) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1_000, 29_999, 30_001, ttlMs) }),
);

/** The usual installer: it installs each machine that has no other Group. */
const installer = put("d", "wipe", { selector: {} });

/** Most sequences begin with the usual installer. */
export const sequences = fc
  .tuple(fc.nat(3), fc.array(actions, { minLength: 3, maxLength: 20 }))
  .map(([without, rest]) => (without === 0 ? rest : [installer, ...rest]));

const step: Action = { kind: "step" };
const stepAll: Action = { kind: "stepAll" };
const byPrefix = { selector: {}, expressions: [{ key: "serial", operator: "Prefix", values: ["s"] }] } as const;
const byList = { selector: { role: "x" }, expressions: [{ key: "serial", operator: "In", values: ["s1"] }] } as const;

/** Two sequences that a random run has once in thousands of times. */
export const rareSequences: readonly (readonly Action[])[] = [
  // A Group is deleted and created again, for the same machines, as an installer.
  [put("b", "web", byPrefix), step, { kind: "drop", name: "b" }, stepAll, put("b", "wipe", byPrefix), stepAll],
  // A Group loses its expressions before a restart, and another one that names its machine is deleted.
  [
    put("c", "wipe", byList),
    put("a", "web", { selector: { uuid: "u1" } }),
    step,
    put("c", "web", { selector: {} }),
    { kind: "restart" },
    { kind: "drop", name: "a" },
    { kind: "dropAll" },
    step,
  ],
];

function put(name: string, profile: string, selecting: Selecting): Put {
  return { kind: "put", name, priority: 0, profile, ...selecting };
}

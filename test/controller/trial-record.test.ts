/** The summary for a Profile, after random changes of its Groups. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { TrialRecord, type TrialState } from "../../src/controller/trials/trial-record.ts";
import type { ObjectName } from "../../src/model/objects/source.ts";

const profile: ObjectName = { kind: "Profile", namespace: "default", name: "web" };
const other: ObjectName = { ...profile, name: "db" };

const state: fc.Arbitrary<TrialState> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("one", "two").map((failure) => ({ kind: "failed" as const, failure })) },
  fc.constantFrom("pending" as const, "over" as const, "lost" as const).map((kind) => ({ kind })),
);
const change = fc.record({
  name: fc.constantFrom("node1", "node2", "node3", "node4", "Node", "node10"),
  /** Undefined: the Group is forgotten. */
  state: fc.option(state, { nil: undefined }),
  of: fc.constantFrom(profile, profile, other),
});

it("a summary names the first failed Group, read once or after each change", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.boolean(), (changes, readsEach) => {
      const record = new TrialRecord();
      const groups = new Map<string, { readonly state: TrialState; readonly of: ObjectName }>();
      for (const { name, state, of } of changes) {
        const group: ObjectName = { kind: "Group", namespace: "default", name };
        if (state === undefined) record.forget(group);
        else record.note(group, of, state);
        if (state === undefined) groups.delete(name);
        else groups.set(name, { state, of });
        if (readsEach) expect(record.of(profile)).toEqual(summaryOf(groups));
      }
      expect(record.of(profile)).toEqual(summaryOf(groups));
    }),
  );
});

function summaryOf(groups: ReadonlyMap<string, { readonly state: TrialState; readonly of: ObjectName }>) {
  const own = [...groups].filter(([, group]) => group.of === profile).sort(([a], [b]) => (a < b ? -1 : 1));
  const failed = own.flatMap(([group, { state }]) =>
    state.kind === "failed" ? [{ group, failure: state.failure }] : [],
  );
  if (failed.length > 0) return { kind: "failed", ...failed[0], hasMore: failed.length > 1 };
  const kinds = own.map(([, group]) => group.state.kind);
  return { kind: (["pending", "lost"] as const).find((kind) => kinds.includes(kind)) ?? "over" };
}

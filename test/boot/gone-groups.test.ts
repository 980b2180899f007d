/** Who waits for a Group that was removed a moment ago, by how it ranked: see `known-tombstones.ts`. */

import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type GroupChange, tombstoneWrites } from "../../src/controller/tombstones/tombstones.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { encodeDocument, tombstonePath } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import { groupDocument, groupSpec, profileDocument, syncedDocument } from "./feed-documents.ts";
import { openIndex, refusal } from "./open-index.ts";

const serial = "SN-1";
const query = `serial=${serial}&role=web&os=x&mac=52-54-00-00-00-01`;
const mac = "52:54:00:00:00:01";

const listed = (...values: readonly string[]): Expression => ({ key: "serial", operator: "In", values });
const starting: Expression = { key: "serial", operator: "Prefix", values: ["SN"] };

type Spec = Partial<GroupSpec>;

/** What the machine is answered after a Group was removed, where another one wins for it. */
function answer(gone: Spec, winner: Spec | undefined, namespace = "lab"): string | undefined {
  const passing: GroupChange = { id: `${namespace}/gone`, before: groupSpec(gone), after: undefined };
  const sha256 = (text: string) => hash("sha256", text, "hex");
  const options = { textAt: () => undefined, ttlSeconds: 60, sha256, isTaken: () => false };
  const stones = tombstoneWrites([passing], options).map(({ path, text = "" }) => [path, text] as const);
  const index = openIndex([
    profileDocument("lab/web"),
    profileDocument("lab/wipe", { effect: "Install" }),
    ...(winner === undefined ? [] : [groupDocument("lab/winner", winner)]),
    ...stones,
    syncedDocument(),
  ]);
  return refusal(index, query);
}

const install = (spec: Spec): Spec => ({ ...spec, profile: "wipe" });

describe("a machine that a Group named, which was removed,", () => {
  it.each<[name: string, gone: Spec, winner: Spec | undefined]>([
    ["nobody", { selector: { serial } }, undefined],
    ["a catch-all", { selector: { serial } }, { matchAll: true }],
    ["one of less labels", { selector: { serial, role: "web" } }, { selector: { serial } }],
    ["one of other labels that comes later", { selector: { serial, os: "x" } }, { selector: { os: "x", mac } }],
    ["one of a lower priority, by the same selector", { selector: { serial }, priority: 5 }, { selector: { serial } }],
    ["one of a lower priority and more labels", { selector: { serial }, priority: 5 }, { selector: { serial, mac } }],
    ["one that says what its label looks like", { selector: { serial } }, { expressions: [starting] }],
    ["an Install that lists it", { selector: { serial } }, install({ expressions: [listed(serial)] })],
    ["an Install that takes its place", { selector: { serial } }, install({ selector: { serial } })],
    [
      "an Install with another list that has it",
      { expressions: [listed(serial, "SN-2")] },
      install({ expressions: [listed("SN-0", serial)] }),
    ],
    ["an Install that names it by another label", { selector: { serial } }, install({ selector: { mac, os: "x" } })],
    [
      "an Install before it by the text of its selector, which has lists",
      { expressions: [listed(serial, "SN-2")], selector: { os: "x" } },
      install({ expressions: [listed("SN-0", serial)], selector: { role: "web" } }),
    ],
    [
      "an Install of its Profile that gives something else",
      install({ selector: { serial }, args: ["disk=/dev/sda"] }),
      install({ selector: { serial } }),
    ],
    [
      "an Install of the same, where it was held",
      install({ selector: { serial }, hold: true }),
      install({ selector: { serial } }),
    ],
  ])("waits instead of getting %s", (_name, gone, winner) => {
    expect(answer(gone, winner)).toBe("bereft");
  });

  it.each<[name: string, gone: Spec, winner: Spec]>([
    ["takes its place", { selector: { serial } }, { selector: { serial } }],
    ["takes its place, and installs the same", install({ selector: { serial } }), install({ selector: { serial } })],
    ["lists it with others", { selector: { serial } }, { expressions: [listed(serial, "SN-2")] }],
    [
      "has as long a list",
      install({ expressions: [listed(serial, "SN-2")] }),
      install({ expressions: [listed("SN-0", serial)] }),
    ],
    ["has more labels", { selector: { serial } }, { selector: { serial, role: "web" } }],
    ["has more labels, and installs", { selector: { serial } }, install({ selector: { os: "x", role: "web" } })],
    ["has a higher priority", { selector: { serial, mac } }, { selector: { role: "web" }, priority: 1000 }],
    [
      "comes before it by the text of its selector",
      { selector: { mac, role: "web" } },
      { selector: { serial, os: "x" } },
    ],
  ])("does not wait where one %s: it would win beside it, too, or is as exact", (_name, gone, winner) => {
    expect(answer(gone, winner)).toBeUndefined();
  });

  it.each(["lab", "team-b"])("waits whatever the namespace: %s", (namespace) => {
    const [gone, winner] = [{ selector: { serial } }, { selector: { role: "web" } }];
    expect(answer(gone, winner, namespace)).toBe("bereft");
    expect(answer(gone, { ...winner, priority: 1000 }, namespace)).toBeUndefined();
  });
});

describe("tombstones that end", () => {
  const gone = (place: readonly [label: string, value: string, tenant?: string], ...namespaces: readonly string[]) => {
    const [label, value] = place;
    const labels = namespaces.map(() => (label === "selector" ? { role: "web" } : { [label]: value }));
    const ranks = namespaces.map((namespace, at) => ({ namespace, priority: 0, outcome: `${at}` }));
    return [tombstonePath(...place), encodeDocument({ labels, ranks })] as const;
  };

  it.each<[name: string, first: readonly [string, string], second: readonly [string, string, string]]>([
    ["of a value", ["serial", serial], ["serial", serial, "team-b"]],
    ["of a selector", ["selector", "abc"], ["selector", "abc", "team-b"]],
  ])(
    "each hold machines back until then, of two namespaces, and one of several selectors that are the same: %s",
    (_name, first, second) => {
      const stones = [gone(first, "lab", "lab", "lab"), gone(second, "lab", "lab")];
      const winner = groupDocument("lab/winner", { profile: "wipe", selector: { serial } });
      const broad = groupDocument("lab/winner", { profile: "wipe", selector: { role: "web" } });
      const index = openIndex([
        profileDocument("lab/wipe", { effect: "Install" }),
        first[0] === "selector" ? broad : winner,
        ...stones,
        syncedDocument(),
      ]);
      expect(refusal(index, query)).toBe("bereft");
      for (const [path, text] of [...stones, ...stones]) index.changed([{ path, text }]);
      const [[one], [other]] = [stones[0] ?? [""], stones[1] ?? [""]];
      index.changed([{ path: one, text: undefined }]);
      expect(refusal(index, query)).toBe("bereft");
      index.changed([{ path: other, text: undefined }]);
      expect(refusal(index, query)).toBeUndefined();
    },
  );
});

describe("a machine that a Group without its name selected, which was removed,", () => {
  it.each<[name: string, gone: Spec, winner: Spec]>([
    ["a role", { selector: { role: "web" } }, { matchAll: true }],
    ["a pattern", { expressions: [starting] }, { matchAll: true }],
    ["the role of the next one", { selector: { role: "web" } }, { selector: { role: "web" } }],
    [
      "another pattern for the same label",
      { expressions: [starting] },
      { expressions: [{ ...starting, values: ["S"] }] },
    ],
    ["a role, with a priority", { selector: { role: "web" }, priority: 5 }, { selector: { role: "web" } }],
    ["a pattern and a label", { expressions: [starting], selector: { os: "x" } }, { expressions: [starting] }],
  ])("waits where the next one installs, boots where it boots: %s", (_name, gone, winner) => {
    expect(answer(gone, install(winner))).toBe("bereft");
    expect(answer(gone, winner)).toBeUndefined();
  });

  it.each<[name: string, gone: Spec, winner: Spec]>([
    ["gives the same", install({ selector: { role: "web" } }), { selector: { role: "web" } }],
    ["comes before it", { selector: { role: "web" } }, { selector: { serial, role: "web" } }],
    ["has a higher priority", { selector: { role: "web" } }, { selector: { os: "x" }, priority: 1 }],
    [
      "gives the same by another pattern for the same label",
      install({ expressions: [starting] }),
      { expressions: [{ ...starting, values: ["S"] }] },
    ],
  ])("is installed by one that %s", (_name, gone, winner) => {
    expect(answer(gone, install(winner))).toBeUndefined();
  });

  it.each<[name: string, gone: Spec]>([
    ["of another role", { selector: { role: "db" } }],
    ["of another pattern", { expressions: [{ ...starting, values: ["X"] }] }],
  ])("was none of a Group %s", (_name, gone) => {
    expect(answer(gone, install({ matchAll: true }))).toBeUndefined();
  });

  it("is sent on where no Group selects it: nobody installs it", () => {
    expect(answer({ selector: { role: "web" } }, undefined)).toBe("noMatch");
  });
});

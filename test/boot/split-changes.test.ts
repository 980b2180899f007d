/** The index has the same state after any split of changes as after one list of all documents. */

import fc from "fast-check";
import { expect, it } from "vitest";
import type { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { groupPath, machinePath, profilePath, syncedPath } from "../../src/model/objects/documents.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { grant, machineDocument } from "./gate-world.ts";
import { type Documents, openIndex, refusal, selected } from "./open-index.ts";

const macs = ["52:54:00:00:00:01", "52:54:00:00:00:02"] as const;
/** The documents that each path can have; an unreadable text is left out, because it depends on the one before. */
const choices: readonly Documents[] = [
  ["a", "b"].map((name) => profileDocument("lab/web", { displayName: name })),
  [profileDocument("lab/db")],
  [
    groupDocument("lab/one", { selector: { mac: macs[0] } }),
    groupDocument("lab/one", { selector: { mac: macs[1] }, profile: "db", install: grant() }),
    groupDocument("lab/one", { selector: { mac: macs[0] }, hold: true }),
  ],
  [groupDocument("lab/all", { matchAll: true }), groupDocument("lab/all", { matchAll: true, install: grant() })],
  [groupDocument("lab/one~refused", { selector: { mac: macs[1] } }, true)],
  [
    machineDocument("lab/m", { identities: [`mac/${macs[0]}`] }),
    machineDocument("lab/m", { identities: [`mac/${macs[1]}`], install: grant() }),
  ],
];

function stateOf(index: BootIndex): unknown {
  const queries = macs.map((mac) => `mac=${mac}`);
  const answers = queries.map((query) => refusal(index, query) ?? selected(index, query));
  const named = ["one", "all", "one~refused", "none"].flatMap((name) => [`group/lab/${name}`, `machine/lab/${name}`]);
  return {
    answers,
    machines: [...index.machines()].sort(),
    seen: queries.map((query) => index.machinesOf(labelsFromQuery(query)).map(({ id }) => id)),
    grants: index.grants.map((each) => JSON.stringify(each)).sort(),
    granting: ["machine/lab/m", ...named].map((key) => [key, index.grantingAt(key)]),
    groups: [...index.groups.keys()].sort(),
  };
}

const step = fc.record({
  document: fc.constantFrom(...choices.flat()),
  isRemoval: fc.boolean(),
  isLastOfBatch: fc.boolean(),
});

/** Makes a change, and applies it to the texts. */
function changeIn([path, text]: Documents[number], isRemoval: boolean, texts: Map<string, string>) {
  if (isRemoval) texts.delete(path);
  else texts.set(path, text);
  return { path, text: isRemoval ? undefined : text };
}

it("has the same state after any split of changes as after a full list", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 24 }), (steps) => {
      const split = openIndex([syncedDocument()]);
      const texts = new Map<string, string>([syncedDocument()]);
      let batch: ReturnType<typeof changeIn>[] = [];
      for (const { document, isRemoval, isLastOfBatch } of steps) {
        batch.push(changeIn(document, isRemoval, texts));
        if (!isLastOfBatch) continue;
        split.changed(batch);
        batch = [];
      }
      split.changed(batch);
      expect(stateOf(split)).toEqual(stateOf(openIndex([...texts])));
    }),
    { numRuns: 200 },
  );
});

it("keeps what an unreadable text replaces, in a change and in a full list", () => {
  const documents = [syncedDocument(), ...choices.map((each) => each.at(-1) ?? syncedDocument())];
  const index = openIndex(documents);
  const before = stateOf(index);
  const paths = [profilePath("lab", "web"), groupPath("lab", "one"), machinePath("lab", "m"), syncedPath];
  for (const path of paths) index.changed([{ path, text: "{" }]);
  expect({ ...Object(stateOf(index)), answers: [] }).toEqual({ ...Object(before), answers: [] });
  index.replaced(documents.map(([path, text]) => [path, paths.includes(path) ? "{" : text]));
  expect({ ...Object(stateOf(index)), answers: [] }).toEqual({ ...Object(before), answers: [] });
});

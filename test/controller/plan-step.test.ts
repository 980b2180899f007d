/** A step that is planned in slices has one state of the source and of the store, even if both change meanwhile. */

import { hash } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Documents } from "../../src/controller/core/documents.ts";
import { planStep } from "../../src/controller/plan-step.ts";
import { Planner } from "../../src/controller/planner.ts";
import { encodeDocument, syncedPath } from "../../src/model/objects/documents.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore } from "../helpers/test-store.ts";
import { FakeSource } from "./fake-source.ts";
import { groupObject, groupSpec, profileObject } from "./objects.ts";

const groupCount = 300;

let store: Store;
let documents: Documents;
let source: FakeSource;
let planner: Planner;

beforeEach(async () => {
  store = await openStore();
  documents = new Documents(store);
  documents.start();
  source = new FakeSource();
  const sha256 = (text: string) => hash("sha256", text, "hex");
  const pure = { sha256, secretTexts: clearTexts(sha256), checkTemplate: () => undefined };
  planner = new Planner({ source, documents, log: { error: () => undefined }, ...pure, tombstoneTtlSeconds: 60 });
  const mark = { source: "directory", at: "2026-01-01T00:00:00Z", revision: "", complete: true };
  await documents.write([{ path: syncedPath, text: encodeDocument(mark) }]);
  for (let number = 0; number < groupCount; number++) {
    source.put(groupObject({ selector: { serial: `s${number}` } }, `node${number}`));
  }
  source.put(profileObject());
});

afterEach(async () => {
  documents.stop();
  await store.stop();
});

it("makes all claims of a step equally old, while clients write to the store", async () => {
  let slices = 0;
  const work = planner.planInSlices(planner.names());
  let slice = work.next();
  for (; slice.done !== true; slice = work.next()) {
    slices++;
    await store.submit({ kind: "set", path: storePath("/client"), value: String(slices) });
  }
  await documents.write(slice.value.writes);
  const claims = Array.from({ length: groupCount }, (_, number) => documents.group("default", `node${number}`));
  expect(new Set(claims.map((document) => document?.claimedAt)).size).toBe(1);
  expect(slices).toBeGreaterThan(3);
});

it("plans in slices what it plans at once", () => {
  const names = planner.names();
  const work = planner.planInSlices(names);
  let slice = work.next();
  while (slice.done !== true) slice = work.next();
  const sha256 = (text: string) => hash("sha256", text, "hex");
  const pure = { sha256, secretTexts: clearTexts(sha256), checkTemplate: () => undefined };
  const other = new Planner({ source, documents, log: { error: () => undefined }, ...pure, tombstoneTtlSeconds: 60 });
  expect(JSON.stringify(other.plan(names))).toBe(JSON.stringify(slice.value));
  expect(slice.value.writes).toHaveLength(groupCount + 1);
});

it("freezes the view for as long as it plans, and no longer", async () => {
  let isFrozen = false;
  const freezing = {
    freeze: () => {
      isFrozen = true;
      return () => {
        isFrozen = false;
      };
    },
  };
  const { signal } = new AbortController();
  const planning = planStep(planner, freezing, { names: planner.names(), signal });
  expect(isFrozen).toBe(true);
  expect((await planning)?.planned).toHaveLength(groupCount + 1);
  expect(isFrozen).toBe(false);
});

it("plans in one turn if the view cannot wait", async () => {
  const { signal } = new AbortController();
  const planning = planStep(planner, {}, { names: planner.names(), signal });
  // The plan does not have this version.
  source.put(groupObject(groupSpec({ hold: true, selector: { serial: "s299" } }), "node299"));
  const step = await planning;
  await documents.write(step?.writes ?? []);
  expect(documents.group("default", "node299")?.spec.hold).toBe(false);
});

it("makes no step after a stop", async () => {
  const stopping = new AbortController();
  const planning = planStep(
    planner,
    { freeze: () => () => undefined },
    { names: planner.names(), signal: stopping.signal },
  );
  stopping.abort();
  expect(await planning).toBeUndefined();
});

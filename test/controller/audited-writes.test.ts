/** Each edit that the store takes reaches the audit log once, also if the answer to its write was lost. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { Documents } from "../../src/controller/core/documents.ts";
import type { DocumentEdit } from "../../src/model/objects/audit.ts";
import { groupPath } from "../../src/model/objects/documents.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore } from "../helpers/test-store.ts";

const path = groupPath("lab", "web");
let store: Store;
let documents: Documents;
let edits: DocumentEdit[];
let fate: "answered" | "lost" | "refused";

beforeEach(async () => {
  store = await openStore();
  edits = [];
  fate = "answered";
  const submit: Store["submit"] = async (command) => {
    if (fate === "refused") throw new StoreError("logFailed", "lost", 0);
    const done = await store.submit(command);
    if (fate === "lost") throw new StoreError("logFailed", "lost", 0);
    return done;
  };
  const audit = { edited: (taken: readonly DocumentEdit[]) => void edits.push(...taken) };
  const given = new Proxy(store, {
    get: (target, name) => (name === "submit" ? submit : Reflect.get(target, name).bind(target)),
  });
  documents = new Documents(given, {}, audit);
  documents.start();
});
afterEach(async () => {
  documents.stop();
  await store.stop();
});

const changes = () => edits.map(({ before, after }) => [before, after]);

it("after a write, and not again for a text that the store already has", async () => {
  await documents.write([
    { path, text: "1" },
    { path: "/davit/synced", text: "{}" },
  ]);
  await documents.write([{ path, text: "1" }]);
  await documents.write([{ path, text: undefined }]);
  expect(changes()).toEqual([
    [undefined, "1"],
    ["1", undefined],
  ]);
});

it("not after a refused write, and once after the retry", async () => {
  fate = "refused";
  await expect(documents.write([{ path, text: "1" }])).rejects.toThrow(StoreError);
  expect(edits).toEqual([]);
  fate = "answered";
  await documents.write([{ path, text: "1" }]);
  expect(changes()).toEqual([[undefined, "1"]]);
});

it("once if the store takes a write before its answer is lost, or later", async () => {
  fate = "lost";
  await expect(documents.write([{ path, text: "1" }])).rejects.toThrow(StoreError);
  fate = "answered";
  await documents.write([{ path, text: "1" }]);
  fate = "refused";
  await expect(documents.write([{ path, text: "2" }])).rejects.toThrow(StoreError);
  fate = "answered";
  await store.submit({ kind: "set", path: storePath(path), value: "2" });
  await documents.write([{ path, text: "2" }]);
  expect(changes()).toEqual([
    [undefined, "1"],
    ["1", "2"],
  ]);
});

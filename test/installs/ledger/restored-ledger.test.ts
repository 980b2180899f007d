/** What a restore takes of the ledger in a backup. */

import { expect, it } from "vitest";
import { restoredLedgerNode } from "../../../src/commands/store/restore.ts";
import { encodeEntry, encodeMarked, encodeMeta } from "../../../src/installs/ledger/ledger-documents.ts";
import { installStates, type LedgerEntry } from "../../../src/model/permits/permit.ts";
import { storePath } from "../../../src/store/core/node.ts";

const entry: LedgerEntry = {
  id: "00000000000000aa",
  identities: ["mac/52:54:00:a1:9c:ae"],
  state: "Installed",
  grant: { key: "group/racks/web", generation: 4 },
  spent: { "group/racks/web": 4 },
  claimedAtMs: 1,
  changedAtMs: 2,
  timeoutSeconds: 3_600,
  group: "racks/web",
  profile: "racks/flatcar",
  addresses: [],
};

function restored(path: string, value: string): string | undefined {
  const node = {
    path: storePath(path),
    kind: "file",
    value,
    createdIndex: 1,
    modifiedIndex: 1,
    timer: undefined,
  } as const;
  return restoredLedgerNode(node)?.value;
}

const entryAt = (id: string) => `/davit/ledger/machines/${id}`;

it.each(installStates)("a machine that was %s counts as installed, and keeps what it has spent", (state) => {
  const value = restored(entryAt(entry.id), encodeEntry({ ...entry, state }));
  expect(JSON.parse(value ?? "")).toEqual({ ...entry, state: state === "Installed" ? "Installed" : "Unconfirmed" });
});

it("what a machine has reported about itself stays out: it may have reported something else since", () => {
  const labels = { role: { value: "new" } };
  expect(JSON.parse(restored(entryAt(entry.id), encodeEntry({ ...entry, labels })) ?? "")).toEqual(entry);
});

it.each([
  ["the ledger's id, which grants name", "/davit/ledger/meta", encodeMeta({ id: "9f3c0a52", beganAtMs: 1 })],
  ["that it has a mark", "/davit/ledger/marked", encodeMarked({ id: "9f3c0a52" })],
  ["objects", "/davit/groups/racks/web", "{}"],
  ["keys of users", "/a", "b"],
])("%s stays out", (_, path, value) => {
  expect(restored(path, value)).toBeUndefined();
});

it.each([
  ["the highest time", "/davit/ledger/clock", '{"highestMs":5}'],
  ["a grant that has ended", "/davit/ledger/ended/group/racks/web", '{"generation":4}'],
  ["a document of a later davit", "/davit/ledger/later", "x"],
  ["an entry of a later davit", entryAt("1"), "x"],
])("%s is restored", (_, path, value) => {
  expect(restored(path, value)).toBe(value);
});

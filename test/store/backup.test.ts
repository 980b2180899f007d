/** Backups as bytes: taken of a store that goes on, read back whole, refused when a single byte is not as it was. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readBackup } from "../../src/store/backup/backup.ts";
import type { Submission } from "../../src/store/command/command.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { Store } from "../../src/store/store.ts";
import type { Tree } from "../../src/store/tree/tree.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore } from "../helpers/test-store.ts";

async function submitAll(store: Store, commands: readonly Submission[]): Promise<void> {
  for (const command of commands) {
    await store.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
  }
}

const nodesOf = (tree: Pick<Tree, "walk">) =>
  [...tree.walk(storePath("/"))].map((node) => JSON.stringify(node)).toSorted();

const stateOf = (store: Store) => [...store.dump()].map((node) => JSON.stringify(node)).toSorted();

/** The bytes of a backup; `meanwhile` runs after each piece. */
async function taken(store: Store, meanwhile: () => Promise<void> = async () => undefined): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of store.backup()) {
    pieces.push(piece);
    await meanwhile();
  }
  return Buffer.concat(pieces);
}

/** In pieces of a few bytes: a reader must not care. */
function read(bytes: Buffer, pieceBytes = 61) {
  return readBackup(async function* () {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  }, '"file"');
}

async function smallBackup(): Promise<Buffer> {
  const store = await openStore();
  await submitAll(store, [
    { kind: "set", path: storePath("/a/b"), value: "é\n\u{1F600}" },
    { kind: "set", path: storePath("/lease"), value: "x", ttlSeconds: 60 },
  ]);
  const bytes = await taken(store);
  await store.stop();
  return bytes;
}

/** What is said of bytes that are no backup. */
async function refusalOf(bytes: Buffer): Promise<WalError> {
  try {
    await read(bytes, 64);
  } catch (error) {
    if (error instanceof WalError) return error;
    throw error;
  }
  throw new Error("It was taken for a backup");
}

it("a backup holds the state at which it began, whatever is written until it ends", async () => {
  const anyCommands = fc.array(anySubmission, { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(anyCommands, anyCommands, async (before, later) => {
      const store = await openStore(undefined, { clock: new FakeClock(0) });
      await submitAll(store, before);
      const [expected, bytes] = [stateOf(store), store.bytes];
      const { storeIndex, raftIndex } = store.indexes;
      const backup = await taken(store, () => submitAll(store, later.splice(0, 10)));
      const { head, tree, sizeBytes } = await read(backup);
      expect(nodesOf(tree)).toEqual(expected);
      expect([tree.bytes, tree.index, sizeBytes]).toEqual([bytes, storeIndex, backup.length]);
      expect(head).toEqual({
        clusterId: store.identity.clusterId,
        index: storeIndex,
        raftIndex,
        raftTerm: 2,
        atMs: 0,
      });
      await store.stop();
    }),
  );
});

it("a backup of many slices holds each key once or more, and no change that came between two slices", async () => {
  const store = await openStore();
  const text = (round: string) => round.repeat(2_000);
  const round = async (value: string) => {
    for (let key = 0; key < 300; key++) await store.submit({ kind: "set", path: storePath(`/k/${key}`), value });
  };
  await round(text("1"));
  let pieces = 0;
  const backup = await taken(store, async () => {
    pieces += 1;
    if (pieces === 2) await round(text("2"));
    if (pieces === 3) await store.submit({ kind: "delete", path: storePath("/k"), recursive: true });
  });
  expect(pieces).toBeGreaterThan(4);
  const { tree } = await read(backup, 4096);
  const values = [...tree.walk(storePath("/k"))].flatMap(({ value }) => value ?? []);
  expect(values).toEqual(Array.from({ length: 300 }, () => text("1")));
  await store.stop();
});

it("two backups at once are of their own moments", async () => {
  const store = await openStore();
  const first = store.backup();
  const begun = await first.next();
  await submitAll(store, [{ kind: "set", path: storePath("/new"), value: "x" }]);
  const second = await read(await taken(store));
  const rest: Uint8Array[] = [begun.value ?? new Uint8Array(0)];
  for await (const piece of first) rest.push(piece);
  expect((await read(Buffer.concat(rest))).tree.index).toBe(0);
  expect(second.tree.index).toBe(1);
  await store.stop();
});

describe("what is refused", () => {
  it("a backup that is cut, wherever", async () => {
    const whole = await smallBackup();
    await expect(read(whole)).resolves.toMatchObject({ head: { index: 2 } });
    for (let size = 0; size < whole.length; size++) {
      const { reason, message } = await refusalOf(whole.subarray(0, size));
      expect(reason).toBe("damaged");
      expect(message).toMatch(/^Reading "file": it (was cut: at byte \d+|is no backup)/);
    }
  });

  it("a backup in which a byte is another one, wherever", async () => {
    const whole = await smallBackup();
    for (let at = 0; at < whole.length; at++) {
      for (const flip of [0x01, 0x80]) {
        const bytes = Buffer.from(whole);
        bytes[at] = (bytes[at] ?? 0) ^ flip;
        expect(["damaged", "newerFormat"]).toContain((await refusalOf(bytes)).reason);
      }
    }
  });

  it.each([
    { name: "nothing", bytes: "" },
    { name: "a page of something else", bytes: `<html>${"x".repeat(5_000)}` },
    { name: "another line of JSON", bytes: '{"v":1}\n{}\n' },
    { name: "a line that is no object", bytes: "1\n" },
  ])("$name", async ({ bytes }) => {
    expect((await refusalOf(Buffer.from(bytes))).message).toBe('Reading "file": it is no backup of davit');
  });

  it("bytes behind the last line", async () => {
    const { message } = await refusalOf(Buffer.concat([await smallBackup(), Buffer.from("x")]));
    expect(message).toMatch(/it was cut/);
  });

  it("a backup of a later version, with a sentence", async () => {
    const text = (await smallBackup()).toString("latin1").replace('{"backup":1,', '{"backup":2,');
    const { reason, message } = await refusalOf(Buffer.from(text, "latin1"));
    expect(reason).toBe("newerFormat");
    expect(message).toBe(
      'Reading "file": its version is 2 and this davit knows 1; start the davit that wrote it, or a later one',
    );
  });
});

/** A ledger whose store was rolled back is recognised by its mark, and begins anew. */

import { describe, expect, it } from "vitest";
import { fileMark } from "../../../src/installs/ledger/file-mark.ts";
import { adoptedPath, encodeAdopted } from "../../../src/installs/ledger/ledger-documents.ts";
import { type LedgerMark, MarkKeeper } from "../../../src/installs/ledger/mark-keeper.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { memoryFiles, silentLog } from "../../helpers/test-store.ts";
import { asked, claimed, grantOf, openDesk, whileTimePasses } from "./desk.ts";

class TestMark implements LedgerMark {
  readonly pauseMs = 200;
  value: { readonly id: string; readonly index: number } | undefined;
  fails = false;
  writes = 0;

  async read() {
    if (this.fails) throw new Error("away");
    return this.value;
  }

  async write(id: string, index: number): Promise<void> {
    if (this.fails) throw new Error("away");
    this.writes += 1;
    if (this.value?.id !== id || this.value.index < index) this.value = { id, index };
  }
}

it("grants a claim only when the mark covers it", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  const grants = [grantOf(desk)];
  expect(mark.value).toMatchObject({ id: desk.ledger.id });
  mark.fails = true;
  const answer = asked(desk, { grants });
  await desk.clock.advance(1_000);
  expect(await answer).toBe("late");
  // The claim is logged. The machine comes back while the mark can be written again.
  mark.fails = false;
  const again = asked(desk, { grants });
  await desk.clock.advance(1_000);
  expect(await again).toBe("granted");
  expect(mark.value?.index).toBeGreaterThanOrEqual(desk.store.indexes.storeIndex);
  await desk.stop();
});

it("keeps no request that waits in vain, and still covers its claim later", async () => {
  const mark = new TestMark();
  mark.fails = true;
  const clock = new FakeClock();
  const keeper = new MarkKeeper({ mark, clock, log: silentLog, meta: () => ({ id: "9f3c0a52", beganAtMs: 1 }) });
  const answers: string[] = [];
  void keeper.cover(7, 950).then((isCovered) => answers.push(`request ${isCovered}`));
  void keeper.cover(7).then((isCovered) => answers.push(`beginning ${isCovered}`));
  await clock.advance(2_000);
  expect(answers).toEqual(["request false"]);
  mark.fails = false;
  await clock.advance(2_000);
  expect(answers).toEqual(["request false", "beginning true"]);
  expect(mark.value).toEqual({ id: "9f3c0a52", index: 7 });
  expect(await keeper.cover(7, 950)).toBe(true);
  await keeper.stop();
});

it("writes the mark at most five times a second, however many machines claim", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  const { writes } = mark;
  const answers = Array.from({ length: 40 }, (_, at) => {
    const identities = [`mac/52:54:00:00:00:${at.toString(16).padStart(2, "0")}`];
    return asked(desk, { grants: [grantOf(desk)], identities });
  });
  for (let step = 0; step < 9; step++) await desk.clock.advance(100);
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["granted"]));
  expect(mark.writes - writes).toBeLessThanOrEqual(5);
  await desk.stop();
});

it("writes a mark in a file when the ledger begins, and makes no claim wait for its turn", async () => {
  const files = memoryFiles();
  const mark = fileMark(files, "data", false);
  const desk = await openDesk({ files, mark });
  const begun = await mark.read();
  expect(begun).toMatchObject({ id: desk.ledger.id });
  // No time passes here.
  for (let at = 1; at <= 5; at++) {
    const identities = [`mac/52:54:00:00:00:0${at}`];
    expect(await asked(desk, { grants: [grantOf(desk)], identities })).toBe("granted");
  }
  expect((await mark.read())?.index).toBeGreaterThan(begun?.index ?? 0);
  await desk.stop();
});

it("begins a new ledger when its store was rolled back, and grants of the former one stay closed", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  const grants = [grantOf(desk)];
  const older = desk.files.reopened();
  await whileTimePasses(desk, claimed(desk, { grants }));
  await desk.stop();
  const next = await openDesk({ mark, files: older, clock: desk.clock });
  expect(next.ledger.id).not.toBe(desk.ledger.id);
  expect(next.ledger.id).toBeDefined();
  expect(mark.value?.id).toBe(next.ledger.id);
  expect(await asked(next, { grants })).toBe("otherLedger");
  await next.stop();
  // And the same files once more: the mark is of another ledger.
  const third = await openDesk({ mark, files: older.reopened(), clock: desk.clock });
  expect(third.ledger.id).not.toBe(desk.ledger.id);
  await third.stop();
});

it("goes on with the same ledger after an ordinary restart", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  await whileTimePasses(desk, claimed(desk, { grants: [grantOf(desk)] }));
  await desk.stop();
  const next = await openDesk({ mark, files: desk.files.reopened(), clock: desk.clock });
  expect(next.ledger.id).toBe(desk.ledger.id);
  await next.stop();
});

it("begins a new ledger when the mark of a marked one is gone", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  await desk.stop();
  mark.value = undefined;
  const next = await openDesk({ mark, files: desk.files.reopened(), clock: desk.clock });
  expect(next.ledger.id).not.toBe(desk.ledger.id);
  await next.stop();
});

it("grants and logs nothing while the mark cannot be read, but boots disks", async () => {
  const mark = new TestMark();
  const desk = await openDesk({ mark });
  const grants = [grantOf(desk)];
  await whileTimePasses(desk, claimed(desk, { grants }));
  expect(await desk.ledger.adoptMachine(["mac/52:54:00:00:00:09"], "racks/web")).toBe("adopted");
  await desk.stop();
  mark.fails = true;
  const opening = openDesk({ mark, files: desk.files.reopened(), clock: desk.clock });
  await desk.clock.advance(1_000);
  const next = await opening;
  expect(next.ledger.id).toBeUndefined();
  expect(await asked(next, { grants, identities: ["mac/52:54:00:00:00:08"] })).toBe("late");
  expect(await asked(next, { grants, identities: ["mac/52:54:00:00:00:09"] })).toBe("disk");
  // An operator's change would raise the index above the mark, and hide a rollback.
  const { storeIndex } = next.store.indexes;
  expect(await next.ledger.adopt("racks/web", 1)).toBe("late");
  expect(next.store.indexes.storeIndex).toBe(storeIndex);
  expect(next.ledger.problems).toEqual(["Ledger: nothing installs: the mark of the ledger cannot be read: away"]);
  mark.fails = false;
  await next.clock.advance(2_000);
  expect(next.ledger.id).toBe(desk.ledger.id);
  await next.stop();
});

describe("the marks of members, each of which has its own,", () => {
  const memberMark = () => fileMark(memoryFiles(), "data", true);

  it("may be missing", async () => {
    const desk = await openDesk({ mark: memberMark() });
    await desk.stop();
    const other = await openDesk({ mark: memberMark(), files: desk.files.reopened(), clock: desk.clock });
    expect(other.ledger.id).toBe(desk.ledger.id);
    await other.stop();
  });

  it("show that the store was rolled back, and agree on the ledger that begins then", async () => {
    const [first, second] = [memberMark(), memberMark()];
    const desk = await openDesk({ mark: first });
    const grants = [grantOf(desk)];
    const older = desk.files.reopened();
    await whileTimePasses(desk, claimed(desk, { grants }));
    await desk.stop();
    const other = await openDesk({ mark: second, files: desk.files.reopened(), clock: desk.clock });
    expect(other.ledger.id).toBe(desk.ledger.id);
    await other.stop();
    await desk.clock.advance(1_000);

    const next = await openDesk({ mark: first, files: older, clock: desk.clock });
    expect(next.ledger.id).not.toBe(desk.ledger.id);
    expect(await asked(next, { grants })).toBe("otherLedger");
    await next.stop();
    const third = await openDesk({ mark: second, files: older.reopened(), clock: desk.clock });
    expect(third.ledger.id).toBe(next.ledger.id);
    await third.stop();
  });

  it("show a ledger that is older than theirs", async () => {
    const mark = memberMark();
    const former = await openDesk({ mark: memberMark() });
    await former.stop();
    await former.clock.advance(1_000);
    const desk = await openDesk({ mark, clock: former.clock });
    await desk.stop();
    const next = await openDesk({ mark, files: former.files.reopened(), clock: former.clock });
    expect([former.ledger.id, desk.ledger.id]).not.toContain(next.ledger.id);
    expect(next.ledger.id).toBeDefined();
    await next.stop();
  });

  it("follow what other members log", async () => {
    const mark = memberMark();
    const desk = await openDesk({ mark });
    const change = { kind: "set", path: adoptedPath("racks/web"), value: encodeAdopted({ untilMs: 1 }) } as const;
    await whileTimePasses(desk, desk.store.submit(change));
    await expect.poll(async () => (await mark.read())?.index).toBe(desk.store.indexes.storeIndex);
    await desk.stop();
  });
});

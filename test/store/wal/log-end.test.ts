/** A log whose end is missing, though every file that is left is whole. */

import { describe, expect, it } from "vitest";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import type { FaultFiles } from "../../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openLog, silentLog } from "../../helpers/test-store.ts";

const notePath = `${dataDirectory}/log-end`;
const smallSegments = { maxSegmentBytes: segmentHeadBytes + 100 };

async function started(files: FaultFiles) {
  const said: string[] = [];
  const warn = (_: object, message: string) => said.push(message);
  const log = await openLog(files, { ...smallSegments, log: { ...silentLog, warn, error: warn } });
  const delivered: string[] = [];
  await log.onCommitted((_, bytes) => delivered.push(String(Buffer.from(bytes))));
  return { log, delivered, said };
}

async function used(ending: "clean stop" | "crash"): Promise<FaultFiles> {
  const files = memoryFiles();
  const { log } = await started(files);
  for (const text of ["a", "b", "c", "d", "e"]) await log.propose(Buffer.from(text));
  if (ending === "crash") return files.afterCrash();
  await log.stop();
  return files.reopened();
}

const segmentsOf = async (files: FaultFiles) =>
  (await files.list(dataDirectory)).filter((name) => name.endsWith(".log"));

describe.each(["clean stop", "crash"] as const)("after a %s", (ending) => {
  it("a log without its newest segment is refused, until the loss is accepted", async () => {
    const files = await used(ending);
    const newest = (await segmentsOf(files)).at(-1);
    await files.remove(`${dataDirectory}/${newest}`);
    await expect(started(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringMatching(
        /^Reading "\/data": its log ends with record \d+, but record \d+ was written; bring back the missing files, restore a backup, or start empty .*; to go on without the records that are missing, remove "\/data\/log-end"$/,
      ),
    });
    await files.remove(notePath);
    const { log, delivered } = await started(files);
    expect(["a", "b", "c", "d", "e"].slice(0, delivered.length)).toEqual(delivered);
    await log.stop();
    await (await started(files.reopened())).log.stop();
  });

  it("a log without any segment is refused, and is no new one", async () => {
    const files = await used(ending);
    for (const name of await segmentsOf(files)) await files.remove(`${dataDirectory}/${name}`);
    await expect(started(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringContaining("no segment of its log is there, but record"),
    });
  });
});

it("after a clean stop every record that is cut off is missed, wherever the newest segment ends", async () => {
  const files = await used("clean stop");
  const path = `${dataDirectory}/${(await segmentsOf(files)).at(-1)}`;
  const whole = files.contentOf(path);
  for (let size = segmentHeadBytes; size < whole.length; size++) {
    const cut = files.reopened();
    cut.damage(path, (content) => content.subarray(0, size));
    await expect(started(cut)).rejects.toMatchObject({ reason: "damaged" });
  }
});

it("a note that is damaged, or of another cluster, is no reason to refuse a log", async () => {
  for (const change of [
    (note: Buffer) => note.fill(7, 3, 4),
    (note: Buffer) => note.subarray(0, 5),
    () => Buffer.alloc(0),
  ]) {
    const files = await used("clean stop");
    files.damage(notePath, change);
    const { log, delivered, said } = await started(files);
    expect(delivered).toHaveLength(5);
    expect(said).toEqual(["how far the log reached cannot be read, so a missing end would not be noticed"]);
    await log.stop();
    expect((await started(files.reopened())).said).toEqual([]);
  }
});

it("a snapshot that is damaged and passed over is logged with the one that is read instead", async () => {
  const files = memoryFiles();
  const { log } = await started(files);
  for (const text of ["a", "b", "c"]) {
    await log.saveSnapshot(await log.propose(Buffer.from(text)), [Buffer.from(text)]);
  }
  await log.stop();
  const damaged = files.reopened();
  const [older, newer] = ["0000000000000003", "0000000000000004"].map((name) => `${dataDirectory}/${name}.snapshot`);
  damaged.damage(newer ?? "", (content) => content.fill(9, 40, 41));
  const said: unknown[] = [];
  const again = await openLog(damaged, { log: { ...silentLog, error: (data) => said.push(data) } });
  expect(await again.loadSnapshot()).toMatchObject({ sequence: 3 });
  expect(said).toEqual([{ path: newer, used: older }]);
  await again.stop();
});

it("a snapshot that the disk fails to read is not called damaged", async () => {
  const files = memoryFiles();
  const { log } = await started(files);
  await log.saveSnapshot(await log.propose(Buffer.from("a")), [Buffer.from("a")]);
  await log.saveSnapshot(await log.propose(Buffer.from("b")), [Buffer.from("b")]);
  await log.stop();
  const said: string[] = [];
  const failing = files.reopened({ failAt: 1, failOnly: "read", code: "EIO" });
  const again = await openLog(failing, { log: { ...silentLog, error: (_data, text) => said.push(text ?? "") } });
  expect(await again.loadSnapshot()).toMatchObject({ sequence: 2 });
  expect(said).toEqual(["snapshot cannot be read from the disk, and passed over"]);
  await again.stop();
});

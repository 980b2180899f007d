import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import { batchHeadBytes, segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { recover } from "../../../src/store/wal/recover.ts";
import type { FaultFiles } from "../../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openLog } from "../../helpers/test-store.ts";

/** A log of these texts, one batch each, as a power cut leaves it. */
async function writtenLog(texts: readonly string[], maxSegmentBytes?: number): Promise<FaultFiles> {
  const files = memoryFiles();
  const log = await openLog(files, maxSegmentBytes === undefined ? {} : { maxSegmentBytes });
  await log.onCommitted(() => {});
  for (const text of texts) await log.propose(Buffer.from(text));
  return files.reopened();
}

async function readBack(files: FaultFiles, after = 0) {
  const texts: string[] = [];
  const end = await recover({
    directory: dataDirectory,
    files,
    after,
    onCommand: (sequence, bytes) => texts.push(`${sequence}:${Buffer.from(bytes)}`),
  });
  return { texts, end };
}

const firstSegment = `${dataDirectory}/0000000000000001.log`;
// The head of a record and of its batch, before a command's bytes.
const batchOverhead = batchHeadBytes + 5;

it("reads every command with its sequence; the term has one, too", async () => {
  const { texts, end } = await readBack(await writtenLog(["a", "b"]));
  expect(texts).toEqual(["2:a", "3:b"]);
  expect(end).toMatchObject({ lastSequence: 3, lastBatch: 3, term: 2, tornBytes: 0, isSealed: false });
});

it("reads only what is behind a snapshot", async () => {
  expect((await readBack(await writtenLog(["a", "b", "c"]), 3)).texts).toEqual(["4:c"]);
});

it("reads across segments", async () => {
  const files = await writtenLog(["a", "b", "c", "d"], segmentHeadBytes + 1);
  expect((await files.list(dataDirectory)).filter((name) => name.endsWith(".log"))).toHaveLength(5);
  expect((await readBack(files)).texts).toEqual(["2:a", "3:b", "4:c", "5:d"]);
});

it("of an empty directory there is no end", async () => {
  expect(await readBack(memoryFiles())).toEqual({ texts: [], end: undefined });
});

describe("a torn tail", () => {
  it("is told, and everything before it kept, wherever the last batch was torn", async () => {
    const whole = (await writtenLog(["a", "bcd"])).contentOf(firstSegment);
    const lastBatch = whole.length - batchOverhead - 3;
    for (let size = lastBatch; size < whole.length; size++) {
      const files = memoryFiles();
      files.damage(firstSegment, () => whole.subarray(0, size));
      const { texts, end } = await readBack(files);
      expect(texts).toEqual(["2:a"]);
      expect(end).toMatchObject({ size: lastBatch, tornBytes: size - lastBatch });
    }
  });

  it.each([
    { name: "zeros", tail: async () => Buffer.alloc(5_000) },
    { name: "the beginning of a batch", tail: async () => Buffer.from("ff6476740000", "hex") },
    { name: "whole batches of another segment, as a stale disk block has", tail: staleBatches },
  ])("may be $name", async ({ tail }) => {
    const files = await writtenLog(["a"]);
    const torn = await tail();
    files.damage(firstSegment, (content) => Buffer.concat([content, torn]));
    const { texts, end } = await readBack(files);
    expect(texts).toEqual(["2:a"]);
    expect(end?.tornBytes).toBe(torn.length);
  });
});

async function staleBatches(): Promise<Buffer> {
  const files = memoryFiles();
  const log = await openLog(files, { random: (bytes) => new Uint8Array(bytes).fill(9) });
  await log.onCommitted(() => {});
  for (const text of ["x", "y", "z"]) await log.propose(Buffer.from(text));
  return files.contentOf(firstSegment).subarray(segmentHeadBytes);
}

describe("damage", () => {
  it.each([
    { name: "a flipped byte in an earlier batch", change: (log: Buffer) => flipped(log, segmentHeadBytes + 60) },
    {
      name: "a hole",
      change: (log: Buffer) => Buffer.concat([log.subarray(0, 150), Buffer.alloc(20), log.subarray(170)]),
    },
  ])("is refused with file and byte: $name", async ({ change }) => {
    const files = await writtenLog(["first", "second", "third", "fourth"]);
    const before = files.contentOf(firstSegment);
    files.damage(firstSegment, change);
    await expect(readBack(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringMatching(
        new RegExp(`^Reading "${firstSegment}": damaged at byte \\d+, .*restore a backup`),
      ),
    });
    expect(files.contentOf(firstSegment)).toEqual(change(before));
  });

  it("is refused at the end of a segment that is not the newest", async () => {
    const files = await writtenLog(["a", "b"], segmentHeadBytes + 1);
    files.damage(firstSegment, (content) => content.subarray(0, -1));
    await expect(readBack(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringContaining(`"${firstSegment}": damaged at byte ${segmentHeadBytes}`),
    });
  });

  it("is refused when the head of the newest segment is not whole: it was renamed there as a whole", async () => {
    const files = await writtenLog(["a"]);
    files.damage(firstSegment, (content) => content.subarray(0, 10));
    await expect(readBack(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringContaining("byte 0,"),
    });
  });

  it.each([
    { name: "the first", missing: 0 },
    { name: "one in the middle", missing: 1 },
  ])("is refused when a segment is missing: $name", async ({ missing }) => {
    const files = await writtenLog(["a", "b", "c"], segmentHeadBytes + 1);
    const names = await files.list(dataDirectory);
    await files.remove(`${dataDirectory}/${names[missing]}`);
    await expect(readBack(files)).rejects.toMatchObject({
      reason: "damaged",
      message: expect.stringMatching(/should follow; bring back the missing file/),
    });
  });
});

it("a later format is refused with a sentence", async () => {
  const files = await writtenLog(["a"]);
  files.damage(firstSegment, (content) => {
    content.writeUInt32LE(9, 8);
    content.writeUInt32LE(crc32(content.subarray(16, segmentHeadBytes), crc32(content.subarray(0, 12))), 12);
    return content;
  });
  await expect(readBack(files)).rejects.toMatchObject({
    reason: "newerFormat",
    message: `Reading "${firstSegment}": its version is 9 and this davit knows 2; start the davit that wrote it, or a later one`,
  });
});

function flipped(log: Buffer, at: number): Buffer {
  log[at] = (log[at] ?? 0) ^ 1;
  return log;
}

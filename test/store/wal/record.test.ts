import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeBatch,
  decodeSegmentHead,
  encodeBatch as encodeBatchInSteps,
  encodeSegmentHead,
  type LogRecord,
  segmentHeadBytes,
} from "../../../src/store/wal/record.ts";

function encodeBatch(...args: Parameters<typeof encodeBatchInSteps>): Buffer {
  const steps = encodeBatchInSteps(...args);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

const anyId = fc.bigInt({ min: 1n, max: 2n ** 64n - 1n });
const anyNumber = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });

const anyRecord: fc.Arbitrary<LogRecord> = fc.oneof(
  fc.record({ kind: fc.constant("command"), bytes: fc.uint8Array() }),
  fc.record({ kind: fc.constant("term"), term: anyNumber }),
  fc.constant({ kind: "seal" }),
);

const anyPosition = fc.record({ segmentId: anyId, batch: anyNumber, firstSequence: anyNumber });
const anyRecords = fc.array(anyRecord, { minLength: 1, maxLength: 8 });

const anyHead = fc.record({
  segmentId: anyId,
  clusterId: anyId,
  memberId: anyId,
  term: anyNumber,
  firstBatch: anyNumber,
  firstSequence: anyNumber,
  endsPrevious: fc.boolean(),
});

/** Plain bytes, since a decoded command is a view of a Buffer. */
function plain(records: readonly LogRecord[] | undefined) {
  return records?.map((record) => (record.kind === "command" ? { ...record, bytes: [...record.bytes] } : record));
}

describe("a batch", () => {
  it("of some megabytes is made in steps", () => {
    const records = [1, 3 * 1024 * 1024 + 5, 2].map((length) => ({
      kind: "command" as const,
      bytes: Buffer.alloc(length, length & 127),
    }));
    const steps = encodeBatchInSteps({ segmentId: 1n, batch: 2, firstSequence: 3 }, records);
    let yields = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) yields += 1;
    // Of the copy, and of the CRC.
    expect(yields).toBe(6);
    expect(plain(decodeBatch(step.value, 0)?.records)?.length).toBe(3);
  });

  it("comes back as it was, wherever it stands", () => {
    fc.assert(
      fc.property(anyPosition, anyRecords, fc.uint8Array(), fc.uint8Array(), (position, records, before, after) => {
        const batch = encodeBatch(position, records);
        const decoded = decodeBatch(Buffer.concat([before, batch, after]), before.length);
        expect(decoded).toMatchObject({ ...position, bytes: batch.length });
        expect(plain(decoded?.records)).toEqual(plain(records));
      }),
    );
  });

  it("is none when any part of its end is missing", () => {
    fc.assert(
      fc.property(
        anyPosition,
        anyRecords,
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        (at, records, part) => {
          const batch = encodeBatch(at, records);
          expect(decodeBatch(batch.subarray(0, Math.floor(batch.length * part)), 0)).toBeUndefined();
        },
      ),
    );
  });

  it("is none when any bit of it differs", () => {
    fc.assert(
      fc.property(anyPosition, anyRecords, fc.nat(), (position, records, flip) => {
        const batch = encodeBatch(position, records);
        const bit = flip % (batch.length * 8);
        batch[bit >> 3] = (batch[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(decodeBatch(batch, 0)).toBeUndefined();
      }),
    );
  });

  it("has the bytes of format 1", () => {
    const batch = encodeBatch({ segmentId: 1n, batch: 2, firstSequence: 3 }, [
      { kind: "term", term: 2 },
      { kind: "command", bytes: Buffer.from("hi") },
      { kind: "seal" },
    ]);
    expect(batch.toString("hex").match(/.{1,16}/g)).toEqual([
      "ff64767419000000",
      "0100000000000000",
      "0200000000000000",
      "0300000000000000",
      `${batch.subarray(32, 36).toString("hex")}01080000`,
      "0002000000000000",
      "0002020000006869",
      "0300000000",
    ]);
  });
});

describe("a segment's head", () => {
  it("comes back as it was", () => {
    fc.assert(
      fc.property(anyHead, (head) => {
        expect(decodeSegmentHead(Buffer.from(encodeSegmentHead(head)))).toEqual({
          kind: "head",
          head,
          version: 2,
          bytes: segmentHeadBytes,
        });
      }),
    );
  });

  it("is invalid when a bit differs, its version's among them, or when it is cut", () => {
    fc.assert(
      fc.property(anyHead, fc.integer({ min: 0, max: segmentHeadBytes * 8 - 1 }), (head, bit) => {
        const bytes = Buffer.from(encodeSegmentHead(head));
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(decodeSegmentHead(bytes)).toEqual({ kind: "invalid" });
        expect(decodeSegmentHead(bytes.subarray(0, bit >> 3))).toEqual({ kind: "invalid" });
      }),
    );
  });

  it("of a later version says so, if its CRC does", () => {
    fc.assert(
      fc.property(anyHead, fc.integer({ min: 3, max: 2 ** 32 - 1 }), (head, version) => {
        const bytes = Buffer.from(encodeSegmentHead(head));
        bytes.writeUInt32LE(version, 8);
        expect(decodeSegmentHead(bytes)).toEqual({ kind: "invalid" });
        bytes.writeUInt32LE(crc32(bytes.subarray(16), crc32(bytes.subarray(0, 12))), 12);
        expect(decodeSegmentHead(bytes)).toEqual({ kind: "newerFormat", version });
      }),
    );
  });

  it("of version 1 is read, and a flipped bit of its version makes it no head of another version", () => {
    fc.assert(
      fc.property(anyHead, fc.integer({ min: 0, max: 31 }), (head, bit) => {
        const bytes = Buffer.from(encodeSegmentHead(head)).subarray(0, 64);
        bytes.writeUInt32LE(1, 8);
        bytes.writeUInt32LE(crc32(bytes.subarray(16)), 12);
        const old = { ...head, endsPrevious: false };
        expect(decodeSegmentHead(bytes)).toEqual({ kind: "head", head: old, version: 1, bytes: 64 });
        bytes.writeUInt32LE((1 ^ (1 << bit)) >>> 0, 8);
        expect(decodeSegmentHead(Buffer.concat([bytes, Buffer.alloc(36)]))).toEqual({ kind: "invalid" });
      }),
    );
  });
});

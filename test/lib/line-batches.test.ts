import { beforeEach, expect, it } from "vitest";
import { batchLength, batchWaitMs, LineBatches } from "../../src/lib/logging/create-log.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

let clock: FakeClock;
let written: string[];
let batches: LineBatches;

beforeEach(() => {
  clock = new FakeClock();
  written = [];
  batches = new LineBatches({ write: (lines) => void written.push(lines), clock });
});

it("hands lines on together, in order, once the wait is over", async () => {
  batches.write("a\n");
  batches.write("b\n");
  await clock.advance(batchWaitMs - 1);
  expect(written).toEqual([]);
  await clock.advance(1);
  expect(written).toEqual(["a\nb\n"]);
  batches.write("c\n");
  await clock.advance(batchWaitMs);
  expect(written).toEqual(["a\nb\n", "c\n"]);
});

it("does not wait once a batch is full", () => {
  const line = `${"x".repeat(batchLength - 1)}\n`;
  batches.write(line);
  expect(written).toEqual([line]);
});

it("hands on at once what a flush finds, and nothing twice", async () => {
  batches.write("a\n");
  batches.flush();
  batches.flush();
  await clock.advance(batchWaitMs);
  expect(written).toEqual(["a\n"]);
});

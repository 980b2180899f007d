import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AnsweredRequest, Intake, type IntakeLimits } from "../../../src/records/history/intake.ts";
import { seen } from "./seen-requests.ts";

const rowBytes = 116;

/** As many requests as that, with texts of as many letters. */
function room(maxWaiting: number, textLength: number): IntakeLimits {
  return { maxWaiting, maxWaitingBytes: maxWaiting * rowBytes + textLength };
}

function takeAll(intake: Intake): readonly AnsweredRequest[] {
  const taken: AnsweredRequest[] = [];
  while (intake.count > 0) taken.push(intake.take());
  return taken;
}

it.each<[name: string, request: AnsweredRequest]>([
  ["a script's", seen("ipxe", { query: "mac=52-54-00-00-00-01&serial=%1b", group: "lab/web", startedMs: 1.5 })],
  ["one without labels", seen("boot.ipxe", { durationMs: 0.25, ofBytes: undefined })],
  ["one that is refused", seen("ipxe", { query: "mac=1", status: 503, isCut: true, refusal: 31, boot: 2 ** 32 - 1 })],
  ["one with an empty query", seen("ipxe", { query: "", status: 404 })],
  ["an asset's", seen("assets", { path: "/assets/linux", sentBytes: 2 ** 40, ofBytes: 2 ** 41, isCut: true })],
  ["a part's", seen("generic-part", { path: "/generic/a", query: "uuid=1", isHead: true, sentBytes: 0 })],
])("%s request comes out as it was told", (_name, request) => {
  const intake = new Intake(room(4, 256));
  intake.add(seen("ipxe", { query: "mac=other" }));
  intake.add(request);
  expect(takeAll(intake)[1]).toEqual(request);
});

describe("when there are too many", () => {
  it("the oldest are lost, and counted from the first to the last", () => {
    const intake = new Intake(room(3, 256));
    for (let at = 0; at < 5; at++) intake.add(seen(`e${at}`, { startedMs: at * 10 }));
    expect(intake.lost).toEqual({ count: 2, firstMs: 0, lastMs: 10 });
    expect(takeAll(intake).map(({ endpoint }) => endpoint)).toEqual(["e2", "e3", "e4"]);
  });

  it("none is lost as long as they fit", () => {
    const intake = new Intake(room(3, 256));
    for (let at = 0; at < 3; at++) intake.add(seen("ipxe"));
    expect([intake.lost, intake.count]).toEqual([undefined, 3]);
  });

  it("as many of the oldest are lost as make room for a long text", () => {
    const intake = new Intake(room(8, 100));
    for (const query of ["a".repeat(40), "b".repeat(40), "c".repeat(90)]) intake.add(seen("ipxe", { query }));
    expect([intake.lost?.count, takeAll(intake).map(({ query }) => query)]).toEqual([2, ["c".repeat(90)]]);
  });

  it("a request whose text never fits is lost itself", () => {
    const intake = new Intake(room(8, 100));
    intake.add(seen("ipxe", { query: "a".repeat(101), startedMs: 7 }));
    intake.add(seen("ipxe", { query: "b" }));
    expect([intake.lost, intake.count]).toEqual([{ count: 1, firstMs: 7, lastMs: 7 }, 1]);
  });
});

it("what comes out is what was told and not lost, whole and in order", () => {
  const told = fc.record({
    query: fc.option(fc.string({ maxLength: 30 }), { nil: undefined }),
    path: fc.option(fc.string({ maxLength: 30 }), { nil: undefined }),
  });
  const step = fc.oneof({ arbitrary: told, weight: 3 }, { arbitrary: fc.constant("take" as const), weight: 2 });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 0, max: 120 }), (steps, textLength) => {
      const intake = new Intake(room(7, textLength));
      const all: AnsweredRequest[] = [];
      const taken: AnsweredRequest[] = [];
      for (const one of steps) {
        if (one !== "take") {
          all.push(seen("ipxe", { ...one, startedMs: all.length }));
          intake.add(seen("ipxe", { ...one, startedMs: all.length - 1 }));
        } else if (intake.count > 0) {
          taken.push(intake.take());
        }
      }
      taken.push(...takeAll(intake));
      expect(taken.length + (intake.lost?.count ?? 0)).toBe(all.length);
      expect(taken).toEqual(all.filter(({ startedMs }) => taken.some((one) => one.startedMs === startedMs)));
      expect(taken.map(({ startedMs }) => startedMs)).toEqual(
        taken.map(({ startedMs }) => startedMs).toSorted((one, other) => one - other),
      );
    }),
  );
});

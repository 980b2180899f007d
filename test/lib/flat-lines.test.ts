import fc from "fast-check";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { FlatLines } from "../../src/lib/flat-lines.ts";

const timestamp = () => `,"time":"2026-01-02T03:04:05.678Z"`;

/** The lines that pino writes of its own, and those of the class under test. */
function bothOf(level: string, write: (log: FlatLines | pino.Logger) => void) {
  const [own, model]: [string[], string[]] = [[], []];
  const options = { level, base: null, timestamp };
  const log = pino(options, { write: (line) => void own.push(line) });
  const hasInfo = log.isLevelEnabled("info");
  write(new FlatLines({ log, hasInfo, timestamp, write: (line) => void own.push(line) }));
  write(pino(options, { write: (line) => void model.push(line) }));
  return { own, model };
}

describe("FlatLines", () => {
  it("writes what pino writes, whatever the data", () => {
    const plain = fc.oneof(fc.string({ unit: "binary" }), fc.double(), fc.boolean(), fc.constant(undefined));
    const value = fc.oneof({ weight: 5, arbitrary: plain }, fc.jsonValue());
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), value), fc.string(), (data, message) => {
        const { own, model } = bothOf("info", (log) => log.info(data, message));
        expect(own).toEqual(model);
        expect(own).toHaveLength(1);
      }),
    );
  });

  it("writes the part that a child has, and its parent's", () => {
    const { own, model } = bothOf("debug", (log) => {
      const child = log.child({ part: 'a "boot"' });
      child.info({ path: "/ipxe" }, "request");
      child.child({ part: "inner" }).info({ list: [1] }, "nested");
      child.warn({ count: 1 }, "dropped");
      log.error({ err: new Error("lost") }, "failed");
      log.debug({}, "seen");
    });
    expect(own.map((line) => line.replace(/"stack":"(?:[^"\\]|\\.)*"/, ""))).toEqual(
      model.map((line) => line.replace(/"stack":"(?:[^"\\]|\\.)*"/, "")),
    );
    expect(own).toHaveLength(5);
  });

  it("writes the numbers that JSON has no word for as pino does", () => {
    const { own, model } = bothOf("info", (log) =>
      log.info({ a: Number.NaN, b: Number.POSITIVE_INFINITY, c: -0 }, "n"),
    );
    expect(own).toEqual(model);
  });

  it("keeps silent below its level", () => {
    expect(bothOf("warn", (log) => log.info({ a: 1 }, "unseen"))).toEqual({ own: [], model: [] });
  });
});

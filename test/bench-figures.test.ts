/** The figures that benchmarks write, and what the page makes of them. */

import { expect, it } from "vitest";
import { takeTurns } from "../bench/turns.ts";
import { shortTableOf, tableOf } from "../tools/benchmarks/figure-table.ts";
import { figureOf, isMissed, recomputed } from "../tools/benchmarks/figures.ts";
import { ratioPlot } from "../tools/generate/ratio-plot.ts";

const sides = { davit: [300, 100, 200], beside: [100, 100, 400] };
const put = figureOf({ what: "PUT", peer: "etcd", unit: "/s", ...sides, goal: { of: "ratio", atLeast: 1.25 } });
const start = figureOf({ what: "`start` & <more>", unit: "ms", davit: [12.345], goal: { of: "davit", atMost: 12 } });

it("ratios are taken within a round", () => {
  expect(put.ratio).toEqual({ median: 1, low: 0.5, high: 3 });
  expect([put.davit.median, put.beside?.median]).toEqual([200, 100]);
});

it("a goal is missed on its own side only", () => {
  const misses = (goal: object) => isMissed({ ...put, goal: { of: "ratio", ...goal } });
  expect([misses({ atLeast: 1 }), misses({ atLeast: 1.01 })]).toEqual([false, true]);
  expect([misses({ atMost: 1 }), misses({ atMost: 0.99 })]).toEqual([false, true]);
  expect(isMissed({ ...put, ratio: undefined as never, goal: { of: "ratio", atMost: 1 } })).toBe(true);
});

it("another median than that of the samples is found", () => {
  const cpu = { unit: "us", ...sides };
  const figure = figureOf({ what: "GET", peer: "etcd", headline: "GETs", unit: "/s", ...sides, cpu });
  expect(recomputed(figure)).toEqual(figure);
  const better = { ...figure, davit: { ...figure.davit, median: 250 } };
  expect(recomputed(better)).not.toEqual(better);
});

it("a table has the columns that a figure needs, and says what is missed", () => {
  expect(tableOf([put])).toEqual([
    "|  | davit | etcd | ratio | goal |",
    "|---|---|---|---|---|",
    "| PUT | 200/s | 100/s | 1 (0.5 to 3) | ratio at least 1.25: **missed** |",
  ]);
  expect(tableOf([start])[2]).toBe("| `start` & <more> | 12.3 ms | at most 12 ms: **missed** |");
});

it("a short table compares davit with its peer, without quartiles and goals", () => {
  expect(shortTableOf([put])).toEqual([
    "|  | davit | etcd | ratio |",
    "|---|---|---|---|",
    "| PUT | 200/s | 100/s | 1 |",
  ]);
  expect(shortTableOf([start])).toEqual(["|  | davit |", "|---|---|", "| `start` & <more> | 12.3 ms |"]);
});

it("a plot shows ratios alone, and says them in words", () => {
  expect(ratioPlot("start", [start])).toBeUndefined();
  const svg = ratioPlot("store", [{ ...put, what: "PUT <1>" }, start]) ?? "";
  expect(svg).toContain("PUT &lt;1&gt;, beside etcd: 1 (0.5 to 3); goal: ratio at least 1.25: missed.");
  expect(svg).toContain('class="missed"');
  expect(svg).not.toContain("start");
});

it("another contender begins each round", async () => {
  const order: string[] = [];
  const found = await takeTurns(["a", "b"], 3, async (name) => order.push(name));
  expect(order.join("")).toBe("abbaab");
  expect(found("b")).toEqual([2, 3, 6]);
});

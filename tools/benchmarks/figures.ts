/** The figures of benchmarks, with a sample for each round: davit, mostly beside a peer. bench/results/ has them. */

import { median, percentile } from "./statistics.ts";

/** The results of one side in each round. */
export interface Samples {
  readonly median: number;
  readonly samples: readonly number[];
}

/** davit divided by its peer within each round, because other work in a round disturbs both. */
export interface Ratio {
  readonly median: number;
  /** The quartiles. */
  readonly low: number;
  readonly high: number;
}

/** The limit for the median of davit, or for that of the ratio. */
export interface Goal {
  readonly of: "davit" | "ratio";
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface Comparison {
  /** A unit such as `/s` or `ms`; empty for a count. */
  readonly unit: string;
  readonly davit: Samples;
  /** The peer. */
  readonly beside?: Samples;
  readonly ratio?: Ratio;
  readonly goal?: Goal;
}

/** A row of a table. */
export interface Figure extends Comparison {
  readonly what: string;
  /** The peer's name. It can be davit in another state. */
  readonly peer?: string;
  /** Processor time of the server for a request, an operation or a start. */
  readonly cpu?: Comparison;
  /** Its name in README.md. Without one, README.md does not show it. */
  readonly headline?: string;
}

/** A comparison as a benchmark measures it: one number for each round. */
export interface Measured {
  readonly unit: string;
  readonly davit: readonly number[];
  readonly beside?: readonly number[];
  readonly goal?: Goal;
}

export interface MeasuredFigure extends Measured, Pick<Figure, "what" | "peer" | "headline"> {
  readonly cpu?: Measured;
}

export function figureOf({ what, peer, headline, cpu, ...measured }: MeasuredFigure): Figure {
  const { unit, ...compared } = comparisonOf(measured);
  const named = { what, ...(peer !== undefined && { peer }), ...(headline !== undefined && { headline }), unit };
  return { ...named, ...compared, ...(cpu && { cpu: comparisonOf(cpu) }) };
}

function comparisonOf({ unit, davit, beside, goal }: Measured): Comparison {
  const [own, other] = [samplesOf(davit), beside && samplesOf(beside)];
  const compared = other && { beside: other, ratio: ratioOf(own, other) };
  return { unit, davit: own, ...compared, ...(goal && { goal }) };
}

function samplesOf(values: readonly number[]): Samples {
  const samples = values.map(rounded);
  return { median: median(samples), samples };
}

function ratioOf({ samples }: Samples, beside: Samples): Ratio {
  const ratios = samples.map((value, round) => rounded(value / (beside.samples[round] ?? Number.NaN)));
  return { median: median(ratios), low: percentile(ratios, 25), high: percentile(ratios, 75) };
}

/** Rounds a number, because further digits are noise. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** Computes a figure again from its samples. The result differs if the medians of a file do not fit its samples. */
export function recomputed({ what, peer, headline, cpu, ...compared }: Figure): Figure {
  const named = { what, ...(peer !== undefined && { peer }), ...(headline !== undefined && { headline }) };
  return figureOf({ ...named, ...measuredOf(compared), ...(cpu && { cpu: measuredOf(cpu) }) });
}

function measuredOf({ unit, davit, beside, goal }: Comparison): Measured {
  const other = beside && { beside: beside.samples };
  return { unit, davit: davit.samples, ...other, ...(goal && { goal }) };
}

/** True if the median misses the goal; undefined without a goal. */
export function isMissed({ davit, ratio, goal }: Comparison): boolean | undefined {
  if (goal === undefined) return undefined;
  const value = goal.of === "davit" ? davit.median : (ratio?.median ?? Number.NaN);
  return !(value >= (goal.atLeast ?? Number.NEGATIVE_INFINITY) && value <= (goal.atMost ?? Number.POSITIVE_INFINITY));
}

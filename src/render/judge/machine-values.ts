/** Adds what Machines may define to the variables of a template, as samples. */

import type { JsonValue } from "../../model/json.ts";

/** Sample values by the names of variables. */
export type Samples = Readonly<Record<string, JsonValue>>;

// A Machine's metadata never replaces these.
const reserved: ReadonlySet<string> = new Set(["davit", "request"]);

/** Returns the sample of a variable; undefined if no Machine defines it for a Group with these labels and metadata. */
export function sampleOf(
  name: string,
  samples: Samples,
  { selector, metadata }: { readonly selector: Samples; readonly metadata: Samples },
): JsonValue | undefined {
  if (reserved.has(name) || !Object.hasOwn(samples, name)) return undefined;
  // The selector's labels come last, and `machine` comes first.
  if (Object.keys(selector).some((label) => label.toLowerCase() === name)) return undefined;
  return name === "machine" && Object.hasOwn(metadata, name) ? undefined : samples[name];
}

/**
 * Replaces variables by the samples of Machines.
 * @param noteRead is called when a template reads one: its result differs from machine to machine.
 */
export function withSamples<Variables extends object>(
  variables: Variables,
  samples: Samples,
  group: { readonly selector: Samples; readonly metadata: Samples },
  noteRead: () => void,
): Variables {
  for (const name of Object.keys(samples)) {
    const value = sampleOf(name, samples, group);
    if (value === undefined) continue;
    const get = () => {
      noteRead();
      return value;
    };
    Object.defineProperty(variables, name, { enumerable: true, configurable: true, get });
  }
  return variables;
}

/** The URL of `{{davit.report}}` in trials. Each machine gets another one. */
export function sampleReportUrl(davitUrl: string): string {
  return `${davitUrl}/report/${"A".repeat(32)}`;
}

/** A sample request of a Group's machine: the labels that select it, and made-up values that every machine has. */

import type { Selection } from "../../model/group.ts";
import { type Labels, labelsFromQuery } from "../../model/labels.ts";
import { sampleLabels, samples } from "../ranking/sample-labels.ts";

export interface SampleRequest {
  readonly labels: Labels;
  /** As a machine sends it, without the `?`. */
  readonly rawQuery: string;
}

/** Makes the sample request of a Group. */
export function sampleRequest(selection: Selection): SampleRequest {
  // A machine may lack a name, for example, and this Group may select exactly those without one.
  const others = [...samples].filter(([label, value]) =>
    selection.expressions.every(({ key, accepts }) => key !== label || accepts(value)),
  );
  const rawQuery = [...new Map([...others, ...sampleLabels(selection)])].map(pairOf).join("&");
  return { labels: labelsFromQuery(rawQuery), rawQuery };
}

/** iPXE sends a MAC address with hyphens (`${mac:hexhyp}`). */
function pairOf([label, value]: readonly [string, string]): string {
  const sent = label === "mac" ? value.replaceAll(":", "-") : value;
  return `${encodeURIComponent(label)}=${encodeURIComponent(sent.toWellFormed())}`;
}

/** What a machine of a Group might send: the labels that select it, and a made-up value for what every machine has. */

import type { Group } from "../model/group.ts";
import { type Labels, labelsFromQuery } from "../model/labels.ts";

export interface SampleRequest {
  readonly labels: Labels;
  /** As a machine sends it, without the `?`. */
  readonly rawQuery: string;
}

/** The MAC address is of the block for documents (RFC 7042); all are the same for every Group, always. */
const samples = {
  uuid: "01234567-89ab-4cde-8f01-23456789abcd",
  mac: "00:00:5e:00:53:01",
  hostname: "sample",
  serial: "SAMPLE",
} as const;

/** Makes the sample request of a Group. */
export function sampleRequest({ selector }: Pick<Group, "selector">): SampleRequest {
  const rawQuery = [...new Map([...Object.entries(samples), ...selector])].map(pairOf).join("&");
  return { labels: labelsFromQuery(rawQuery), rawQuery };
}

/** iPXE sends a MAC address with hyphens (`${mac:hexhyp}`). */
function pairOf([label, value]: readonly [string, string]): string {
  const sent = label === "mac" ? value.replaceAll(":", "-") : value;
  return `${encodeURIComponent(label)}=${encodeURIComponent(sent.toWellFormed())}`;
}

/** A boot index that is open, and what it gives machines. */

import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { BootRefusal } from "../../src/model/refusals.ts";

export type Documents = readonly (readonly [path: string, text: string])[];

export const log = createLog({ level: "silent", format: "json" });

export function openIndex(documents: Documents): BootIndex {
  const index = new BootIndex({ log });
  index.replaced(documents);
  index.open();
  return index;
}

/** The names of Group and Profile, in this order. */
export function selected(index: BootIndex, query: string): string {
  const { group, profile } = index.select(labelsFromQuery(query));
  return `${group.id} ${profile.id}`;
}

export function refusal(index: BootIndex, query: string): BootRefusal | undefined {
  try {
    index.select(labelsFromQuery(query));
    return undefined;
  } catch (error) {
    if (error instanceof BootError) return error.reason;
    throw error;
  }
}

/**
 * Tombstones: a Group that selected by `uuid` or `mac` and goes, or gets another selector, leaves one for each of those
 * labels, in the step that removes it. Until it ends, the boot service answers 503 to a machine that the old selector
 * matches, unless a Group wins that selects by all of its labels. So however long a removal of thousands takes, nobody
 * who was named gets a catch-all in between, or the Group that would install the machine anew.
 *
 * Any other selector counts as gone, a narrower one as well: it may no longer match what the old one did. So does a
 * wider one: a Group by the name of another may have been meant for other machines. A Group that comes back as it was
 * takes its own tombstones away; where several left the same one, it tells all of their selectors, and only time takes
 * it away. Pure.
 */

import { compareBytes } from "../lib/order.ts";
import {
  decodeTombstone,
  encodeDocument,
  type TombstoneDocument,
  type TombstoneLabel,
  tombstoneLabels,
  tombstonePath,
  tombstoneSelectors,
} from "../model/documents.ts";
import { type GroupSpec, selectorText } from "../model/group.ts";
import type { DocumentWrite } from "./documents.ts";

/** What a step makes of one Group; undefined where there is none. */
export interface Passing {
  /** `namespace/name`. */
  readonly id: string;
  readonly before: GroupSpec | undefined;
  readonly after: GroupSpec | undefined;
}

export interface TombstoneOptions {
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone stays, whole seconds from 1 on. */
  readonly ttlSeconds: number;
}

/** A label of a selector by which a tombstone is left. */
interface Plot {
  readonly label: TombstoneLabel;
  readonly value: string;
  readonly path: string;
}

type Selectors = readonly GroupSpec["selector"][];

// Each request of the machine looks at all of them, and a Group that changes all the time leaves more and more.
const mostSelectors = 16;

/** The tombstones that a step leaves and takes away. */
export function tombstoneWrites(passings: readonly Passing[], options: TombstoneOptions): readonly DocumentWrite[] {
  const moved = passings.filter(isMoved);
  const graveyard = new Graveyard(options.textAt);
  for (const { id, before } of moved) if (before !== undefined) graveyard.bury(id, before);
  for (const { id, after } of moved) if (after !== undefined) graveyard.raise(id, after);
  return graveyard.writes(options.ttlSeconds);
}

class Graveyard {
  readonly #textAt: TombstoneOptions["textAt"];
  /** What is to be written, by path; undefined to be removed. */
  readonly #stones = new Map<string, TombstoneDocument | undefined>();

  constructor(textAt: TombstoneOptions["textAt"]) {
    this.#textAt = textAt;
  }

  /** A stone that another Group left, or several, belongs to nobody from now on, and tells of all. */
  bury(id: string, spec: GroupSpec): void {
    const stone = stoneOf(id, spec);
    for (const plot of plotsOf(spec)) {
      const found = this.#at(plot.path) ?? stone;
      this.#stones.set(plot.path, isSame(found, stone) ? stone : { labels: withSelector(found, spec, plot) });
    }
  }

  raise(id: string, spec: GroupSpec): void {
    const stone = stoneOf(id, spec);
    for (const { path } of plotsOf(spec)) if (isSame(this.#at(path) ?? {}, stone)) this.#stones.set(path, undefined);
  }

  writes(ttlSeconds: number): readonly DocumentWrite[] {
    return [...this.#stones].map(([path, stone]) =>
      stone === undefined ? { path, text: undefined } : { path, text: encodeDocument(stone), ttlSeconds },
    );
  }

  #at(path: string): TombstoneDocument | undefined {
    if (this.#stones.has(path)) return this.#stones.get(path);
    const text = this.#textAt(path);
    return text === undefined ? undefined : (decodeTombstone(text) ?? {});
  }
}

function stoneOf(id: string, spec: GroupSpec): TombstoneDocument {
  return { group: id, selector: textOf(spec), labels: [spec.selector] };
}

/** The selectors of a stone with one more, the last that went at the end; too many old ones become the label alone. */
function withSelector(stone: TombstoneDocument, { selector }: GroupSpec, { label, value }: Plot): Selectors {
  const added = JSON.stringify(selector);
  const others = tombstoneSelectors(stone, label, value).filter((other) => JSON.stringify(other) !== added);
  const all = [...others, selector];
  return all.length > mostSelectors ? [{ [label]: value }, ...all.slice(1 - mostSelectors)] : all;
}

function plotsOf({ selector }: GroupSpec): readonly Plot[] {
  return tombstoneLabels.flatMap((label) => {
    const value = selector[label];
    return value === undefined ? [] : [{ label, value, path: tombstonePath(label, value) }];
  });
}

function textOf({ selector }: GroupSpec): string {
  return selectorText(Object.entries(selector));
}

function isMoved({ before, after }: Passing): boolean {
  if (before === undefined || after === undefined) return before !== after;
  return labelsOf(before) !== labelsOf(after);
}

/** As text that only equal selectors share: in that for people a comma may be a value's or stand between two labels. */
function labelsOf({ selector }: GroupSpec): string {
  return JSON.stringify(Object.entries(selector).toSorted(([a], [b]) => compareBytes(a, b)));
}

function isSame(a: TombstoneDocument, b: TombstoneDocument): boolean {
  return a.group === b.group && a.selector === b.selector;
}

/**
 * Tombstones: a Group that selected by an identity label and goes, or gets another selector, leaves one for each value of
 * such labels, in the step that removes it. Until it ends, the boot service answers 503 to a machine that the old
 * selector matches, unless a Group wins that says as much of all of its labels. So however long a removal of thousands
 * takes, nobody who was named gets a catch-all in between, or the Group that would install the machine anew.
 *
 * Any other selector counts as gone, a narrower one as well: it may no longer match what the old one did. So does a
 * wider one: a Group by the name of another may have been meant for other machines. Of a list of values only those count
 * that are no longer in it. A Group that comes back as it was takes its own tombstones away; where several left the same
 * one, it tells all of their selectors, and only time takes it away. Pure.
 */

import {
  decodeTombstone,
  encodeDocument,
  type GoneSelector,
  profileTombstonePath,
  type TombstoneDocument,
  tombstonePath,
  tombstoneSelectors,
} from "../model/documents.ts";
import { type GroupSpec, selectorText } from "../model/group.ts";
import type { ObjectName } from "../model/source.ts";
import type { DocumentWrite } from "./documents.ts";
import { goneSelector, type Plot, plotsOf } from "./plots.ts";

/** What a step makes of one Group; undefined where there is none. */
export interface Passing {
  /** `namespace/name`. */
  readonly id: string;
  readonly before: GroupSpec | undefined;
  readonly after: GroupSpec | undefined;
}

/** What a step makes of one Profile: whether there was one, and whether there is one now. */
export interface ProfilePassing {
  readonly name: Pick<ObjectName, "namespace" | "name">;
  readonly before: boolean;
  readonly after: boolean;
}

export interface TombstoneOptions {
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone stays, whole seconds from 1 on. */
  readonly ttlSeconds: number;
}

/** One value of a label by which a Group selected, or does now. */
interface Grave {
  readonly label: string;
  readonly value: string;
  readonly path: string;
  readonly gone: GoneSelector;
  /** What the Group leaves there. */
  readonly stone: TombstoneDocument;
}

// Each request of the machine looks at all of them, and a Group that changes all the time leaves more and more.
const mostSelectors = 16;

/**
 * What a step writes of the tombstone of a Profile. Deleted and created anew, as `kubectl replace --force` does, it is
 * missing for a moment; a 404 in between would send its machines to their next boot device.
 */
export function profileTombstoneWrites(
  { name: { namespace, name }, before, after }: ProfilePassing,
  { textAt, ttlSeconds }: TombstoneOptions,
): readonly DocumentWrite[] {
  const path = profileTombstonePath(namespace, name);
  if (after) return textAt(path) === undefined ? [] : [{ path, text: undefined }];
  return before ? [{ path, text: encodeDocument({ goneProfile: `${namespace}/${name}` }), ttlSeconds }] : [];
}

/** The tombstones that a step leaves and takes away. */
export function tombstoneWrites(passings: readonly Passing[], options: TombstoneOptions): readonly DocumentWrite[] {
  const graveyard = new Graveyard(options.textAt);
  const moves = passings.map(({ id, before, after }) => {
    const [old, now] = [before ? plotsOf(before) : [], after ? plotsOf(after) : []];
    return { id, left: without(old, now), taken: without(now, old) };
  });
  for (const { id, left } of moves) for (const grave of gravesOf(id, left)) graveyard.bury(grave);
  for (const { id, taken } of moves) for (const grave of gravesOf(id, taken)) graveyard.raise(grave);
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
  bury(grave: Grave): void {
    const { path, stone } = grave;
    const found = this.#at(path) ?? stone;
    this.#stones.set(path, isSame(found, stone) ? stone : stoneOf(withSelector(found, grave)));
  }

  raise({ path, stone }: Grave): void {
    if (isSame(this.#at(path) ?? {}, stone)) this.#stones.set(path, undefined);
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

/** What is in some plots and not in others. */
function without(plots: readonly Plot[], others: readonly Plot[]): readonly Plot[] {
  return plots.map((plot) => {
    const other = others.find(({ label, restText }) => label === plot.label && restText === plot.restText);
    if (other === undefined) return plot;
    return { ...plot, values: new Set([...plot.values].filter((value) => !other.values.has(value))) };
  });
}

function gravesOf(id: string, plots: readonly Plot[]): readonly Grave[] {
  return plots.flatMap((plot) =>
    [...plot.values].map((value): Grave => {
      const { label } = plot;
      const gone = goneSelector(plot, value);
      const selector = selectorText(gone.labels, gone.expressions);
      return {
        label,
        value,
        path: tombstonePath(label, value),
        gone,
        stone: { group: id, selector, ...stoneOf([gone]) },
      };
    }),
  );
}

function stoneOf(selectors: readonly GoneSelector[]): TombstoneDocument {
  const hasExpressions = selectors.some(({ expressions }) => expressions.length > 0);
  return {
    labels: selectors.map(({ labels }) => labels),
    ...(hasExpressions && { expressions: selectors.map(({ expressions }) => expressions) }),
  };
}

/** The selectors of a stone with one more, the last that went at the end; too many old ones become the label alone. */
function withSelector(stone: TombstoneDocument, { label, value, gone }: Grave): readonly GoneSelector[] {
  const added = JSON.stringify(gone);
  const others = tombstoneSelectors(stone, label, value).filter((other) => JSON.stringify(other) !== added);
  const all = [...others, gone];
  if (all.length <= mostSelectors) return all;
  return [{ labels: { [label]: value }, expressions: [] }, ...all.slice(1 - mostSelectors)];
}

function isSame(a: TombstoneDocument, b: TombstoneDocument): boolean {
  return a.group === b.group && a.selector === b.selector;
}

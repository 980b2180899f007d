/**
 * What Machines may add to the variables of a Group: their metadata by name, and the variable `machine`. A template
 * that prints such a variable does not fail for every request, so davit must not take it for a mistake. A sample value
 * makes trials possible.
 */

import type { JsonValue } from "../../model/json.ts";
import type { MachineDocument } from "../../model/objects/machine.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { Samples } from "../../render/judge/judge.ts";

/** Names of metadata and of labels, each with a sample. */
interface Names {
  readonly metadata: Samples;
  readonly labels: Samples;
}

interface Counted {
  readonly value: JsonValue;
  count: number;
}

const noNames: Names = { metadata: {}, labels: {} };
/** The scope of Machines that count for the Groups of every namespace. */
const everywhere = "";

export class MachineSamples {
  readonly #ofMachines = new Map<string, { readonly scope: string; readonly names: Names }>();
  /** By scope: a namespace for Machines that count for its Groups alone. Then by name. */
  readonly #counts = new Map<string, Map<string, Counted>>();
  /** By namespace. Emptied when a name comes or goes. */
  #samples = new Map<string, Samples>();

  /**
   * Replaces what is known of a Machine.
   * @returns true if the names of samples have changed.
   */
  update(name: ObjectName, document: Pick<MachineDocument, "spec" | "tenant"> | undefined): boolean {
    const key = objectKey(name);
    const before = this.#ofMachines.get(key) ?? { scope: everywhere, names: noNames };
    const scope = document?.tenant === true ? name.namespace : everywhere;
    const names = document === undefined ? noNames : { metadata: document.spec.metadata, labels: document.spec.labels };
    if (document === undefined) this.#ofMachines.delete(key);
    else this.#ofMachines.set(key, { scope, names });
    // Additions come first: a name that stays must not go in between.
    const isMore = this.#count(scope, names, 1);
    const isLess = this.#count(before.scope, before.names, -1);
    if (isMore || isLess) this.#samples = new Map();
    return isMore || isLess;
  }

  /** The samples for Groups of a namespace: the same object until a name comes or goes. */
  of(namespace: string): Samples {
    const known = this.#samples.get(namespace);
    if (known !== undefined) return known;
    const labels: Record<string, JsonValue> = {};
    const samples: Record<string, JsonValue> = { machine: { name: "machine", namespace, labels } };
    for (const scope of [everywhere, namespace]) {
      for (const [name, { value }] of this.#counts.get(scope) ?? []) {
        if (name.startsWith(labelPrefix)) labels[name.slice(labelPrefix.length)] = value;
        else samples[name.slice(metadataPrefix.length)] = value;
      }
    }
    this.#samples.set(namespace, samples);
    return samples;
  }

  /** @returns true if a name has come or gone. */
  #count(scope: string, { metadata, labels }: Names, by: 1 | -1): boolean {
    const counts = this.#counts.get(scope) ?? new Map<string, Counted>();
    this.#counts.set(scope, counts);
    let isNews = false;
    const prefixed = [
      ...Object.entries(metadata).map(([name, value]) => [metadataPrefix + name, value] as const),
      ...Object.entries(labels).map(([name, value]) => [labelPrefix + name, value] as const),
    ];
    for (const [name, value] of prefixed) {
      const counted = counts.get(name) ?? { value, count: 0 };
      counted.count += by;
      if (counted.count === 0) counts.delete(name);
      else counts.set(name, counted);
      isNews ||= counted.count === (by === 1 ? 1 : 0);
    }
    return isNews;
  }
}

const metadataPrefix = "metadata/";
const labelPrefix = "label/";

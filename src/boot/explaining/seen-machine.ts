/** Shows people what davit knows of a machine besides its request. Boots do not compute this. */

import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import { type BootMachine, mergedLabels } from "../core/known-machines.ts";
import type { BootIndex } from "../selection/boot-index.ts";

/** Where a label comes from: the request, a Machine object, or a report of the machine. */
type LabelOrigin = "query" | "machine" | "reported";

export interface ShownLabel {
  readonly name: string;
  readonly value: string;
  readonly origin: LabelOrigin;
}

export interface SeenMachine {
  /** The labels by which Groups select. */
  readonly labels: Labels;
  /** The labels to show to people. */
  readonly origins: readonly ShownLabel[];
  /** The Machine objects that the request names. More than one is a mistake. */
  readonly machines: readonly BootMachine[];
}

/** Returns the labels and the Machine of a request, as selection sees them. */
export function seenMachine(
  index: Pick<BootIndex, "machinesOf" | "soleMachineOf" | "ledger">,
  asked: Labels,
): SeenMachine {
  const machines = index.machinesOf(asked);
  const { machine } = index.soleMachineOf(asked);
  const labels = mergedLabels(asked, machine, index.ledger?.reportedLabels(asked, machine?.document.spec.identities));
  const own = new Map(machine?.labels);
  const shown = new Map([...labels, ...sentLabels(asked), ...own]);
  const originOf = (name: string): LabelOrigin => {
    if (own.has(name)) return "machine";
    return sentLabels(asked).has(name) ? "query" : "reported";
  };
  const origins = [...shown].map(([name, value]) => ({ name, value, origin: originOf(name) }));
  return { labels, origins, machines };
}

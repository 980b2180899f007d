/**
 * Makes the Group that one Machine gets: with the Machine's metadata over its own, and with the variable `machine`. It
 * caches the result, because the Group holds the rendered texts of the Machine.
 */

import { type BootGroup, toBootGroup } from "./known-documents.ts";
import type { BootMachine } from "./known-machines.ts";

/** With the texts of a small script, each takes 1 to 2 KiB. */
const maxGroups = 32_768;

interface Derived {
  readonly base: BootGroup;
  readonly group: BootGroup;
}

export class MachineGroups {
  #groups = new Map<BootMachine, Derived>();

  /** Returns the Group for the Machine: the same object until the Group or the Machine changes. */
  of(base: BootGroup, machine: BootMachine): BootGroup {
    const known = this.#groups.get(machine);
    if (known !== undefined && known.base === base) return known.group;
    // Texts that are dropped are made again on request.
    if (this.#groups.size >= maxGroups) this.#groups = new Map();
    const metadata = { ...base.metadata, ...machine.document.spec.metadata };
    const group = toBootGroup(base, base.profileId, { metadata, machine: machine.variable });
    this.#groups.set(machine, { base, group });
    return group;
  }
}

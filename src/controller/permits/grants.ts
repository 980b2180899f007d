/**
 * Remembers the grants of objects whose status shows whether they are open, and finds those that have opened or closed:
 * their `until` has passed, or the ledger has changed.
 */

import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import { grantRefusal, type InstallGrant, type LedgerView } from "../../model/permits/permit.ts";
import { namedGrant } from "./permitted.ts";

interface KnownGrant {
  readonly name: ObjectName;
  readonly grant: InstallGrant | undefined;
  readonly state: string;
}

export class Grants {
  readonly #ledger: LedgerView;
  readonly #known = new Map<string, KnownGrant>();

  constructor(ledger: LedgerView) {
    this.#ledger = ledger;
  }

  /** Records the grant that a status shows now. @param grant undefined for a status that shows that there is none. */
  note(name: ObjectName, grant: InstallGrant | undefined): void {
    this.#known.set(objectKey(name), { name, grant, state: this.#stateOf(name, grant) });
  }

  /** How many objects it remembers. */
  get size(): number {
    return this.#known.size;
  }

  forget(name: ObjectName): void {
    this.#known.delete(objectKey(name));
  }

  /** The objects whose status is no longer true. */
  changed(): readonly ObjectName[] {
    return [...this.#known.values()].flatMap(({ name, grant, state }) =>
      this.#stateOf(name, grant) === state ? [] : [name],
    );
  }

  /** Equal as long as the condition `Permitted` is equal. */
  #stateOf(name: ObjectName, grant: InstallGrant | undefined): string {
    const { id = "", isFull, trouble = "" } = this.#ledger;
    const named = namedGrant(name, grant ?? none);
    const why = grant === undefined ? "" : (grantRefusal(named, this.#ledger) ?? "open");
    return [id, why, isFull, trouble, this.#ledger.endedGeneration(named.key)].join("/");
  }
}

const none: InstallGrant = { generation: 0, scope: "NeverInstalled" };

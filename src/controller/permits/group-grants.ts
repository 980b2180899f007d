/** Adds the condition `Permitted` to the status of a Group that grants an install, or whose Profile installs. */

import type { GroupDocument } from "../../model/objects/documents.ts";
import { listedMacs } from "../../model/objects/group.ts";
import type { Condition, ObjectName, ObjectStatus } from "../../model/objects/source.ts";
import { withConditions } from "../status/conditions.ts";
import { Grants } from "./grants.ts";
import type { LedgerFacts } from "./ledger-facts.ts";
import { permittedCondition } from "./permitted.ts";

export class GroupGrants {
  readonly #ledger: LedgerFacts | undefined;
  readonly #grants: Grants | undefined;

  /** @param ledger undefined if there is none to look at: then no status has the condition. */
  constructor(ledger: LedgerFacts | undefined) {
    this.#ledger = ledger;
    this.#grants = ledger && new Grants(ledger);
  }

  /** Groups whose status is no longer true, because the ledger has changed or time has passed. */
  changed(): readonly ObjectName[] {
    return this.#grants?.changed() ?? [];
  }

  /**
   * The status of a Group with the condition. It does not count for `Ready`: grants end by themselves.
   * @param document undefined for a Group that answers no machine.
   * @param installs true if the Profile has an `install`.
   */
  shown(
    id: ObjectName,
    status: ObjectStatus | undefined,
    document: GroupDocument | undefined,
    installs: boolean,
  ): ObjectStatus | undefined {
    const grant = document?.spec.install;
    if (status === undefined || document === undefined || (grant === undefined && !installs)) {
      this.#grants?.forget(id);
      return status;
    }
    if (this.#ledger === undefined) return status;
    this.#grants?.note(id, grant);
    const isServed = document.refused !== true && document.outdated !== true;
    const condition = isServed ? permittedCondition(id, grant, this.#ledger) : notAccepted;
    return { ...status, conditions: withConditions(status.conditions, [withCards(condition, document)]) };
  }
}

/** A grant for a list of MAC addresses says that each address counts. */
function withCards(condition: Condition, { spec }: GroupDocument): Condition {
  if (condition.status !== "True" || listedMacs(spec).length === 0) return condition;
  const text = "Each MAC address of the list counts as a machine, unless one Machine lists several of them";
  return { ...condition, message: `${condition.message}. ${text}` };
}

const notAccepted: Condition = {
  type: "Permitted",
  status: "False",
  reason: "NotAccepted",
  message: "No machine installs until davit accepts the newest version of the Group",
};

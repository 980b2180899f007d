/**
 * The holds and withdrawn approvals of Machines that take effect before the first list is complete: they only make
 * machines wait. Pure.
 */

import { machinePath } from "../../model/objects/documents.ts";
import { encodeMachine } from "../../model/objects/machine.ts";
import type { ObjectName, SourceView } from "../../model/objects/source.ts";
import type { Documents, DocumentWrite } from "../core/documents.ts";

/** The writes for these names. */
export function earlyMachineHolds(
  names: readonly ObjectName[],
  view: Pick<SourceView, "get">,
  documents: Pick<Documents, "machine">,
): readonly DocumentWrite[] {
  return names.flatMap(({ kind, namespace, name }) => {
    if (kind !== "Machine") return [];
    const object = view.get("Machine", namespace, name);
    const stored = documents.machine(namespace, name);
    if (object === undefined || stored === undefined) return [];
    const hold = stored.spec.hold || object.spec.hold;
    const approved = stored.spec.approved && object.spec.approved;
    if (hold === stored.spec.hold && approved === stored.spec.approved) return [];
    const held = { ...stored, spec: { ...stored.spec, hold, approved } };
    return [{ path: machinePath(namespace, name), text: encodeMachine(held) }];
  });
}

/**
 * The parts of Groups that count before the first list is complete. While a namespace cannot be read at a start, a hold
 * or a narrower selector of another namespace must not wait for it. See `countingAtOnce`.
 */

import { countingAtOnce } from "../../model/at-once.ts";
import { groupPath } from "../../model/documents.ts";
import type { ObjectName, SourceView } from "../../model/source.ts";
import type { Documents, DocumentWrite } from "../core/documents.ts";
import { groupChanges } from "./reconcile-group.ts";

/** The writes that make machines of stored Groups wait. Everything else of these Groups comes with the first list. */
export function earlyHolds(
  names: readonly ObjectName[],
  view: Pick<SourceView, "get">,
  documents: Pick<Documents, "group" | "textAt">,
): readonly DocumentWrite[] {
  return names.flatMap(({ kind, namespace, name }) => {
    if (kind !== "Group") return [];
    const object = view.get("Group", namespace, name);
    const stored = documents.group(namespace, name);
    if (object === undefined || stored === undefined) return [];
    const counting = countingAtOnce({ ...object, spec: stored.spec }, object);
    const isHeld = counting?.kind === "Group" && counting.spec.hold;
    if (!isHeld || stored.spec.hold) return [];
    const path = groupPath(namespace, name);
    const held = { ...stored, spec: { ...stored.spec, hold: true } };
    return groupChanges(path, held, documents.textAt(path));
  });
}

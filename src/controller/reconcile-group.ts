/**
 * From a Group to its document. Selector, profileRef, priority and hold take effect at once, whatever its Profile is
 * like: a Group that selects a machine keeps it from falling to a less specific one. Pure.
 */

import { encodeDocument, type GroupDocument, groupPath } from "../model/documents.ts";
import { toGroup } from "../model/group.ts";
import type { GroupObject } from "../model/source.ts";
import { groupAdvice } from "./advice.ts";
import { conditionsFor, type Finding, type Outcome } from "./conditions.ts";

/** Brings a Group's document in line with its object; `document` is what it is then. */
export function reconcileGroup(
  object: GroupObject,
  stored: GroupDocument | undefined,
  profileExists: (namespace: string, name: string) => boolean,
): Outcome & { readonly document: GroupDocument } {
  const { namespace, name, generation } = object;
  const findings = findingsOf(object, profileExists);
  const advice = groupAdvice(object.spec);
  // A refused object replaces nothing that was accepted before.
  const keepsLastGood = object.refusal !== undefined && stored !== undefined && stored.refused !== true;
  const document = keepsLastGood ? stored : toDocument(object);
  const text = encodeDocument(document);
  const changed = stored === undefined || encodeDocument(stored) !== text;
  const { selectorText } = toGroup(namespace, name, document.spec);
  return {
    document,
    changes: changed ? [{ path: groupPath(namespace, name), text }] : [],
    status: {
      observedGeneration: generation,
      conditions: conditionsFor({ findings, sync: keepsLastGood ? "servingLastGood" : "synced", advice }),
      selector: document.spec.matchAll ? "<all>" : selectorText,
    },
  };
}

/** Removes the document of a Group that is gone. */
export function removeGroup(namespace: string, name: string, stored: GroupDocument | undefined): Outcome {
  const changes = stored === undefined ? [] : [{ path: groupPath(namespace, name), text: undefined }];
  return { changes, status: undefined };
}

function toDocument({ origin, uid, generation, spec, refusal }: GroupObject): GroupDocument {
  return { origin, uid, generation, spec, ...(refusal !== undefined && { refused: true }) };
}

function findingsOf(
  { refusal, namespace, spec }: GroupObject,
  profileExists: (namespace: string, name: string) => boolean,
): readonly Finding[] {
  if (refusal !== undefined) return [{ type: "Accepted", reason: "Refused", message: refusal }];
  if (profileExists(namespace, spec.profile)) return [];
  const message = `Profile "${spec.profile}" does not exist in namespace "${namespace}": its machines are answered 404`;
  return [{ type: "ResolvedRefs", reason: "ProfileNotFound", message }];
}

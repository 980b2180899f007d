/** Documents as the controller writes them, for tests of what reads them. */

import {
  encodeDocument,
  groupPath,
  profilePath,
  type SyncedDocument,
  syncedPath,
} from "../../src/model/objects/documents.ts";
import type { GroupSpec, GroupState } from "../../src/model/objects/group.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";

type Document = readonly [path: string, text: string];

const provenance = { origin: "test.yaml, document 1 (line 1)", uid: "u", generation: 1 };

export function groupSpec(spec: Partial<GroupSpec> = {}): GroupSpec {
  return { profile: "web", selector: {}, matchAll: false, priority: 0, hold: false, metadata: {}, ...spec };
}

/** `id` is `namespace/name`. */
export function groupDocument(id: string, spec: Partial<GroupSpec>, refused = false): Document {
  const [namespace = "", name = ""] = id.split("/");
  return [
    groupPath(namespace, name),
    encodeDocument({ ...provenance, spec: groupSpec(spec), ...(refused && { refused }) }),
  ];
}

/** `id` is `namespace/name`. */
export function profileDocument(id: string, content: Partial<ProfileContent> = {}): Document {
  const [namespace = "", name = ""] = id.split("/");
  return [
    profilePath(namespace, name),
    encodeDocument({ ...provenance, revision: "r", content: { displayName: name, templates: {}, ...content } }),
  ];
}

/** The same document, kept from before a newer version of its object was refused or not valid. */
export function outdated([path, text]: Document, state: Pick<GroupState, "flaw"> = {}): Document {
  return [path, JSON.stringify({ ...JSON.parse(text), outdated: true, ...state })];
}

export function syncedDocument(synced: Partial<SyncedDocument> = {}): Document {
  return [
    syncedPath,
    encodeDocument({ source: "directory", at: "2026-01-01T00:00:00.000Z", revision: "r", complete: true, ...synced }),
  ];
}

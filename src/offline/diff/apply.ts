/**
 * Finds the documents that davit would have after manifests were applied. It plans one step over the present documents,
 * as davit itself does. So a Profile that becomes invalid keeps its last good content, and claims stay.
 */

import { BootIndex } from "../../boot/selection/boot-index.ts";
import { objectAt, StoredDocuments } from "../../controller/core/stored-documents.ts";
import type { Planned } from "../../controller/step.ts";
import { encodeDocument, profilePath, type SyncedDocument, syncedPath } from "../../model/objects/documents.ts";
import { fieldOf, type ResolvedTemplate, type Templates } from "../../model/objects/profile.ts";
import { heldReason, holderOf, type ObjectName, objectKey, type SourceView } from "../../model/objects/source.ts";
import { type DocumentTexts, type LoadOptions, plannerOver } from "../load/load-manifests.ts";
import { AppliedView, type UnreadTemplate } from "./applied-view.ts";

export interface ApplyOptions extends Pick<LoadOptions, "log" | "adminNamespace"> {
  /** The present documents, as `comparable` returns them. */
  readonly before: DocumentTexts;
  /** The view of the manifests, without problems. */
  readonly manifests: Pick<SourceView, "all" | "get">;
  /** True if objects stay that the manifests do not define. */
  readonly isPartial: boolean;
}

/** An object whose newest version davit would not serve, or not serve completely. */
export interface UnreadyObject {
  /** Such as `Profile racks/web`. */
  readonly object: string;
  readonly reason: string;
  readonly message: string;
}

/** A template whose text cannot be compared. */
export interface UncheckedText extends Pick<UnreadTemplate, "why"> {
  /** Such as `Profile racks/web, spec.ignition`. */
  readonly field: string;
  /** Such as `Secret racks/tls`. */
  readonly holder: string;
  /** True if it is compared as the text of now, so that no difference is shown. */
  readonly isAsNow: boolean;
}

export interface AppliedManifests {
  readonly documents: DocumentTexts;
  readonly unready: readonly UnreadyObject[];
  readonly unchecked: readonly UncheckedText[];
}

// A step rarely needs a second one. The limit ends a plan that never comes to rest.
const maxSteps = 10;

/** The source of a document in a cluster (`ObjectMeta.origin`). */
const clusterOrigin = "cluster";

/**
 * Returns the documents by which machines are answered when nothing moves: without tombstones, which end soon, and
 * without the texts of Secrets.
 */
export function comparable(documents: Iterable<readonly [path: string, text: string]>): DocumentTexts {
  const mark: SyncedDocument = { source: "", at: "", revision: "", complete: true };
  const known = new StoredDocuments(() => 0);
  known.replaced(documents);
  return [...known.contents(), [syncedPath, encodeDocument(mark)]];
}

/** Returns the path of a document that this davit cannot read, such as one of a later davit; undefined for none. */
export function unreadablePath(documents: DocumentTexts): string | undefined {
  const unreadable: unknown[] = [];
  const index = new BootIndex({ log: { error: (fields: object) => unreadable.push(...Object.values(fields)) } });
  index.replaced(documents);
  return unreadable.length === 0 ? undefined : String(unreadable[0]);
}

/** Returns the documents after manifests were applied. */
export function applied({ before, manifests, isPartial, log, adminNamespace }: ApplyOptions): AppliedManifests {
  // Every claim that is made now is younger than those of the present documents.
  const stored = new StoredDocuments(() => Number.MAX_SAFE_INTEGER);
  stored.replaced(before);
  const defines = ({ kind, namespace, name }: ObjectName) => manifests.get(kind, namespace, name) !== undefined;
  const isOfCluster = ({ kind, namespace, name }: ObjectName) =>
    kind === "Machine" && stored.machine(namespace, name)?.origin === clusterOrigin;
  const keeps = (name: ObjectName) => !defines(name) && (isPartial || isOfCluster(name));
  const view = new AppliedView({ manifests, stored, keeps });
  const planned = planAll(stored, { view, keeps, log, adminNamespace });
  const unchecked = putUnread(stored, before, view.unread);
  const kept = before.filter(([path]) => {
    const name = objectAt(path);
    return name !== undefined && keeps(name);
  });
  stored.changed(kept.map(([path, text]) => ({ path, text })));
  return { documents: comparable(stored.contents()), unready: planned.flatMap(unreadyObject), unchecked };
}

/** Plans steps until nothing is left to look at, and applies them to `stored`. */
function planAll(
  stored: StoredDocuments,
  {
    view,
    keeps,
    ...options
  }: Pick<ApplyOptions, "log" | "adminNamespace"> & {
    readonly view: AppliedView;
    readonly keeps: (name: ObjectName) => boolean;
  },
): readonly Planned[] {
  const planner = plannerOver(stored, { view, ...options });
  planner.begin();
  const planned = new Map<string, Planned>();
  let names = planner.names();
  for (let count = 0; count < maxSteps && names.length > 0; count++) {
    const step = planner.plan(names.filter((name) => !keeps(name)));
    for (const each of step.planned) planned.set(objectKey(each.name), each);
    const isAtRest = step.writes.length === 0;
    stored.changed(step.writes);
    names = isAtRest ? [] : step.alsoLookAt;
  }
  return [...planned.values()];
}

/** Puts the templates of now in the place of those that could not be read. */
function putUnread(
  stored: StoredDocuments,
  before: DocumentTexts,
  unread: readonly UnreadTemplate[],
): readonly UncheckedText[] {
  const earlier = new StoredDocuments(() => 0);
  earlier.replaced(before);
  return unread.map((each) => {
    const { namespace, name } = each.profile;
    const template = stoodInFor(each, earlier.profile(namespace, name).document?.content.templates ?? {});
    const { document } = stored.profile(namespace, name);
    // An older version still has its own templates.
    if (document !== undefined && document.outdated !== true) {
      const templates = { ...document.content.templates, [each.part]: template };
      const text = encodeDocument({ ...document, content: { ...document.content, templates } });
      stored.changed([{ path: profilePath(namespace, name), text }]);
    }
    const { kind, name: holder } = holderOf(each.source, namespace);
    return {
      why: each.why,
      field: `Profile ${namespace}/${name}, spec.${fieldOf(each.part)}`,
      holder: `${kind} ${namespace}/${holder}`,
      isAsNow: template.kind === "text" || (template.kind === "secret" && template.sha256 !== ""),
    };
  });
}

/** Returns the template to compare instead of one that could not be read: the present one, if it may be the same. */
function stoodInFor({ part, source }: UnreadTemplate, known: Readonly<Templates<ResolvedTemplate>>): ResolvedTemplate {
  const before: ResolvedTemplate | undefined = known[part];
  const { raw, format } = source;
  const serving = { raw, ...(format && { format }) };
  if (source.kind === "configMap") {
    return before?.kind === "text" ? { kind: "text", text: before.text, ...serving } : { kind: "broken" };
  }
  const { kind, name, key, duringInstall } = source;
  const isSame = before?.kind === "secret" && before.name === name && before.key === key;
  return {
    kind,
    name,
    key,
    sha256: isSame ? before.sha256 : "",
    ...(duringInstall && { duringInstall }),
    ...serving,
  };
}

function unreadyObject({ name, status }: Planned): readonly UnreadyObject[] {
  const ready = status?.conditions.find(({ type }) => type === "Ready");
  if (ready === undefined || ready.status === "True" || ready.reason === heldReason) return [];
  const { kind, namespace } = name;
  return [{ object: `${kind} ${namespace}/${name.name}`, reason: ready.reason, message: ready.message }];
}

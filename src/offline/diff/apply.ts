/**
 * Finds the documents that davit would have after manifests were applied. It plans one step over the present documents,
 * as davit itself does. So a Profile that becomes invalid keeps its last good content, and claims stay.
 */

import { BootIndex } from "../../boot/selection/boot-index.ts";
import { objectAt, StoredDocuments } from "../../controller/core/stored-documents.ts";
import { readSecret } from "../../controller/reconcile/resolve-profile.ts";
import type { Planned } from "../../controller/step.ts";
import { encodeDocument, profilePath, type SyncedDocument, syncedPath } from "../../model/objects/documents.ts";
import {
  fieldOf,
  isDigest,
  isOfSecret,
  partsOf,
  type ResolvedTemplate,
  type TemplatePart,
  type TemplateSource,
  type Templates,
} from "../../model/objects/profile.ts";
import {
  heldReason,
  holderOf,
  isOwnKind,
  type ObjectKind,
  type ObjectName,
  objectKey,
  type ProfileObject,
  type SourceObject,
  type SourceView,
} from "../../model/objects/source.ts";
import { type DocumentTexts, type LoadOptions, plannerOver, sha256 } from "../load/load-manifests.ts";

interface ApplyOptions extends Pick<LoadOptions, "log" | "adminNamespace"> {
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

interface AppliedManifests {
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

/** A template whose text cannot be compared. */
interface UnreadTemplate {
  readonly why: "absent" | "noDigest";
  readonly profile: ObjectName;
  readonly part: TemplatePart;
  readonly source: Exclude<TemplateSource, { kind: "inline" }>;
}

interface AppliedViewOptions {
  /** The view of the manifests. It is complete and refuses nothing. */
  readonly manifests: Pick<SourceView, "all" | "get">;
  readonly stored: StoredDocuments;
  /** True for a stored object that stays although the manifests do not define it. */
  readonly keeps: (name: ObjectName) => boolean;
}

const kinds: readonly ObjectKind[] = ["Profile", "Group", "Machine", "ConfigMap", "Secret"];

/**
 * Shows manifests as the source that davit would read after they were applied, beside the objects that davit has now:
 *
 * - Each object has the uid of its stored document, because applying a manifest changes the object and does not
 *   replace it.
 * - An object stays that the manifests do not define, if `keeps` says so.
 * - A template whose text cannot be compared is left out: its ConfigMap or Secret is not among the manifests, or what
 *   davit has now shows no digest of it. `unread` lists these templates: `apply.ts` puts those of now in their place.
 */
class AppliedView implements SourceView {
  readonly complete = true;
  readonly isHalf = false;
  readonly problems = [];
  readonly refusals = [];
  readonly unheard: ReadonlySet<string> = new Set();
  readonly withheld = [];
  readonly unread: readonly UnreadTemplate[];
  readonly #objects = new Map<string, SourceObject>();
  readonly #keeps: AppliedViewOptions["keeps"];

  constructor({ manifests, stored, keeps }: AppliedViewOptions) {
    this.#keeps = keeps;
    const unread: UnreadTemplate[] = [];
    for (const kind of kinds) {
      for (const object of manifests.all(kind)) {
        const own = withStoredUid(object, stored);
        const known = own.kind === "Profile" ? withoutUnread(own, { manifests, stored }, unread) : own;
        this.#objects.set(objectKey(known), known);
      }
    }
    this.unread = unread;
  }

  refusalOf(): undefined {
    return undefined;
  }

  /** False for a ConfigMap or Secret: manifests need not have them. */
  isGone(name: ObjectName): boolean {
    return isOwnKind(name.kind) && !this.#objects.has(objectKey(name)) && !this.#keeps(name);
  }

  get<Kind extends ObjectKind>(
    kind: Kind,
    namespace: string,
    name: string,
  ): Extract<SourceObject, { kind: Kind }> | undefined {
    const object = this.#objects.get(objectKey({ kind, namespace, name }));
    return object !== undefined && isOf(kind, object) ? object : undefined;
  }

  *all<Kind extends ObjectKind>(kind: Kind): Iterable<Extract<SourceObject, { kind: Kind }>> {
    for (const object of this.#objects.values()) if (isOf(kind, object)) yield object;
  }
}

function isOf<Kind extends ObjectKind>(
  kind: Kind,
  object: SourceObject,
): object is Extract<SourceObject, { kind: Kind }> {
  return object.kind === kind;
}

function withStoredUid<Shown extends SourceObject>(object: Shown, stored: StoredDocuments): Shown {
  const document = storedOf(object, stored);
  if (document === undefined) return object;
  // With the generation of now, davit would take a change of the selector for a fault of the API server.
  return { ...object, uid: document.uid, generation: document.generation + 1 };
}

function storedOf({ kind, namespace, name }: ObjectName, stored: StoredDocuments) {
  switch (kind) {
    case "Profile":
      return stored.profile(namespace, name).document;
    case "Group":
      return stored.group(namespace, name);
    case "Machine":
      return stored.machine(namespace, name);
    default:
      return undefined;
  }
}

/** Returns a Profile without the templates that cannot be compared. Adds them to `unread`. */
function withoutUnread(
  profile: ProfileObject,
  { manifests, stored }: Omit<AppliedViewOptions, "keeps">,
  unread: UnreadTemplate[],
): ProfileObject {
  const known = stored.profile(profile.namespace, profile.name).document?.content.templates ?? {};
  const templates = { ...profile.spec.templates };
  for (const part of partsOf(templates)) {
    const source = templates[part];
    if (source === undefined || source.kind === "inline") continue;
    const holder = holderOf(source, profile.namespace);
    const isThere = manifests.get(holder.kind, holder.namespace, holder.name) !== undefined;
    const now = known[part];
    const hasDigest = source.kind !== "secret" || !isOfSecret(now) || isDigest(now.sha256);
    if (isThere && hasDigest) continue;
    unread.push({ why: isThere ? "noDigest" : "absent", profile, part, source });
    delete templates[part];
  }
  return { ...profile, spec: { ...profile.spec, templates } };
}

/** Returns the SHA-256 of each template that has its text from a Secret, by `namespace/profile/part`. */
export function secretDigests(view: Pick<SourceView, "all" | "get">): Readonly<Record<string, string>> {
  const world = {
    secret: (namespace: string, name: string) => view.get("Secret", namespace, name),
    isForbidden: () => false,
  };
  const digests: Record<string, string> = {};
  for (const { namespace, name, spec } of view.all("Profile")) {
    for (const part of partsOf(spec.templates)) {
      const source = spec.templates[part];
      const found = source?.kind === "secret" ? readSecret(source, namespace, world) : undefined;
      if (found === undefined || "fault" in found) continue;
      digests[`${namespace}/${name}/${part}`] = sha256(found.text);
    }
  }
  return digests;
}

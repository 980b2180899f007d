/**
 * Shows manifests as the source that davit would read after they were applied, beside the objects that davit has now:
 *
 * - Each object has the uid of its stored document, because applying a manifest changes the object and does not
 *   replace it.
 * - An object stays that the manifests do not define, if `keeps` says so.
 * - A template whose text cannot be compared is left out: its ConfigMap or Secret is not among the manifests, or what
 *   davit has now shows no digest of it. `unread` lists these templates: `apply.ts` puts those of now in their place.
 */

import type { StoredDocuments } from "../../controller/core/stored-documents.ts";
import { isDigest, isOfSecret, partsOf, type TemplatePart, type TemplateSource } from "../../model/objects/profile.ts";
import {
  holderOf,
  isOwnKind,
  type ObjectKind,
  type ObjectName,
  objectKey,
  type ProfileObject,
  type SourceObject,
  type SourceView,
} from "../../model/objects/source.ts";

/** A template whose text cannot be compared. */
export interface UnreadTemplate {
  readonly why: "absent" | "noDigest";
  readonly profile: ObjectName;
  readonly part: TemplatePart;
  readonly source: Exclude<TemplateSource, { kind: "inline" }>;
}

export interface AppliedViewOptions {
  /** The view of the manifests. It is complete and refuses nothing. */
  readonly manifests: Pick<SourceView, "all" | "get">;
  readonly stored: StoredDocuments;
  /** True for a stored object that stays although the manifests do not define it. */
  readonly keeps: (name: ObjectName) => boolean;
}

const kinds: readonly ObjectKind[] = ["Profile", "Group", "Machine", "ConfigMap", "Secret"];

export class AppliedView implements SourceView {
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

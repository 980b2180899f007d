/**
 * Makes a Profile's documents, and keeps the last good content while the new content is not usable. Pure: it reads the
 * world through `ProfileWorld` and returns the changes.
 */

import type { DocumentChange } from "../../model/feed.ts";
import { encodeDocument, type ProfileDocument, profilePath, secretPath } from "../../model/objects/documents.ts";
import { failedContent } from "../../model/objects/gated-profile.ts";
import {
  endpointOf,
  installs,
  type ProfileCaution,
  type ProfileContent,
  partsOf,
  type ResolvedTemplate,
  type SecretTemplate,
} from "../../model/objects/profile.ts";
import type { ObjectMeta, ObjectName, ProfileObject, Refusal } from "../../model/objects/source.ts";
import type { StoredProfile } from "../core/stored-documents.ts";
import {
  conditionsFor,
  type Findings,
  failedStatus,
  type Outcome,
  refusedStatus,
  type SyncState,
} from "../status/conditions.ts";
import { profileAdvice } from "./advice.ts";
import { type ProfileWorld, readSecret, resolveProfile } from "./resolve-profile.ts";

/**
 * Brings a Profile's documents in line with its object.
 * @param newest set if the newest version is refused or gone; then `object` is the previous version.
 */
export function reconcileProfile(
  object: ProfileObject,
  stored: StoredProfile,
  world: ProfileWorld,
  newest?: { readonly caution: ProfileCaution | undefined },
): Outcome {
  const resolved = resolveProfile(object, world);
  const { content, secretTexts } = resolved;
  const { origin, uid, generation, namespace } = object;
  const revision = world.sha256(JSON.stringify([object.spec, content]));
  const lastGood = lastGoodOf(stored, uid);
  const isNew = lastGood !== undefined && lastGood.revision !== revision && resolved.findings.length === 0;
  const findings = isNew ? (world.losses?.(object, resolved, lastGood) ?? []) : resolved.findings;
  const keepsLastGood = findings.length > 0 && lastGood !== undefined;
  const known = keepsLastGood
    ? cautious(withoutWithdrawn(lastGood, namespace, world), cautionIn(object), world)
    : { origin, uid, generation, revision, content };
  const document = newest !== undefined || findings.length > 0 ? asOutdated(known) : known;
  const wanted = cautious(document, newest?.caution, world);
  const sync = keepsLastGood ? syncOfKept(wanted.content) : "synced";
  const reported: Findings = { findings, sync, advice: profileAdvice(object.spec) };
  return {
    changes: documentChanges(object, wanted, stored, secretTexts),
    status: { observedGeneration: generation, conditions: conditionsFor(reported), configs: configsText(object) },
    reported,
    content: wanted.content,
    isOlder: keepsLastGood,
  };
}

/** The outcome if the view has only a refused version of a Profile: the stored content stays, or its machines wait. */
export function refuseProfile(refusal: Refusal, stored: StoredProfile, world: ProfileWorld): Outcome {
  const kept = keptOf(refusal, refusal.caution, stored, world);
  return {
    changes: documentChanges(refusal, kept ?? standIn(refusal), stored, new Map()),
    status: refusedStatus(refusal, kept === undefined ? "notServed" : syncOfKept(kept.content)),
    isOlder: kept !== undefined,
  };
}

/**
 * The outcome of a pending Profile. If the stored content is of this object, it stays. It may be older than the newest
 * version of the Profile or of its references, so it installs no machine. Stored content of an earlier object of this
 * name is replaced, and the Profile's machines wait.
 */
export function awaitProfile(pending: ProfileObject, stored: StoredProfile, world: ProfileWorld): Outcome {
  const kept = keptOf(pending, cautionIn(pending), stored, world);
  return { changes: documentChanges(pending, kept ?? standIn(pending), stored, new Map()), status: undefined };
}

/**
 * The outcome of a Profile on which davit failed: its last good content, or a document that makes its machines wait.
 * They must not boot from content that was never valid as a whole.
 */
export function failProfile(object: ObjectMeta, stored: StoredProfile, world: ProfileWorld): Outcome {
  const { namespace, uid, generation } = object;
  const lastGood = lastGoodOf(stored, uid);
  const document = lastGood === undefined ? standIn(object) : asOutdated(withoutWithdrawn(lastGood, namespace, world));
  return {
    changes: documentChanges(object, document, stored, new Map()),
    status: failedStatus(generation, isServed(document)),
    isOlder: lastGood !== undefined,
  };
}

/**
 * The outcome if `failProfile` throws, too. A stored document of this object stays. Otherwise a document that makes
 * machines wait replaces what is stored.
 */
export function abandonProfile(object: ObjectMeta, stored: StoredProfile): Outcome {
  const isStored = stored.document !== undefined && stored.document.uid === object.uid;
  return {
    changes: isStored ? [] : documentChanges(object, standIn(object), stored, new Map()),
    status: failedStatus(object.generation, isStored && isServed(stored.document)),
  };
}

/** The outcome of a Profile that may be gone: its stored content stays, but is marked as outdated. */
export function doubtProfile(name: ObjectName, stored: StoredProfile): Outcome {
  const { document } = stored;
  const changes = document === undefined ? [] : documentChanges(name, asOutdated(document), stored, new Map());
  return { changes, status: undefined };
}

/** The sync state of a Profile that keeps older content. An older version installs no machine, so the machines wait. */
export function syncOfKept(content: ProfileContent | undefined): SyncState {
  return content !== undefined && installs(content) ? "waiting" : "servingLastGood";
}

function isServed({ content, failed, outdated }: ProfileDocument): boolean {
  return failed !== true && !(outdated === true && installs(content));
}

function asOutdated(document: ProfileDocument): ProfileDocument {
  return { ...document, outdated: true };
}

/** A document that makes machines wait. */
function standIn({ origin, uid, generation, name }: ObjectMeta): ProfileDocument {
  return { origin, uid, generation, revision: "", content: failedContent(name), failed: true };
}

/** Removes all stored documents of a Profile that is gone. */
export function removeProfile(namespace: string, name: string, stored: StoredProfile): Outcome {
  const secrets = [...stored.secrets.keys()].map((text) => ({
    path: secretPath(namespace, name, text),
    text: undefined,
  }));
  const document = { path: profilePath(namespace, name), text: undefined };
  const changes = stored.document === undefined ? secrets : [document, ...secrets];
  return { changes, status: undefined, isOlder: false };
}

/**
 * The changes to a Profile's documents, in order. A secret's text is written before the document that names it. It is
 * removed after the new document, which no longer names it, is written.
 */
function documentChanges(
  { namespace, name }: Pick<ObjectName, "namespace" | "name">,
  given: ProfileDocument,
  stored: StoredProfile,
  newTexts: ReadonlyMap<string, string>,
): readonly DocumentChange[] {
  const { document, secretTexts } = rekeyed(given, stored, newTexts);
  const wanted = secretNames(document.content);
  const changes: DocumentChange[] = [];
  for (const secret of wanted) {
    const text = secretTexts.get(secret);
    if (text !== undefined && stored.secrets.get(secret)?.isReadable !== true) {
      changes.push({ path: secretPath(namespace, name, secret), text });
    }
  }
  const text = encodeDocument(document);
  if (stored.document === undefined || encodeDocument(stored.document) !== text) {
    changes.push({ path: profilePath(namespace, name), text });
  }
  for (const secret of stored.secrets.keys()) {
    if (!wanted.has(secret)) changes.push({ path: secretPath(namespace, name, secret), text: undefined });
  }
  return changes;
}

/**
 * Gives the texts of an older version the names that they get now. The source may no longer have these texts, so they
 * come from the store. Without this, a key would stay in use as long as the older version does.
 */
function rekeyed(
  document: ProfileDocument,
  { secrets }: StoredProfile,
  newTexts: ReadonlyMap<string, string>,
): { readonly document: ProfileDocument; readonly secretTexts: ReadonlyMap<string, string> } {
  const templates = { ...document.content.templates };
  const secretTexts = new Map(newTexts);
  for (const part of partsOf(templates)) {
    const template = templates[part];
    if (template?.kind !== "secret" || newTexts.has(template.sha256)) continue;
    const found = secrets.get(template.sha256)?.read();
    if (found === undefined || found.name === template.sha256) continue;
    templates[part] = { ...template, sha256: found.name };
    secretTexts.set(found.name, found.text);
  }
  const isSame = secretTexts.size === newTexts.size;
  return isSame
    ? { document, secretTexts }
    : { document: { ...document, content: { ...document.content, templates } }, secretTexts };
}

/**
 * Makes an older version as safe as the newest version, even if the newest version is otherwise not usable. If the
 * newest version boots machines from their disk, so does the result. If the newest version has the effect `Install`, so
 * has the result, and its machines wait. If the newest version demands HTTPS, so does the result.
 */
function cautious(
  older: ProfileDocument,
  { requireTls, ...ofDisks }: ProfileCaution = {},
  world: Pick<ProfileWorld, "sha256">,
): ProfileDocument {
  const safe = cautiousOfDisks(older, ofDisks, world);
  if (requireTls !== true || safe.content.requireTls === true) return safe;
  const revision = world.sha256(JSON.stringify([safe.revision, "requireTls"]));
  return { ...safe, revision, content: { ...safe.content, requireTls } };
}

function cautiousOfDisks(
  older: ProfileDocument,
  { local, isInstall }: Omit<ProfileCaution, "requireTls">,
  { sha256 }: Pick<ProfileWorld, "sha256">,
): ProfileDocument {
  const { boot, grubScript, effect, ...content } = older.content;
  const isLocal = boot?.kind === "local" && boot.local === local && grubScript === undefined;
  const isNewLocal = local !== undefined && !isLocal;
  const isNewInstall = isInstall === true && effect !== "Install";
  if (!isNewLocal && !isNewInstall) return older;
  const revision = sha256(JSON.stringify([older.revision, local, isInstall]));
  const own = isNewLocal
    ? { boot: { kind: "local", local } as const }
    : { ...(boot && { boot }), ...(grubScript && { grubScript }) };
  const mark = isInstall === true ? "Install" : effect;
  return { ...older, revision, content: { ...content, ...(mark && { effect: mark }), ...own } };
}

function cautionIn({ spec: { boot, effect, install, requireTls } }: ProfileObject): ProfileCaution {
  const isInstall = effect === "Install" || install !== undefined;
  const local = boot?.kind === "local" && { local: boot.local };
  return { ...local, ...(isInstall && { isInstall }), ...(requireTls && { requireTls }) };
}

/** What is stored of an object, as far as it may stay while its newest version cannot be used. */
function keptOf(
  { uid, namespace }: ObjectMeta,
  caution: ProfileCaution | undefined,
  { document }: StoredProfile,
  world: ProfileWorld,
): ProfileDocument | undefined {
  if (document?.uid !== uid || document.failed === true) return undefined;
  return cautious(asOutdated(withoutWithdrawn(document, namespace, world)), caution, world);
}

/** The last good content, without the parts whose Secret was withdrawn. */
function withoutWithdrawn(document: ProfileDocument, namespace: string, world: ProfileWorld): ProfileDocument {
  const templates = { ...document.content.templates };
  for (const part of partsOf(templates)) {
    const template = templates[part];
    if (template?.kind === "secret" && isWithdrawn(template, namespace, world)) {
      templates[part] = { kind: "broken", withdrawn: true };
    }
  }
  return { ...document, content: { ...document.content, templates } };
}

/**
 * True if the Secret is gone, or no longer allows its use as a template. A Secret that is not in view now is not
 * withdrawn: its file may be unreadable.
 */
function isWithdrawn(template: SecretTemplate, namespace: string, world: ProfileWorld): boolean {
  const isGone = world.isGone({ kind: "Secret", namespace, name: template.name });
  const isKnown = isGone || world.secret(namespace, template.name) !== undefined;
  return isKnown && "fault" in readSecret(template, namespace, world);
}

/** The last good content of the object with this uid. A removed object of the same name does not count. */
function lastGoodOf({ document }: StoredProfile, uid: string): ProfileDocument | undefined {
  return document?.uid === uid && isWhole(document.content) ? document : undefined;
}

/** True for content that was valid when it was written. */
function isWhole({ boot, templates }: ProfileContent): boolean {
  const spoilt = (template: ResolvedTemplate) => template.kind === "broken" && template.withdrawn !== true;
  return boot?.kind !== "broken" && !Object.values(templates).some(spoilt);
}

function secretNames({ templates }: ProfileContent): ReadonlySet<string> {
  return new Set(Object.values(templates).flatMap((template) => (template.kind === "secret" ? [template.sha256] : [])));
}

function configsText({ spec }: ProfileObject): string {
  const parts = partsOf(spec.templates).map(endpointOf);
  const own = spec.grubScript === undefined ? [] : ["grub"];
  return [...(spec.boot === undefined ? [] : ["ipxe"]), ...own, ...parts].join(",");
}

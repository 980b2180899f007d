/**
 * A Profile and its Groups as pairs. davit does not take over a newer version of either if a Group that had all its
 * configs would lose one to an undefined variable, whatever its machines ask. Then the Profile keeps its last good
 * content as a whole, or the Group keeps its last good metadata and arguments. Both are tried together first: a
 * variable that is renamed on both sides changes in one step.
 *
 * It compares names and renders nothing, so thousands of Groups take milliseconds. What it does not find is left to
 * the trials (`trials.ts`), which come after the step.
 */

import type { GroupDocument, ProfileDocument } from "../model/documents.ts";
import { profilePath } from "../model/documents.ts";
import { implies, selectionOf } from "../model/implication.ts";
import type { ProfileContent } from "../model/profile.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/source.ts";
import { RenderBudget, TooLongHere } from "../render/template-limits.ts";
import type { Finding } from "./conditions.ts";
import type { Documents } from "./documents.ts";
import { type GroupDraft, lastAccepted } from "./draft-group.ts";
import { addTo } from "./names.ts";
import { type Lack, NeedsReader, ProfileNeeds, type Renderable } from "./profile-needs.ts";

export interface PairsOptions {
  readonly view: () => Pick<SourceView, "get">;
  readonly documents: Pick<Documents, "profile" | "group" | "textAt">;
  readonly sha256: (text: string) => string;
  /** The Groups that name a Profile. */
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
}

/** What a Profile's new content comes to. */
export interface NewContent {
  readonly content: ProfileContent;
  /** Texts of its secret templates by their hash. */
  readonly secretTexts: ReadonlyMap<string, string>;
}

/** A Group on its way to the store. */
interface PairedGroup {
  readonly id: ObjectName;
  readonly stored: GroupDocument | undefined;
  /** Undefined for one that is gone, or out of view for now. */
  readonly draft: GroupDraft | undefined;
  /** What the store should have of it. */
  readonly document: GroupDocument | undefined;
}

type Settled = Pick<PairedGroup, "draft" | "document">;

// Some 50 ms: as long as everybody may wait. What is left over is left to the trials.
const profileWork = 1_000_000;
const groupWork = 100_000;
// A message is for a person, who mends the first ones and looks again.
const maxFindings = 10;

/** By the key of a Profile, of a Group. */
type ByProfile<Value> = Map<string, Map<string, Value>>;

export class Pairs {
  readonly #options: PairsOptions;
  readonly #reader: NeedsReader;
  /** Groups for which the newest version of their Profile is not taken over, and what it would cost them. */
  readonly #harmed: ByProfile<{ readonly name: ObjectName; readonly lack: Lack }> = new Map();
  /** Groups with metadata of an older version. */
  readonly #kept: ByProfile<ObjectName> = new Map();
  /** Groups of Profiles that install, which lack a part of theirs. */
  readonly #flawed: ByProfile<ObjectName> = new Map();
  /** Of stored Profiles, by the text of their documents. */
  readonly #needs = new Map<string, { readonly text: string; readonly needs: ProfileNeeds }>();

  constructor(options: PairsOptions) {
    this.#options = options;
    this.#reader = new NeedsReader(options);
  }

  /** Adds what may only change in one step with these: Groups to their Profile, and the Profile to a Group. */
  addBound(names: ReadonlyMap<string, ObjectName>, add: (name: ObjectName) => void): void {
    // Those that are added are looked at as well.
    for (const name of names.values()) {
      if (name.kind === "Profile") for (const group of this.#kept.get(objectKey(name))?.values() ?? []) add(group);
      if (name.kind !== "Group") continue;
      const profile = this.#profileOf(name);
      if (profile !== undefined && this.#harmed.has(objectKey(profile))) add(profile);
    }
  }

  /**
   * Why a Profile's new content is not taken over: nothing, if no Group loses a config by it.
   * @param before its last good content.
   */
  judge(profile: ObjectName, next: NewContent, before: ProfileDocument): readonly Finding[] {
    const key = objectKey(profile);
    const harmed = this.#harmedBy(profile, this.#needsOf(profile, next), this.#needsOf(profile, before));
    if (harmed.size === 0) return [];
    this.#harmed.set(key, harmed);
    return profileFindings([...harmed.values()]);
  }

  /**
   * Looks at a Profile anew.
   * @param concerned gains the Groups whose newest version of the Profile is, or was, not taken over.
   */
  judging<Result>(profile: ObjectName, concerned: Map<string, ObjectName>, look: () => Result): Result {
    const key = objectKey(profile);
    const note = () => {
      for (const { name } of this.#harmed.get(key)?.values() ?? []) addTo(concerned, name);
    };
    note();
    this.#harmed.delete(key);
    const result = look();
    note();
    return result;
  }

  /**
   * Brings a Group's document and status in line with its Profile.
   * @param contents of the Profiles that this step changes, by their keys; else what is stored counts.
   */
  settle(pair: PairedGroup, contents: ReadonlyMap<string, ProfileContent>): Settled {
    const { id, draft, document } = pair;
    if (draft === undefined || document === undefined) return { draft, document };
    const profile: ObjectName = { kind: "Profile", namespace: id.namespace, name: document.spec.profile };
    const needs = this.#currentNeeds(profile, contents.get(objectKey(profile)));
    const kept = document.refused === true ? undefined : keep(pair, document, needs);
    const settled = kept?.document ?? document;
    const isFlawed = needs?.isInstall === true && lacksOf(needs, settled.spec).length > 0;
    note(this.#kept, profile, id, kept !== undefined);
    note(this.#flawed, profile, id, isFlawed);
    const harm = this.#harmed.get(objectKey(profile))?.get(objectKey(id));
    const findings = [
      ...draft.findings,
      ...(harm === undefined ? [] : [harmFinding(profile, harm.lack)]),
      ...(kept === undefined ? [] : [keptFinding(profile, kept.lack)]),
    ];
    const sync = kept !== undefined && draft.sync === "synced" ? "servingLastGood" : draft.sync;
    return {
      document: isFlawed ? { ...settled, outdated: true } : settled,
      draft: { ...draft, sync, findings },
    };
  }

  /** The Groups whose documents change with new content of their Profile: an Install waits that lacks a part. */
  doubted(profile: ObjectName, content: ProfileContent): readonly ObjectName[] {
    const flawed = this.#flawed.get(objectKey(profile));
    if (content.effect !== "Install") return [...(flawed?.values() ?? [])];
    const needs = this.#needsOf(profile, { content });
    const budget = new RenderBudget(profileWork);
    return [...this.#options.groupsOf(profile)].filter((name) => {
      const spec = this.#options.view().get("Group", name.namespace, name.name)?.spec;
      const isFlawed = spec !== undefined && lacksOf(needs, spec, budget).length > 0;
      return isFlawed !== (flawed?.has(objectKey(name)) === true);
    });
  }

  #harmedBy(profile: ObjectName, next: ProfileNeeds, before: ProfileNeeds) {
    const harmed = new Map<string, { readonly name: ObjectName; readonly lack: Lack }>();
    const budget = new RenderBudget(profileWork);
    try {
      for (const name of this.#options.groupsOf(profile)) {
        const lack = this.#harmOf(name, next, before, budget);
        if (lack !== undefined) harmed.set(objectKey(name), { name, lack });
      }
    } catch (error) {
      if (!(error instanceof TooLongHere)) throw error;
    }
    return harmed;
  }

  /** What a Group that had it loses by new content, with its newest metadata and with the last good one. */
  #harmOf(id: ObjectName, next: ProfileNeeds, before: ProfileNeeds, budget: RenderBudget): Lack | undefined {
    const { view, documents } = this.#options;
    const newest = view().get("Group", id.namespace, id.name)?.spec;
    const lacks = newest === undefined ? [] : next.lacks(newest, budget);
    if (newest === undefined || lacks.length === 0) return undefined;
    const document = documents.group(id.namespace, id.name);
    const stored = document && lastAccepted(document)?.spec;
    if (stored === undefined || stored.profile !== newest.profile) return undefined;
    const known = partsOf(before.lacks(stored, budget));
    const [lost] = without(lacks, known);
    return lost !== undefined && without(next.lacks(mixed(newest, stored), budget), known).length > 0
      ? lost
      : undefined;
  }

  #profileOf({ namespace, name }: ObjectName): ObjectName | undefined {
    const spec =
      this.#options.view().get("Group", namespace, name)?.spec ?? this.#options.documents.group(namespace, name)?.spec;
    return spec && { kind: "Profile", namespace, name: spec.profile };
  }

  #currentNeeds(profile: ObjectName, content: ProfileContent | undefined): ProfileNeeds | undefined {
    if (content !== undefined) return this.#needsOf(profile, { content });
    const { namespace, name } = profile;
    const key = objectKey(profile);
    const text = this.#options.documents.textAt(profilePath(namespace, name));
    const known = this.#needs.get(key);
    if (text === undefined) {
      this.#needs.delete(key);
      return undefined;
    }
    if (known?.text === text) return known.needs;
    const stored = this.#options.documents.profile(namespace, name).document;
    if (stored === undefined) return undefined;
    const needs = this.#needsOf(profile, stored);
    this.#needs.set(key, { text, needs });
    return needs;
  }

  #needsOf(
    { namespace }: ObjectName,
    { content, secretTexts }: { readonly content: ProfileContent } & Partial<NewContent>,
  ): ProfileNeeds {
    const inView = () => this.#secretTexts(namespace, content);
    let texts = secretTexts;
    return new ProfileNeeds(
      content,
      (sha256) => {
        texts ??= inView();
        return texts.get(sha256);
      },
      this.#reader,
    );
  }

  /** The texts of Secrets as they are now, by their hash. */
  #secretTexts(namespace: string, { templates }: ProfileContent): ReadonlyMap<string, string> {
    const texts = Object.values(templates).flatMap((template) => {
      if (template.kind !== "secret") return [];
      const { data = {} } = this.#options.view().get("Secret", namespace, template.name) ?? {};
      const text = Object.hasOwn(data, template.key) ? data[template.key] : undefined;
      return text === undefined ? [] : [text];
    });
    return new Map(texts.map((text) => [this.#options.sha256(text), text]));
  }
}

/** The document with older metadata, where the newer one loses a config; undefined where it does not. */
function keep({ stored }: PairedGroup, document: GroupDocument, needs: ProfileNeeds | undefined) {
  const before = stored?.uid === document.uid ? lastAccepted(stored)?.spec : undefined;
  const { spec } = document;
  if (needs === undefined || before === undefined || before.profile !== spec.profile) return undefined;
  if (isSame(before, spec) || takesOthers(before, spec)) return undefined;
  const older = mixed(spec, before);
  const [lack] = without(lacksOf(needs, spec), partsOf(lacksOf(needs, older)));
  if (lack === undefined) return undefined;
  // A machine that was held stays held, as with a version that is refused.
  const hold = spec.hold || before.hold;
  const kept: GroupDocument = { ...document, spec: { ...older, hold }, outdated: true };
  return { document: kept, lack };
}

function note(all: ByProfile<ObjectName>, profile: ObjectName, id: ObjectName, isSo: boolean): void {
  const key = objectKey(profile);
  const groups = all.get(key) ?? new Map<string, ObjectName>();
  if (isSo) all.set(key, groups.set(objectKey(id), id));
  else if (groups.delete(objectKey(id)) && groups.size === 0) all.delete(key);
}

function lacksOf(needs: ProfileNeeds, group: Renderable, budget = new RenderBudget(groupWork)): readonly Lack[] {
  try {
    return needs.lacks(group, budget);
  } catch (error) {
    if (error instanceof TooLongHere) return [];
    throw error;
  }
}

/** True for a selector that takes machines that the older one does not take: nobody meant the older metadata for them. */
function takesOthers(before: GroupDocument["spec"], spec: GroupDocument["spec"]): boolean {
  return !implies(selectionOf(spec), selectionOf(before));
}

/** A newer spec with what an older one gives to templates. */
function mixed({ args: _, ...spec }: GroupDocument["spec"], { metadata, args }: GroupDocument["spec"]) {
  return { ...spec, metadata, ...(args && { args }) };
}

function isSame(a: Renderable, b: Renderable): boolean {
  const text = ({ metadata, args = [] }: Renderable) => JSON.stringify([metadata, args]);
  return text(a) === text(b);
}

function partsOf(lacks: readonly Lack[]): ReadonlySet<string> {
  return new Set(lacks.map(({ part }) => part));
}

function without(lacks: readonly Lack[], parts: ReadonlySet<string>): readonly Lack[] {
  return lacks.filter(({ part }) => !parts.has(part));
}

function placeText({ field, isOfGroup, at }: Lack): string {
  return `${field}${isOfGroup ? " of the Group" : ""}: line ${at.line}, column ${at.column}`;
}

function variableText({ variable }: Lack): string {
  return variable === undefined ? "a variable" : `the variable "${variable}"`;
}

/** One for each place, which names the first Group. */
function profileFindings(harmed: readonly { readonly name: ObjectName; readonly lack: Lack }[]): readonly Finding[] {
  const sorted = harmed.toSorted((a, b) => (objectKey(a.name) < objectKey(b.name) ? -1 : 1));
  const places = new Map<string, { readonly lack: Lack; readonly names: ObjectName[] }>();
  for (const { name, lack } of sorted) {
    const key = `${placeText(lack)} ${lack.variable}`;
    const place = places.get(key) ?? { lack, names: [] };
    place.names.push(name);
    places.set(key, place);
  }
  return [...places.values()].slice(0, maxFindings).map(({ lack, names }) => {
    const others = names.length > 1 ? " and others" : "";
    const group = `Group "${names[0]?.name}"${others}`;
    const message = `${placeText(lack)}: ${variableText(lack)} is not defined for ${group}: ${cure}`;
    return undefinedVariable("Accepted", message, lack);
  });
}

const cure = "define it in the metadata, or surround it with {{#if}}";

/** Of a Group for which its Profile stays as it is. */
function harmFinding({ name }: ObjectName, lack: Lack): Finding {
  const what = `${placeText(lack)}: ${variableText(lack)} is not defined for this Group`;
  const message = `Profile "${name}": ${what}, so the Profile's last good version stays: ${cure}`;
  return undefinedVariable("ResolvedRefs", message, lack);
}

/** Of a Group whose metadata stays as it is. */
function keptFinding({ name }: ObjectName, lack: Lack): Finding {
  const what = `${variableText(lack)} is not defined any more, and Profile "${name}" prints it`;
  const message = `spec.metadata: ${what} (${placeText(lack)}): put it back, or change the Profile first`;
  return undefinedVariable("Accepted", message, lack);
}

function undefinedVariable(type: Finding["type"], message: string, { field, at }: Lack): Finding {
  const place = { field, position: at };
  return { type, reason: "UndefinedVariable", message, code: "undefined-variable", place };
}

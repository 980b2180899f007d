/**
 * Makes the looks at one version of a Profile. Such a look finds what fails for a Group, within a budget. It is not a
 * look of the directory source.
 */

import { type ProfileDocument, profilePath } from "../../model/objects/documents.ts";
import type { ProfileContent } from "../../model/objects/profile.ts";
import type { SecretTexts } from "../../model/objects/secret-texts.ts";
import { type ObjectName, objectKey, type SourceView } from "../../model/objects/source.ts";
import { type RenderBudget, TooLongHere } from "../../render/template/limits.ts";
import type { Documents } from "../core/documents.ts";
import type { MachineSamples } from "../core/machine-samples.ts";
import { secretTextsIn } from "../trials/trial-inputs.ts";
import { type Lack, NeedsReader, ProfileNeeds, type Renderable } from "./profile-needs.ts";
import { ProfileRenders, RendersBench } from "./profile-renders.ts";

/** One way to find what fails for a Group. */
export interface Look {
  /** @throws {TooLongHere} when the budget is used up. */
  readonly lacks: (group: Renderable, budget: RenderBudget) => readonly Lack[];
}

/** The two ways to look at one version: `names` compares names of variables; `renders` renders, which costs more. */
export interface Looks {
  readonly names: ProfileNeeds;
  readonly renders: ProfileRenders;
}

export const ways = ["names", "renders"] as const satisfies readonly (keyof Looks)[];

/** A Profile's new content, with the texts of its secret templates. */
export interface NewContent {
  readonly content: ProfileContent;
  /** By their names in the store. */
  readonly secretTexts: ReadonlyMap<string, string>;
}

export interface PairLooksOptions {
  readonly view: () => Pick<SourceView, "get">;
  readonly documents: Pick<Documents, "profile" | "textAt">;
  readonly sha256: (text: string) => string;
  readonly secretTexts: Pick<SecretTexts, "namesOf">;
  readonly machineSamples: Pick<MachineSamples, "of">;
  /** Where machines reach davit; an example URL if that is unknown. */
  readonly davitUrl?: string;
}

export class PairLooks {
  readonly #options: PairLooksOptions;
  readonly #reader: NeedsReader;
  readonly #bench: RendersBench;
  /** By the key of a stored Profile, with the text of its document. */
  readonly #ofStored = new Map<string, { readonly text: string; readonly looks: Looks }>();
  /** For planned contents. */
  #ofContents = new WeakMap<ProfileContent, Looks>();

  constructor(options: PairLooksOptions) {
    this.#options = options;
    const tools = { davitUrl: "http://192.0.2.1:8080", ...options };
    this.#reader = new NeedsReader(tools);
    this.#bench = new RendersBench(tools);
  }

  /**
   * Returns the looks at the content that a step plans for a Profile, or else at its stored content.
   * @param contents the planned contents, by the keys of their Profiles.
   */
  atNewest(profile: ObjectName, contents: ReadonlyMap<string, ProfileContent>): Looks | undefined {
    const content = contents.get(objectKey(profile));
    return content === undefined ? this.#atStored(profile) : this.atContent(profile, content);
  }

  /**
   * Returns the looks at the stored content of a Profile; undefined if nothing is stored. It returns the same object
   * until the content changes.
   */
  #atStored(profile: ObjectName): Looks | undefined {
    const { namespace, name } = profile;
    const key = objectKey(profile);
    const text = this.#options.documents.textAt(profilePath(namespace, name));
    const known = this.#ofStored.get(key);
    if (text === undefined) {
      this.#ofStored.delete(key);
      return undefined;
    }
    if (known?.text === text) return known.looks;
    const stored = this.#options.documents.profile(namespace, name).document;
    if (stored === undefined) return undefined;
    const looks = this.at(profile, stored);
    this.#ofStored.set(key, { text, looks });
    return looks;
  }

  /** Forgets all looks, because the names of samples have changed. */
  forgetAll(): void {
    this.#ofStored.clear();
    this.#ofContents = new WeakMap();
  }

  /** Forgets the looks at a stored Profile. */
  forget(profile: ObjectName): void {
    this.#ofStored.delete(objectKey(profile));
  }

  /** Returns the looks at the content that a step plans for a Profile: the same object for all of its Groups. */
  atContent(profile: ObjectName, content: ProfileContent): Looks {
    const known = this.#ofContents.get(content);
    if (known !== undefined) return known;
    const looks = this.at(profile, { content });
    this.#ofContents.set(content, looks);
    return looks;
  }

  /** Returns the looks at a version of a Profile. Without `secretTexts`, they use the Secrets in view. */
  at(
    { namespace }: ObjectName,
    { content, secretTexts: known }: Pick<ProfileDocument, "content"> & Partial<NewContent>,
  ): Looks {
    const { view, secretTexts: names, machineSamples } = this.#options;
    const samples = machineSamples.of(namespace);
    let texts = known;
    const secretText = (name: string) => {
      texts ??= secretTextsIn(view(), { namespace, templates: content.templates, names });
      return texts.get(name);
    };
    return {
      names: new ProfileNeeds(content, secretText, this.#reader, samples),
      renders: new ProfileRenders(content, secretText, this.#bench, samples),
    };
  }
}

/** The result of a look; undefined if the look exceeds its budget. */
export function withinBudget<Result>(look: () => Result): Result | undefined {
  try {
    return look();
  } catch (error) {
    if (error instanceof TooLongHere) return undefined;
    throw error;
  }
}

/**
 * Tries the ways in order, and returns the findings of the first way that has any. Undefined means unknown: nothing is
 * found, but a way exceeded its budget.
 */
export function foundBy(look: (way: keyof Looks) => readonly Lack[]): readonly Lack[] | undefined {
  const byNames = withinBudget(() => look("names"));
  if (byNames !== undefined && byNames.length > 0) return byNames;
  const byRenders = withinBudget(() => look("renders"));
  return byRenders?.length === 0 ? byNames : byRenders;
}

/** True if two Groups have the same metadata and arguments. */
export function isSameGiven(a: Renderable, b: Renderable): boolean {
  const text = ({ metadata, args = [] }: Renderable) => JSON.stringify([metadata, args]);
  return text(a) === text(b);
}

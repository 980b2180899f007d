/** Keeps the judges of Profiles' versions, and asks them within a budget. */

import type { ProfileDocument } from "../../model/objects/documents.ts";
import type { ProfileContent } from "../../model/objects/profile.ts";
import type { SecretTexts } from "../../model/objects/secret-texts.ts";
import { type ObjectName, objectKey, type SourceView } from "../../model/objects/source.ts";
import { Bench } from "../../render/judge/bench.ts";
import { Judge, type PartFault, type Renderable } from "../../render/judge/judge.ts";
import { TooLongHere } from "../../render/template/limits.ts";
import type { ControllerPorts } from "../core/controller-ports.ts";
import type { Documents } from "../core/documents.ts";
import type { MachineSamples } from "../core/machine-samples.ts";
import { secretTextsIn } from "../trials/trial-inputs.ts";

/** The two ways to judge, the cheaper one first. */
export const ways = ["names", "renders"] as const satisfies readonly (keyof Judge)[];
export type Way = (typeof ways)[number];

/** A Profile's new content, with the texts of its secret templates. */
export interface NewContent {
  readonly content: ProfileContent;
  /** By their names in the store. */
  readonly secretTexts: ReadonlyMap<string, string>;
}

export interface JudgesOptions extends Pick<ControllerPorts, "sha256" | "davitUrl"> {
  readonly view: () => Pick<SourceView, "get">;
  readonly documents: Pick<Documents, "profile">;
  readonly secretTexts: Pick<SecretTexts, "namesOf">;
  readonly machineSamples: Pick<MachineSamples, "of">;
}

export class Judges {
  readonly #options: JudgesOptions;
  readonly #bench: Bench;
  #ofContents = new WeakMap<ProfileContent, Judge>();

  constructor(options: JudgesOptions) {
    this.#options = options;
    this.#bench = new Bench({ davitUrl: "http://192.0.2.1:8080", ...options });
  }

  /**
   * Returns the judge of the content that a step plans for a Profile, or else of its stored content.
   * @param contents the planned contents, by the keys of their Profiles.
   */
  ofNewest(profile: ObjectName, contents: ReadonlyMap<string, ProfileContent>): Judge | undefined {
    const content = contents.get(objectKey(profile)) ?? this.#storedContent(profile);
    return content && this.ofContent(profile, content);
  }

  /** Forgets all judges, because the names of samples have changed. */
  forgetAll(): void {
    this.#ofContents = new WeakMap();
  }

  /** Forgets the judge of a stored Profile. */
  forget(profile: ObjectName): void {
    const content = this.#storedContent(profile);
    if (content !== undefined) this.#ofContents.delete(content);
  }

  #storedContent({ namespace, name }: ObjectName): ProfileContent | undefined {
    return this.#options.documents.profile(namespace, name).document?.content;
  }

  /** Returns the judge of a planned or stored content of a Profile: the same object for all of its Groups. */
  ofContent(profile: ObjectName, content: ProfileContent): Judge {
    const known = this.#ofContents.get(content);
    if (known !== undefined) return known;
    const judge = this.of(profile, { content });
    this.#ofContents.set(content, judge);
    return judge;
  }

  /** Returns the judge of a version of a Profile. Without `secretTexts`, it uses the Secrets in view. */
  of(
    { namespace }: ObjectName,
    { content, secretTexts: known }: Pick<ProfileDocument, "content"> & Partial<NewContent>,
  ): Judge {
    const { view, secretTexts: names, machineSamples } = this.#options;
    let texts = known;
    const secretText = (name: string) => {
      texts ??= secretTextsIn(view(), { namespace, templates: content.templates, names });
      return texts.get(name);
    };
    return new Judge({ content, secretText, samples: machineSamples.of(namespace), bench: this.#bench });
  }
}

/** The result of a judgement; undefined if it exceeds its budget. */
export function withinBudget<Result>(judge: () => Result): Result | undefined {
  try {
    return judge();
  } catch (error) {
    if (error instanceof TooLongHere) return undefined;
    throw error;
  }
}

/**
 * Tries the ways in order, and returns the findings of the first way that has any. Undefined means unknown: nothing is
 * found, but a way exceeded its budget.
 */
export function foundBy(judge: (way: Way) => readonly PartFault[]): readonly PartFault[] | undefined {
  const byNames = withinBudget(() => judge("names"));
  if (byNames !== undefined && byNames.length > 0) return byNames;
  const byRenders = withinBudget(() => judge("renders"));
  return byRenders?.length === 0 ? byNames : byRenders;
}

/** True if two Groups have the same metadata and arguments. */
export function isSameGiven(a: Renderable, b: Renderable): boolean {
  const text = ({ metadata, args = [] }: Renderable) => JSON.stringify([metadata, args]);
  return text(a) === text(b);
}

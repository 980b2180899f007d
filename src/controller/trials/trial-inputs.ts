/**
 * Collects the inputs of trials: documents from the store, and texts of Secrets from the source. `Documents` has only
 * the names of Secret texts.
 */

import { assert } from "../../lib/errors.ts";
import { groupPath, profilePath } from "../../model/objects/documents.ts";
import type { ResolvedTemplate, TemplateSource, Templates } from "../../model/objects/profile.ts";
import type { SecretTexts } from "../../model/objects/secret-texts.ts";
import type { ObjectName, Source, SourceView } from "../../model/objects/source.ts";
import type { Samples } from "../../render/judge/judge.ts";
import type { Documents } from "../core/documents.ts";
import type { MachineSamples } from "../core/machine-samples.ts";
import type { TrialJob } from "./trial.ts";

/** The documents of one trial. A text is undefined if the store does not have it. */
export interface TrialInput {
  readonly group: ObjectName;
  /** The name of its Profile. */
  readonly profile: string;
  readonly groupText: string | undefined;
  readonly profileText: string | undefined;
  readonly samples: Samples;
}

// In characters. Copying a job to the thread takes about a millisecond for each MiB.
const maxJobLength = 4 * 1024 * 1024;

export interface TrialInputsOptions {
  readonly documents: Pick<Documents, "group" | "textAt">;
  readonly source: Pick<Source, "view">;
  readonly machineSamples: Pick<MachineSamples, "of">;
  readonly secretTexts: Pick<SecretTexts, "namesOf">;
}

export class TrialInputs {
  readonly #options: TrialInputsOptions;

  constructor(options: TrialInputsOptions) {
    this.#options = options;
  }

  /** The input for a trial of this Group now. */
  of(group: ObjectName): TrialInput {
    const { namespace, name } = group;
    const profile = this.#options.documents.group(namespace, name)?.spec.profile ?? "";
    const samples = this.#options.machineSamples.of(namespace);
    const profileText = this.profileText(namespace, profile);
    return { group, profile, groupText: this.#groupText(group), profileText, samples };
  }

  /**
   * True if a new trial would have the same input. A changed Profile name needs no check: the Group's text includes it.
   */
  isCurrent({ group, profile, groupText, profileText, samples }: TrialInput): boolean {
    const { namespace } = group;
    const isSame = this.#groupText(group) === groupText && this.profileText(namespace, profile) === profileText;
    return isSame && this.#options.machineSamples.of(namespace) === samples;
  }

  profileText(namespace: string, profile: string): string | undefined {
    return this.#options.documents.textAt(profilePath(namespace, profile));
  }

  /** The job that tries these Groups, which have the same Profile. */
  jobOf(inputs: readonly TrialInput[]): TrialJob {
    const [first] = inputs;
    assert(first !== undefined, "A job has a Group");
    const { group, profile, profileText, samples } = first;
    const { source, secretTexts: names } = this.#options;
    const { templates = {} } = source.view.get("Profile", group.namespace, profile)?.spec ?? {};
    return {
      namespace: group.namespace,
      profile,
      profileText: profileText ?? "",
      samples,
      secretTexts: secretTextsIn(source.view, { namespace: group.namespace, templates, names }),
      groups: inputs.map(({ group: { name }, groupText }) => ({ name, text: groupText ?? "" })),
    };
  }

  #groupText({ namespace, name }: ObjectName): string | undefined {
    return this.#options.documents.textAt(groupPath(namespace, name));
  }
}

interface NamingTemplates {
  readonly namespace: string;
  readonly templates: Templates<TemplateSource | ResolvedTemplate>;
  readonly names: Pick<SecretTexts, "namesOf">;
}

/**
 * The texts of Secrets that templates name, as they are now, by each name that the store may have for them. While keys
 * change, a stored Profile still has the earlier name.
 */
export function secretTextsIn(
  view: Pick<SourceView, "get">,
  { namespace, templates, names }: NamingTemplates,
): ReadonlyMap<string, string> {
  const named = Object.values(templates).flatMap((template) => {
    if (template.kind !== "secret") return [];
    const { data = {} } = view.get("Secret", namespace, template.name) ?? {};
    const text = Object.hasOwn(data, template.key) ? data[template.key] : undefined;
    return text === undefined ? [] : names.namesOf(text).map((name) => [name, text] as const);
  });
  return new Map(named);
}

/** Splits trials into jobs. A job has Groups of one Profile, and no more of them than one message may hold. */
export function byProfile<Due extends { readonly input: TrialInput }>(
  dues: readonly Due[],
): readonly (readonly Due[])[] {
  const jobs = new Map<string, Due[]>();
  let length = 0;
  for (const due of dues) {
    const { group, profile, groupText } = due.input;
    length += groupText?.length ?? 0;
    const key = `${Math.floor(length / maxJobLength)} ${group.namespace}/${profile}`;
    const job = jobs.get(key) ?? [];
    jobs.set(key, job);
    job.push(due);
  }
  return [...jobs.values()];
}

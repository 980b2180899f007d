/**
 * Groups of Profiles that install, for which a part of the Profile fails whatever their machines ask: those wait for all
 * parts. A verdict stays until the Profile or the Group changes, so looking at everything again costs nothing.
 */

import type { ProfileContent } from "../model/profile.ts";
import { type ObjectName, objectKey, type SourceView } from "../model/source.ts";
import type { RenderBudget } from "../render/template-limits.ts";
import { ByProfile } from "./by-profile.ts";
import { isSameGiven, type Looks, type PairLooks, withinBudget } from "./pair-looks.ts";
import type { Lack, Renderable } from "./profile-needs.ts";

export interface FlawsOptions {
  readonly view: () => Pick<SourceView, "get">;
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
  readonly looks: PairLooks;
}

interface Verdict {
  readonly id: ObjectName;
  readonly looks: Looks;
  readonly spec: Renderable;
  readonly lack: Lack | undefined;
}

/** The budget of each way to look. */
export type FlawBudgets = Readonly<Record<keyof Looks, RenderBudget>>;

export class Flaws {
  readonly #options: FlawsOptions;
  readonly #verdicts = new ByProfile<Verdict>();

  constructor(options: FlawsOptions) {
    this.#options = options;
  }

  /** What fails for a Group, if its Profile installs; undefined also if finding it takes too long here. */
  of(
    profile: ObjectName,
    id: ObjectName,
    given: { looks?: Looks | undefined; spec: Renderable },
    budgets: FlawBudgets,
  ) {
    const { looks, spec } = given;
    if (looks?.names.isInstall !== true) {
      this.forget(profile, id);
      return undefined;
    }
    const known = this.#verdicts.get(profile, id);
    if (known?.looks === looks && isSameForAll(known.spec, spec)) return known.lack;
    const lacks = foundBy("names", looks, spec, budgets) ?? [];
    const found = lacks.length > 0 ? lacks : foundBy("renders", looks, spec, budgets);
    const lack = found?.[0];
    this.#verdicts.note(profile, id, found && { id, looks, spec, lack });
    return lack;
  }

  forget(profile: ObjectName, id: ObjectName): void {
    this.#verdicts.note(profile, id, undefined);
  }

  /** The Groups whose verdict changes with new content of their Profile. */
  changedBy(profile: ObjectName, content: ProfileContent, budgets: FlawBudgets): readonly ObjectName[] {
    const flawed = this.#verdicts.of(profile).filter(({ lack }) => lack !== undefined);
    const looks = this.#options.looks.atContent(profile, content);
    if (!looks.names.isInstall) return flawed.map(({ id }) => id);
    const before = new Set(flawed.map(({ id }) => objectKey(id)));
    return [...this.#options.groupsOf(profile)].filter((name) => {
      const spec = this.#options.view().get("Group", name.namespace, name.name)?.spec;
      const lack = spec && this.of(profile, name, { looks, spec }, budgets);
      return (lack !== undefined) !== before.has(objectKey(name));
    });
  }
}

function foundBy(way: keyof Looks, looks: Looks, spec: Renderable, budgets: FlawBudgets): readonly Lack[] | undefined {
  return withinBudget(() => looks[way].lacks(spec, budgets[way]));
}

/** The selector's labels are variables, too. */
function isSameForAll(a: Renderable, b: Renderable): boolean {
  return a === b || (isSameGiven(a, b) && JSON.stringify(a.selector) === JSON.stringify(b.selector));
}

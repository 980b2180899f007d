/**
 * Finds flaws: parts of an installing Profile that fail for a Group with every request. The Group's machines then wait,
 * whichever part they ask for. A verdict stays until the Profile or the Group changes, so a resync does not repeat the
 * check. If a step has no time for the check, a stored flaw stays until a later step checks the Group.
 */

import type { ProfileContent } from "../../model/objects/profile.ts";
import { type ObjectName, objectKey, type SourceView } from "../../model/objects/source.ts";
import type { Judge, Renderable } from "../../render/judge/judge.ts";
import type { RenderBudget } from "../../render/template/limits.ts";
import { ByReference, byKey } from "../core/names.ts";
import { foundBy, isSameGiven, type Judges, type Way } from "./judges.ts";
import { faultText } from "./pair-findings.ts";

interface FlawsOptions {
  readonly view: () => Pick<SourceView, "get">;
  readonly groupsOf: (profile: ObjectName) => Iterable<ObjectName>;
  readonly judges: Judges;
}

interface FlawVerdict {
  readonly id: ObjectName;
  /** What fails; undefined if nothing fails. */
  readonly flaw: string | undefined;
  /** The versions that the verdict is about. Undefined if a step had no time to look and kept an earlier flaw. */
  readonly about?: { readonly judge: Judge; readonly spec: Renderable };
}

/** The budget of each way to look. */
type FlawBudgets = Readonly<Record<Way, RenderBudget>>;

export class Flaws {
  readonly #options: FlawsOptions;
  readonly #verdicts = new ByReference<FlawVerdict>();

  constructor(options: FlawsOptions) {
    this.#options = options;
  }

  /**
   * Returns the verdict on a Group. Undefined if its Profile does not install, or if there is no time to look and no
   * earlier flaw.
   * @param given `flaw` comes from an earlier look. It stays if this look exceeds its budget.
   */
  of(
    profile: ObjectName,
    id: ObjectName,
    given: { judge?: Judge | undefined; spec: Renderable; flaw: string | undefined },
    budgets: FlawBudgets,
  ): FlawVerdict | undefined {
    const { judge, spec, flaw } = given;
    if (judge?.isInstall !== true) {
      this.forget(profile, id);
      return undefined;
    }
    const known = this.#verdicts.get(profile, id);
    if (known?.about?.judge === judge && isSameForAll(known.about.spec, spec)) return known;
    const faults = foundBy((way) => judge[way](spec, budgets[way]));
    const earlier = flaw === undefined ? undefined : { id, flaw };
    const verdict =
      faults === undefined ? earlier : { id, flaw: faults[0] && faultText(faults[0]), about: { judge, spec } };
    this.#verdicts.note(profile, id, verdict);
    return verdict;
  }

  forget(profile: ObjectName, id: ObjectName): void {
    this.#verdicts.note(profile, id, undefined);
  }

  /**
   * The Groups whose verdict changes when their Profile gets this content, and those whose flaw this step has no time
   * to check. Groups that have a flaw are checked first.
   */
  changedBy(profile: ObjectName, content: ProfileContent, budgets: FlawBudgets): readonly ObjectName[] {
    const flawed = this.#verdicts.of(profile).filter(({ flaw }) => flaw !== undefined);
    const judge = this.#options.judges.ofContent(profile, content);
    const names = flawed.map(({ id }) => id);
    if (!judge.isInstall) return names;
    const before = new Map(flawed.map(({ id, flaw }) => [objectKey(id), flaw]));
    return [...byKey([...names, ...this.#options.groupsOf(profile)]).values()].filter((name) => {
      const spec = this.#options.view().get("Group", name.namespace, name.name)?.spec;
      const flaw = before.get(objectKey(name));
      const verdict =
        spec?.profile === profile.name ? this.of(profile, name, { judge, spec, flaw }, budgets) : undefined;
      return (verdict?.flaw === undefined) !== (flaw === undefined) || isOpen(verdict);
    });
  }
}

/**
 * True for a verdict that keeps the flaw of an earlier look, because no step had time to look at the newest versions.
 */
export function isOpen(verdict: { readonly about?: unknown } | undefined): boolean {
  return verdict !== undefined && verdict.about === undefined;
}

/**
 * True if templates see the same values for both Groups, whatever the request. The selector's labels are variables,
 * too.
 */
export function isSameForAll(a: Renderable, b: Renderable): boolean {
  return a === b || (isSameGiven(a, b) && JSON.stringify(a.selector) === JSON.stringify(b.selector));
}

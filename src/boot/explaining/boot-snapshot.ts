/**
 * The boot index's answers for one machine at one time. Explaining and rendering take a while, and the store may change
 * in the meantime. With a snapshot, they use one state of the store. Rendered texts are cached in the snapshot, never
 * in the index.
 */

import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import { type ProfileContent, partsOf, type TemplatePart } from "../../model/objects/profile.ts";
import type { PermitAsk, PermitPurpose, Verdict } from "../../model/permits/permit.ts";
import { permitRefusals } from "../../model/refusals.ts";
import { BootError } from "../core/boot-error.ts";
import { type BootGroup, type BootProfile, toBootGroup } from "../core/known-documents.ts";
import { type BootMachine, mergedLabels } from "../core/known-machines.ts";
import type { TemplateText } from "../core/known-secrets.ts";
import type { Candidate, Selected } from "../core/selected.ts";
import type { BootIndex, BootView } from "../selection/boot-index.ts";

/** The result of a call: a value, or the refusal that it threw. */
type CallOutcome<Value> = { readonly kind: "given"; readonly value: Value } | Refused;

interface Refused {
  readonly kind: "refused";
  readonly error: BootError;
}

export class BootSnapshot implements BootView {
  /** Every Group. */
  readonly groups: readonly BootGroup[];
  /** The machine's labels, and where they come from. */
  readonly seen: SeenMachine;
  /** The winning Group, even if davit refuses its machines; undefined if none is known. */
  readonly chosen: BootGroup | undefined;
  /** The effect of that Group's Profile on disks. Undefined if the Profile sets none, or is missing. */
  readonly effect: ProfileContent["effect"];
  readonly #group: CallOutcome<BootGroup>;
  readonly #candidates: Readonly<Record<PermitPurpose, CallOutcome<Candidate>>>;
  /** By the purpose of the question. */
  readonly #verdicts: Readonly<Record<PermitPurpose, Verdict | undefined>>;
  readonly #profileOfGroup: CallOutcome<BootProfile | undefined>;
  readonly #templates: ReadonlyMap<TemplatePart, CallOutcome<TemplateText>>;

  /** Queries the index, as a request of a machine with these labels would. */
  constructor(index: BootIndex, labels: Labels) {
    const unkept = new Unkept();
    this.seen = seenMachine(index, labels);
    this.#group = outcomeOf(() => unkept.group(index.selectGroup(labels)));
    const group = this.#group;
    const candidate = (purpose: PermitPurpose) =>
      outcomeOf(() => {
        const candidate = index.candidate(labels, purpose);
        return { ...candidate, group: unkept.group(candidate.group) };
      });
    this.#candidates = { script: candidate("script"), config: candidate("config") };
    const verdict = (purpose: PermitPurpose) => {
      const ask = askOf(this.#candidates[purpose]);
      return ask && index.verdictOn(ask);
    };
    this.#verdicts = { script: verdict("script"), config: verdict("config") };
    this.#profileOfGroup = outcomeOf(() => index.profileOf(given(group)));
    const { config } = this.#candidates;
    const parts = config.kind === "given" ? partsOf(config.value.profile.content.templates) : [];
    this.#templates = new Map(
      parts.map((part) => [part, outcomeOf(() => index.template(given(config), part, labels))] as const),
    );
    this.groups = [...index.groups.values()];
    this.chosen = group.kind === "given" ? group.value : index.groups.get(group.error.group ?? "");
    this.effect = this.chosen && index.machineOf(this.chosen.id)?.profile.content.effect;
  }

  /** The refusal of every boot script, whatever the Profile contains; undefined if there is none. */
  get refusal(): BootError | undefined {
    const { script } = this.#candidates;
    if (script.kind === "refused") return script.error;
    const verdict = this.#verdicts.script;
    return verdict?.kind === "refused" ? noPermit(script.value, permitRefusals[verdict.why]) : undefined;
  }

  /** The Profile that the machine gets; undefined if it is refused. */
  get profile(): BootProfile | undefined {
    const { config } = this.#candidates;
    return config.kind === "given" ? config.value.profile : undefined;
  }

  /** What the ledger says of a boot script; undefined if the machine needs no permit, or is refused before. */
  get permit(): Verdict | undefined {
    const { script } = this.#candidates;
    return script.kind === "refused" ? undefined : this.#verdicts.script;
  }

  /** @throws {BootError} as the index did. */
  selectGroup(): BootGroup {
    return given(this.#group);
  }

  /** @throws {BootError} as the index did. */
  candidate(_labels: Labels, purpose: PermitPurpose): Candidate {
    return given(this.#candidates[purpose]);
  }

  /** A snapshot has no desk. @throws {BootError} as the index did. */
  select(): Selected {
    const candidate = given(this.#candidates.script);
    if (candidate.isDisk || candidate.ask === undefined) return candidate;
    throw noPermit(candidate, permitRefusals.noDesk);
  }

  /** Decides a question of this snapshot. */
  verdictOn({ purpose }: Pick<PermitAsk, "purpose">): Verdict {
    return this.#verdicts[purpose] ?? { kind: "refused", why: "noLedger" };
  }

  /** @throws {BootError} as the index did. */
  profileOf(): BootProfile | undefined {
    return given(this.#profileOfGroup);
  }

  /** @throws {BootError} as the index did. */
  template(machine: Selected, part: TemplatePart): TemplateText {
    const outcome = this.#templates.get(part);
    if (outcome !== undefined) return given(outcome);
    throw new BootError("noPart", { group: machine.group.id, profile: machine.profile.id });
  }
}

function outcomeOf<Value>(call: () => Value): CallOutcome<Value> {
  try {
    return { kind: "given", value: call() };
  } catch (error) {
    if (error instanceof BootError) return { kind: "refused", error };
    throw error;
  }
}

function given<Value>(outcome: CallOutcome<Value>): Value {
  if (outcome.kind === "refused") throw outcome.error;
  return outcome.value;
}

function askOf(outcome: CallOutcome<Candidate>): PermitAsk | undefined {
  return outcome.kind === "given" ? outcome.value.ask : undefined;
}

function noPermit({ group, profile }: Selected, problem: string): BootError {
  return new BootError("noPermit", { group: group.id, profile: profile.id, problem });
}

/** Copies Groups without their cached texts. New texts are cached in the copies and vanish with them. */
class Unkept {
  readonly #copies = new Map<BootGroup, BootGroup>();

  group(group: BootGroup): BootGroup {
    const copy = this.#copies.get(group) ?? toBootGroup(group, group.profileId, group);
    this.#copies.set(group, copy);
    return copy;
  }
}

/** Where a label comes from: the request, a Machine object, or a report of the machine. */
type LabelOrigin = "query" | "machine" | "reported";

export interface ShownLabel {
  readonly name: string;
  readonly value: string;
  readonly origin: LabelOrigin;
}

interface SeenMachine {
  /** The labels by which Groups select. */
  readonly labels: Labels;
  /** The labels to show to people. */
  readonly origins: readonly ShownLabel[];
  /** The Machine objects that the request names. More than one is a mistake. */
  readonly machines: readonly BootMachine[];
}

/**
 * Returns the labels and the Machine of a request, as selection sees them, and where each label comes from. Only people
 * need this, so boots do not compute it.
 */
export function seenMachine(
  index: Pick<BootIndex, "machinesOf" | "soleMachineOf" | "ledger">,
  asked: Labels,
): SeenMachine {
  const machines = index.machinesOf(asked);
  const { machine } = index.soleMachineOf(asked);
  const labels = mergedLabels(asked, machine, index.ledger?.reportedLabels(asked, machine?.document.spec.identities));
  const own = new Map(machine?.labels);
  const shown = new Map([...labels, ...sentLabels(asked), ...own]);
  const originOf = (name: string): LabelOrigin => {
    if (own.has(name)) return "machine";
    return sentLabels(asked).has(name) ? "query" : "reported";
  };
  const origins = [...shown].map(([name, value]) => ({ name, value, origin: originOf(name) }));
  return { labels, origins, machines };
}

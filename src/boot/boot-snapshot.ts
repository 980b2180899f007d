/**
 * The boot index's answers for one machine at one time. Explaining and rendering take a while, and the store may change
 * in the meantime. With a snapshot, they use one state of the store. Rendered texts are cached in the snapshot, never
 * in the index.
 */

import type { JsonObject } from "../model/json.ts";
import type { Labels } from "../model/labels.ts";
import { type ProfileContent, partsOf, type TemplatePart } from "../model/profile.ts";
import { BootError } from "./boot-error.ts";
import type { BootIndex, BootView, Machine, TemplateText } from "./boot-index.ts";
import type { BootGroup, BootProfile } from "./known-documents.ts";

/** The result of a call: a value, or the refusal that it threw. */
type CallOutcome<Value> = { readonly kind: "given"; readonly value: Value } | Refused;

interface Refused {
  readonly kind: "refused";
  readonly error: BootError;
}

export class BootSnapshot implements BootView {
  /** Every Group. */
  readonly groups: readonly BootGroup[];
  /** The winning Group, even if davit refuses its machines; undefined if none is known. */
  readonly chosen: BootGroup | undefined;
  /** The effect of that Group's Profile on disks. Undefined if the Profile sets none, or is missing. */
  readonly effect: ProfileContent["effect"];
  readonly #group: CallOutcome<BootGroup>;
  readonly #machine: CallOutcome<Machine>;
  readonly #defaults: CallOutcome<JsonObject | undefined>;
  readonly #templates: ReadonlyMap<TemplatePart, CallOutcome<TemplateText>>;

  /** Queries the index, as a request of a machine with these labels would. */
  constructor(index: BootIndex, labels: Labels) {
    this.#group = outcomeOf(() => unkept(index.selectGroup(labels)));
    const group = this.#group;
    this.#machine = outcomeOf(() => {
      const { group: selected, profile } = index.select(labels);
      return { group: group.kind === "given" ? group.value : selected, profile };
    });
    const machine = this.#machine;
    this.#defaults = outcomeOf(() => index.defaultsOf(given(group)));
    const parts = machine.kind === "given" ? partsOf(machine.value.profile.content.templates) : [];
    this.#templates = new Map(
      parts.map((part) => [part, outcomeOf(() => index.template(given(machine), part, labels))] as const),
    );
    this.groups = [...index.groups.values()];
    this.chosen = group.kind === "given" ? group.value : index.groups.get(group.error.group ?? "");
    this.effect = this.chosen && index.machineOf(this.chosen.id)?.profile.content.effect;
  }

  /** The refusal of every boot script, whatever the Profile contains; undefined if there is none. */
  get refusal(): BootError | undefined {
    return this.#machine.kind === "refused" ? this.#machine.error : undefined;
  }

  /** The Profile that the machine gets; undefined if it is refused. */
  get profile(): BootProfile | undefined {
    return this.#machine.kind === "given" ? this.#machine.value.profile : undefined;
  }

  /** @throws {BootError} as the index did. */
  selectGroup(): BootGroup {
    return given(this.#group);
  }

  /** @throws {BootError} as the index did. */
  select(): Machine {
    return given(this.#machine);
  }

  /** @throws {BootError} as the index did. */
  defaultsOf(): JsonObject | undefined {
    return given(this.#defaults);
  }

  /** @throws {BootError} as the index did. */
  template(machine: Machine, part: TemplatePart): TemplateText {
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

/** Copies a Group without its cached texts. New texts are cached in the copy and vanish with it. */
function unkept(group: BootGroup): BootGroup {
  const nothing = { script: undefined, boot: undefined, lines: undefined, defaults: undefined, configs: undefined };
  return { ...group, ...nothing };
}

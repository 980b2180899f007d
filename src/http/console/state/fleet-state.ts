/** The state of a machine in one word, and whether somebody must act. */

import type { MachinePhase } from "../../../model/objects/machine.ts";
import { bootRefusals, refusalRow } from "../../../model/refusals.ts";

/** The most urgent first. `quiet`: the machine asked nothing for a while, and nobody needs to act. */
export const fleetStates = ["failed", "waiting", "held", "unknown", "installing", "booting", "quiet"] as const;
export type FleetState = (typeof fleetStates)[number];

export interface StateFacts {
  /** Undefined for a machine that neither an object nor the ledger knows. */
  readonly phase: MachinePhase | undefined;
  /** The machine's newest request; undefined if it never asked. */
  readonly last:
    | {
        readonly status: number;
        readonly isCut: boolean;
        readonly refusal: string | undefined;
        readonly stage: string;
        /** The path of the file for which the machine waits. */
        readonly missing?: string | undefined;
      }
    | undefined;
  /** How long ago that was, in milliseconds. */
  readonly ageMs: number;
  /** What is wrong with the machine's Group or Profile, for a person. */
  readonly problem: string | undefined;
  /** What the machine itself said of its install. */
  readonly reported: string | undefined;
  /** True if the machine's Group needs an approved Machine, and there is none. */
  readonly isUnapproved: boolean;
  /** True if the machine waits for a Machine object. */
  readonly isPending: boolean;
}

export interface ReasonedState {
  readonly state: FleetState;
  /** Undefined for a state that needs nobody. */
  readonly why?: string;
}

/** A machine that asked within this time is booting. Some servers test memory for minutes between two requests. */
export const bootingMs = 10 * 60_000;

/** Returns the state of a machine. */
export function stateOf(facts: StateFacts): ReasonedState {
  const { phase, problem, reported, last, ageMs, isUnapproved, isPending } = facts;
  if (phase === "Held") return held;
  if (phase === "Installing") return { state: "installing" };
  if (phase === "Failed") return { state: "failed", why: withDetail("the install failed", reported) };
  if (phase === "Unconfirmed") return { state: "failed", why: withDetail("the install was not confirmed", reported) };
  if (problem !== undefined) return { state: "failed", why: problem };
  const refused = last && refusedState(last);
  if (refused !== undefined) return refused;
  if (isUnapproved) return { state: "waiting", why: bootRefusals.unapproved.words };
  if (isPending) return { state: "waiting", why: "waits for a Machine object" };
  if (last === undefined || ageMs > bootingMs || phase === "Booted") return { state: "quiet" };
  return { state: "booting" };
}

/** Returns the state of a machine whose last request failed; undefined for any other. */
function refusedState({
  status,
  refusal,
  stage,
  isCut,
  missing,
}: NonNullable<StateFacts["last"]>): ReasonedState | undefined {
  if (status < 400) return isCut ? { state: "failed", why: `cut in ${stage}` } : undefined;
  const { state, words } = refusal === undefined ? unnamed(status) : (refusalRow(refusal) ?? later(refusal));
  if (state === undefined) return undefined;
  if (state === "held") return held;
  if (state === "unknown") return { state, why: "no Group selects it" };
  const what = missing === undefined ? words : `${words}: ${missing}`;
  return { state, why: `${stage}: ${status} ${what}`.trimEnd() };
}

/** An error that is no refusal. */
function unnamed(status: number) {
  return { state: status === 503 ? "waiting" : "failed", words: "" } as const;
}

/** A refusal that only another davit knows. */
function later(refusal: string) {
  return { state: "failed", words: refusal } as const;
}

const held: ReasonedState = { state: "held", why: "held by its Machine or its Group" };

function withDetail(what: string, detail: string | undefined): string {
  return detail === undefined ? what : `${what}: ${detail}`;
}

/**
 * The first law at the gate: whatever changes while a machine asks, each answer is right by the objects and the ledger
 * before the change, or by those after it, or the machine waits. And no machine installs more often than its objects
 * have granted.
 */

import fc from "fast-check";
import { expect, it } from "vitest";
import { groupDocument, outdated, profileDocument, syncedDocument } from "./feed-documents.ts";
import { answerOf, type GateWorld, gateWorld, grant, mac, machineDocument, nowMs, plan } from "./gate-world.ts";
import type { Documents } from "./open-index.ts";

const asMac = "mac=52-54-00-a1-9c-ae";
const boot = { kind: "kernel", initrd: [], args: [], efiInitrd: false } as const;
const kernel = "kernel /installer";
const disks = ["exit", "sanboot --no-describe --drive 0x80 || exit"];

/** What people have written. */
interface Wishes {
  readonly profile: "installs" | "boots" | "gone";
  readonly isOutdated: boolean;
  readonly generation: number;
  /** The grant names another ledger. */
  readonly isAsleep: boolean;
  readonly groupHold: boolean;
  readonly approval: boolean;
  readonly machine: "none" | "plain" | "approved" | "held" | "refused" | "twice";
  readonly isHalf: boolean;
}

const parts = {
  profile: fc.constantFrom("installs", "installs", "installs", "boots", "gone"),
  isOutdated: fc.constantFrom(false, false, false, true),
  generation: fc.integer({ min: 0, max: 3 }),
  isAsleep: fc.constantFrom(false, false, false, true),
  groupHold: fc.constantFrom(false, false, false, true),
  approval: fc.boolean(),
  machine: fc.constantFrom("none", "plain", "approved", "approved", "held", "refused", "twice"),
  isHalf: fc.constantFrom(false, false, false, false, true),
} as const;
const wishes: fc.Arbitrary<Wishes> = fc.record(parts);
/** A change of one wish. */
const change: fc.Arbitrary<Partial<Wishes>> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ generation: parts.generation }) },
  fc.record({ isAsleep: parts.isAsleep }),
  fc.record({ profile: parts.profile }),
  fc.record({ groupHold: parts.groupHold }),
  fc.record({ machine: parts.machine }),
  fc.record({ approval: parts.approval }),
);

function documentsOf(state: Wishes): Documents {
  const { profile, isOutdated, generation, isAsleep, groupHold: hold, approval, machine } = state;
  const install = grant(generation, { scope: "All", ...(isAsleep && { ledger: "00000000" }) });
  const installs = profileDocument("lab/web", {
    effect: "Install",
    install: plan,
    boot: { ...boot, kernel: "/installer" },
  });
  const profiles: Readonly<Record<Wishes["profile"], Documents>> = {
    installs: [isOutdated ? outdated(installs) : installs],
    boots: [profileDocument("lab/web", { effect: "Boot", boot: { kind: "local", local: "exit" } })],
    gone: [],
  };
  const one = machineDocument("lab/m", { approved: machine === "approved", hold: machine === "held" });
  const machines: Readonly<Record<Wishes["machine"], Documents>> = {
    none: [],
    plain: [one],
    approved: [one],
    held: [one],
    refused: [machineDocument("lab/m", { approved: true }, { refused: true })],
    twice: [one, machineDocument("lab/n", { approved: true })],
  };
  const spec = { selector: { mac }, hold, ...(approval && { approval: "Required" as const }) };
  return [
    ...profiles[profile],
    groupDocument("lab/node", { ...spec, ...(generation > 0 && { install }) }),
    ...machines[machine],
    syncedDocument({ ...(state.isHalf && { half: true }) }),
  ];
}

/** True if these objects let the machine boot at all. With two Machines, one of them approved, it may boot its disk. */
function isFree({ groupHold, approval, machine }: Wishes): boolean {
  if (groupHold || machine === "held") return false;
  return !approval || machine === "approved" || machine === "twice";
}

/** True if these objects grant an install of this generation. */
function grants(state: Wishes, generation: number): boolean {
  const isSure = state.profile === "installs" && !state.isOutdated && !state.isHalf && state.machine !== "refused";
  const isOne = state.machine !== "twice";
  return isFree(state) && isOne && isSure && !state.isAsleep && state.generation === generation;
}

type Step =
  | { readonly kind: "wish"; readonly to: Partial<Wishes>; readonly isMeanwhile: boolean }
  | { readonly kind: "wait"; readonly seconds: number }
  | { readonly kind: "ask"; readonly mayClaim: boolean }
  | { readonly kind: "end"; readonly state: "Installed" | "Failed" | "Unconfirmed" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("wish" as const),
      to: fc.oneof(change, change, wishes),
      isMeanwhile: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), seconds: fc.constantFrom(1, 30, 61, 8_000) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("ask" as const), mayClaim: fc.constantFrom(true, true, false) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      state: fc.constantFrom("Installed", "Failed", "Unconfirmed"),
    }),
  },
);

function apply({ index }: GateWorld, documents: Documents): void {
  index.replaced(documents);
}

/** A machine that asks, its objects and its installs. */
class Run {
  readonly #world: GateWorld;
  #state: Wishes;
  /** The generations that the machine was given, each with the time of its claim. */
  readonly #claims = new Map<number, number>();
  #change: Partial<Wishes> | undefined;

  constructor(start: Wishes) {
    this.#state = start;
    this.#world = gateWorld(documentsOf(start));
  }

  async do(each: Step): Promise<void> {
    const { ledger } = this.#world;
    if (each.kind === "wait") ledger.nowMs += each.seconds * 1_000;
    if (each.kind === "end")
      ledger.entries = ledger.entries.map((entry) => ({ ...entry, state: each.state, changedAtMs: ledger.nowMs }));
    if (each.kind === "wish" && each.isMeanwhile) this.#change = each.to;
    else if (each.kind === "wish") this.#become(each.to);
    if (each.kind === "ask") await this.#ask(each.mayClaim);
  }

  #become(change: Partial<Wishes>): void {
    this.#state = { ...this.#state, ...change };
    apply(this.#world, documentsOf(this.#state));
  }

  async #ask(mayClaim: boolean): Promise<void> {
    const { configs, desk, ledger } = this.#world;
    const before = this.#state;
    const change = this.#change;
    this.#change = undefined;
    desk.meanwhile = () => {
      if (change !== undefined) this.#become(change);
      desk.meanwhile = () => undefined;
    };
    const spentBefore = ledger.entries.length;
    const claimedBefore = ledger.entries[0]?.grant?.generation;
    const answer = await answerOf(configs, asMac, "ipxe", { mayClaim });
    const known = [before, this.#state];
    if (answer === kernel) this.#installed(known, mayClaim, claimedBefore);
    else if (disks.includes(answer)) expect(known.some(isFree)).toBe(true);
    else expect(answer).toMatch(/^(held|ambiguous|unapproved|doubtful|noPermit|late|noProfile|withheld)/);
    if (!mayClaim && spentBefore === 0) expect(ledger.entries).toEqual([]);
  }

  /** @param claimedBefore the generation that the ledger had as claimed: davit may have refused the first answer. */
  #installed(known: readonly Wishes[], mayClaim: boolean, claimedBefore: number | undefined): void {
    const { ledger } = this.#world;
    const [entry] = ledger.entries;
    const generation = entry?.grant?.generation ?? 0;
    // Both before and after the desk has decided: the answer is given by the objects after it.
    expect(known.every((state) => grants(state, generation))).toBe(true);
    const claimedAtMs = this.#claims.get(generation);
    if (claimedAtMs === undefined) expect(mayClaim || claimedBefore === generation).toBe(true);
    this.#claims.set(generation, claimedAtMs ?? ledger.nowMs);
    expect(ledger.nowMs - (claimedAtMs ?? ledger.nowMs)).toBeLessThan(60_000);
  }
}

it("gives each machine an old right answer, a new right answer, or none, and no install beyond its grants", async () => {
  expect(nowMs).toBeGreaterThan(0);
  await fc.assert(
    fc.asyncProperty(wishes, fc.array(step, { minLength: 1, maxLength: 40 }), async (start, steps) => {
      const run = new Run(start);
      for (const each of steps) await run.do(each);
    }),
    { numRuns: 1_000 },
  );
});

/** Machines and a ledger in memory, for the routes that show and change them. */

import type {
  LedgerOffice,
  MachineBook,
  MachineBoot,
  NamedMachine,
  PendingMachine,
} from "../../src/http/ops/machine-book.ts";
import type { MachineSpec } from "../../src/model/objects/machine.ts";
import type { InstallGrant, LedgerEntry } from "../../src/model/permits/permit.ts";

export const ledgerId = "9f3c0a52";
export const nowMs = Date.UTC(2026, 10, 25, 12);
export const hourMs = 3_600_000;

export const plan: MachineBoot["plan"] = { then: "sanboot", timeoutSeconds: 7_200 };

/** A Machine object. */
export function machine(name: string, given: Partial<MachineSpec>): NamedMachine {
  const spec = { identities: [], approved: false, hold: false, labels: {}, metadata: {}, ...given };
  return { name, document: { origin: "cluster", uid: `uid-${name}`, generation: 1, spec } };
}

/** An entry of the ledger. */
export function entry(id: string, given: Partial<LedgerEntry>): LedgerEntry {
  return {
    id,
    identities: [],
    state: "Installed",
    spent: {},
    claimedAtMs: nowMs - hourMs,
    changedAtMs: nowMs - hourMs,
    timeoutSeconds: 7_200,
    group: "racks/web",
    profile: "racks/flatcar",
    addresses: [],
    ...given,
  };
}

export function openGrant(given: Partial<InstallGrant> = {}): InstallGrant {
  return { generation: 1, ledger: ledgerId, untilMs: nowMs + hourMs, scope: "NeverInstalled", ...given };
}

export interface FakeMachines {
  id: string | undefined;
  adopting: Awaited<ReturnType<LedgerOffice["adoptMachine"]>>;
  forgetting: Awaited<ReturnType<LedgerOffice["forget"]>>;
  readonly problems: string[];
  readonly machines: NamedMachine[];
  readonly entries: LedgerEntry[];
  readonly pending: PendingMachine[];
  readonly ended: Map<string, number>;
  readonly adopted: Map<string, number>;
  /** By key; undefined for an object that grants nothing. */
  readonly grants: Map<string, InstallGrant | undefined>;
  /** By identity. */
  readonly boots: Map<string, MachineBoot>;
  /** What was logged. */
  readonly logged: object[];
}

export function fakeMachines(): FakeMachines {
  return {
    id: ledgerId,
    adopting: "adopted",
    forgetting: "forgotten",
    problems: [],
    machines: [],
    entries: [],
    pending: [],
    ended: new Map(),
    adopted: new Map(),
    grants: new Map(),
    boots: new Map(),
    logged: [],
  };
}

export function bookOf(fake: FakeMachines): MachineBook {
  const { grants, boots } = fake;
  return {
    revision: 0,
    machines: () => fake.machines,
    pending: () => fake.pending,
    bootOf: (identities) => identities.map((identity) => boots.get(identity)).find((boot) => boot !== undefined),
    grantOf: (key) => (grants.has(key) ? { kind: "object", grant: grants.get(key) } : { kind: "missing" }),
    problems: fake.problems,
    ledger: {
      get id() {
        return fake.id;
      },
      nowMs,
      isFull: false,
      get entries() {
        return new Map(fake.entries.map((each) => [each.id, each]));
      },
      ended: fake.ended,
      adopted: fake.adopted,
      endedGeneration: (key) => fake.ended.get(key) ?? 0,
      adoptedUntilMs: (group) => fake.adopted.get(group) ?? 0,
      entriesOf: (identities) =>
        fake.entries.filter((each) => each.identities.some((identity) => identities.includes(identity))),
    },
  };
}

export function officeOf(fake: FakeMachines): LedgerOffice {
  const { logged } = fake;
  return {
    adopt: (group, untilMs) => {
      logged.push({ group, untilMs });
      return Promise.resolve("adopted");
    },
    adoptMachine: (identities, group) => {
      logged.push({ identities, group });
      return Promise.resolve(fake.adopting);
    },
    forget: (identities) => {
      logged.push({ forgotten: identities });
      return Promise.resolve(fake.forgetting);
    },
  };
}

/** Machines, a ledger and a desk for tests of the gate: small, and with the decisions of model/permits/permit.ts. */

import {
  BootConfigs,
  type BootConfigsOptions,
  type ConfigName,
  type ConfigRequest,
} from "../../src/boot/boot-configs.ts";
import { BootError } from "../../src/boot/core/boot-error.ts";
import type { BootLedger } from "../../src/boot/core/selected.ts";
import { BootIndex, type BootIndexOptions } from "../../src/boot/selection/boot-index.ts";
import { type LabelPair, labelsFromQuery } from "../../src/model/labels/labels.ts";
import { machinePath, machineTombstonePath } from "../../src/model/objects/documents.ts";
import {
  encodeMachine,
  encodeMachineTombstone,
  type MachineDocument,
  type MachineSpec,
  type MachineTombstone,
} from "../../src/model/objects/machine.ts";
import {
  type InstallGrant,
  type InstallPlan,
  type LedgerEntry,
  type Verdict,
  verdictOf,
} from "../../src/model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, PermitDesk } from "../../src/model/permits/permit-desk.ts";
import { type Documents, log } from "./open-index.ts";

export const ledgerId = "9f3c0a52";
export const nowMs = 1_800_000_000_000;
export const plan: InstallPlan = { then: "sanboot", timeoutSeconds: 7_200 };
export const mac = "52:54:00:a1:9c:ae";
export const uuid = "4c4c4544-0042-3510-8052-b4c04f4d5a32";

type Document = Documents[number];

export function grant(generation = 1, more: Partial<InstallGrant> = {}): InstallGrant {
  return { generation, ledger: ledgerId, untilMs: nowMs + 3_600_000, scope: "NeverInstalled", ...more };
}

/** `id` is `namespace/name`. */
export function machineDocument(
  id: string,
  spec: Partial<MachineSpec> = {},
  state: Partial<Pick<MachineDocument, "tenant" | "refused">> = {},
): Document {
  const [namespace = "", name = ""] = id.split("/");
  const whole: MachineSpec = {
    identities: [`mac/${mac}`],
    approved: false,
    hold: false,
    labels: {},
    metadata: {},
    ...spec,
  };
  const origin = "test.yaml, document 1 (line 1)";
  return [machinePath(namespace, name), encodeMachine({ origin, uid: "u", generation: 1, spec: whole, ...state })];
}

export function machineTombstone(id: string, stone: MachineTombstone): Document {
  const [namespace = "", name = ""] = id.split("/");
  return [machineTombstonePath(namespace, name), encodeMachineTombstone(stone)];
}

export function entry(more: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    id: "00000000000000aa",
    identities: [`mac/${mac}`],
    state: "Claimed",
    grant: { key: "group/lab/node", generation: 1 },
    spent: { "group/lab/node": 1 },
    claimedAtMs: nowMs,
    changedAtMs: nowMs,
    timeoutSeconds: plan.timeoutSeconds,
    group: "lab/node",
    profile: "lab/web",
    addresses: [],
    ...more,
  };
}

/** A ledger in memory. */
export class TestLedger implements BootLedger {
  id: string | undefined = ledgerId;
  nowMs = nowMs;
  readonly isFull = false;
  entries: LedgerEntry[] = [];
  readonly reported = new Map<string, string>();

  endedGeneration(): number {
    return 0;
  }

  adoptedUntilMs(): number {
    return 0;
  }

  entriesOf(identities: readonly string[]): readonly LedgerEntry[] {
    return this.entries.filter((each) => identities.some((identity) => each.identities.includes(identity)));
  }

  reportedLabels(): readonly LabelPair[] {
    return [...this.reported];
  }
}

/** A desk that logs claims in a `TestLedger`, as the ledger's writer does. */
export class TestDesk implements Pick<PermitDesk, "ask"> {
  readonly asked: DeskAsk[] = [];
  /** Called after the decision and before the answer. */
  meanwhile: () => void = () => undefined;
  isLate = false;
  readonly #ledger: TestLedger;

  constructor(ledger: TestLedger) {
    this.#ledger = ledger;
  }

  async ask(question: DeskAsk): Promise<DeskAnswer> {
    this.asked.push(question);
    const answer = this.isLate
      ? ({ kind: "late" } as const)
      : this.#answer(question, verdictOf(question, this.#ledger));
    await Promise.resolve();
    this.meanwhile();
    return answer;
  }

  #answer(question: DeskAsk, verdict: Verdict): DeskAnswer {
    if (verdict.kind === "granted") return { ...verdict, reportToken: "t".repeat(32) };
    if (verdict.kind !== "claim") return verdict;
    if (!question.mayClaim) return { kind: "refused", why: "notClaimed" };
    const { identities, group, profile } = question;
    const [first] = verdict.grants;
    const claimed = entry({
      identities,
      grant: first,
      spent: Object.fromEntries(verdict.grants.map(({ key, generation }) => [key, generation])),
      claimedAtMs: this.#ledger.nowMs,
      changedAtMs: this.#ledger.nowMs,
      group,
      profile,
    });
    this.#ledger.entries = [claimed];
    return { kind: "granted", entry: claimed, reportToken: "t".repeat(32) };
  }
}

export interface GateWorld {
  readonly index: BootIndex;
  readonly configs: BootConfigs;
  readonly ledger: TestLedger;
  readonly desk: TestDesk;
}

/** A boot service with a ledger and a desk. */
export function gateWorld(
  documents: Documents,
  more: Partial<BootConfigsOptions> = {},
  indexOptions: Partial<BootIndexOptions> = {},
): GateWorld {
  const ledger = new TestLedger();
  const desk = new TestDesk(ledger);
  const index = new BootIndex({ log, ledger, ...indexOptions });
  index.replaced(documents);
  index.open();
  return { index, ledger, desk, configs: configsOver(index, { permits: desk, ...more }) };
}

export function configsOver(index: BootConfigsOptions["index"], more: Partial<BootConfigsOptions> = {}): BootConfigs {
  const grub = { separator: "auto", commands: "auto" } as const;
  return new BootConfigs({ index, authority: "192.0.2.1:80", grub, ...more });
}

/** What a machine gets: the first line after `#!ipxe`, the body of a config, or the reason of the refusal. */
export async function answerOf(
  configs: BootConfigs,
  rawQuery: string,
  name: ConfigName = "ipxe",
  more: Pick<ConfigRequest, "mayClaim" | "transport"> = {},
): Promise<string> {
  try {
    const labels = labelsFromQuery(rawQuery);
    const { rendered } = await configs.answer(name, { labels, rawQuery, userAgent: "", mayClaim: true, ...more });
    return name === "ipxe" ? (rendered.body.split("\n")[1] ?? "") : rendered.body;
  } catch (error) {
    if (error instanceof BootError)
      return error.problem === undefined ? error.reason : `${error.reason}: ${error.problem}`;
    throw error;
  }
}

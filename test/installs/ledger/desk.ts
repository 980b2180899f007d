/** A ledger on a disk in memory, and the questions of machines. */

import { createHash } from "node:crypto";
import { Ledger, type LedgerOptions } from "../../../src/installs/ledger/ledger.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import type { InstallGrant, InstallPlan, NamedGrant } from "../../../src/model/permits/permit.ts";
import type { DeskAnswer, DeskAsk } from "../../../src/model/permits/permit-desk.ts";
import type { Store } from "../../../src/store/store.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { type FaultFiles, seededPick } from "../../helpers/fault-files.ts";
import { memoryFiles, openStore, silentLog } from "../../helpers/test-store.ts";

export const hourMs = 3_600_000;

export interface Desk {
  readonly clock: FakeClock;
  readonly files: FaultFiles;
  readonly store: Store;
  readonly ledger: Ledger;
  /** Ends the ledger and its store in good order. */
  stop(): Promise<void>;
}

export interface DeskOptions extends Partial<LedgerOptions> {
  readonly files?: FaultFiles;
  readonly clock?: FakeClock;
}

let seeds = 0;

/** A source of random bytes that differs at each call. */
export function seededBytes(seed = ++seeds): (bytes: number) => Uint8Array {
  const pick = seededPick(seed);
  return (bytes) =>
    createHash("sha512")
      .update(`${seed}/${pick(2 ** 30)}`)
      .digest()
      .subarray(0, bytes);
}

export async function openDesk({
  files = memoryFiles(),
  clock = new FakeClock(),
  ...more
}: DeskOptions = {}): Promise<Desk> {
  const store = more.store ?? (await openStore(files, { clock: clock as Clock }));
  const ledger = await Ledger.open({ clock, random: seededBytes(), log: silentLog, ...more, store });
  const stop = async () => {
    await ledger.stop();
    await store.stop();
  };
  return { clock, files, store, ledger, stop };
}

export const uuidA = "uuid/4c4c4544-0001-4a10-8020-b4c04f202020";
export const uuidB = "uuid/4c4c4544-0002-4a10-8020-b4c04f202020";
export const macA = "mac/52:54:00:a1:9c:ae";
export const macB = "mac/52:54:00:a1:9c:af";

/** A grant of the Group racks/web in the present ledger, which ends in a day. */
export function grantOf(
  { ledger, clock }: Pick<Desk, "ledger" | "clock">,
  change: Partial<InstallGrant> = {},
): NamedGrant {
  return {
    key: "group/racks/web",
    grant: {
      generation: 1,
      scope: "NeverInstalled",
      untilMs: clock.nowMs() + 24 * hourMs,
      ...(ledger.id !== undefined && { ledger: ledger.id }),
      ...change,
    },
  };
}

/** A plan after whose install the machine leaves the boot script. */
export function planOf(timeoutSeconds: number): InstallPlan {
  // An object literal with this name looks like a promise to the linter.
  const local = ["then", "exit"] as const;
  return { timeoutSeconds, ...Object.fromEntries([local]) } as InstallPlan;
}

export function question(change: Partial<DeskAsk> = {}): DeskAsk {
  return {
    purpose: "script",
    identities: [uuidA, macA],
    grants: [],
    plan: planOf(7_200),
    group: "racks/web",
    profile: "racks/flatcar",
    revision: "r1",
    mayClaim: true,
    isSealed: false,
    address: "10.0.0.1",
    rawQuery: "",
    ...change,
  };
}

/** Asks, and returns the answer in short: its kind, or why it was refused. */
export async function asked(desk: Pick<Desk, "ledger">, change: Partial<DeskAsk> = {}): Promise<string> {
  return short(await desk.ledger.ask(question(change)));
}

export function short(answer: DeskAnswer): string {
  return answer.kind === "refused" ? answer.why : answer.kind;
}

/** Asks for an install that must be granted. */
export async function claimed(desk: Pick<Desk, "ledger">, change: Partial<DeskAsk>) {
  const answer = await desk.ledger.ask(question(change));
  if (answer.kind !== "granted") throw new Error(`not granted: ${short(answer)}`);
  return answer;
}

/** Waits for work that needs time to pass, such as a write of the mark. */
export async function whileTimePasses<Result>({ clock }: Pick<Desk, "clock">, work: Promise<Result>): Promise<Result> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  for (let step = 0; !isDone && step < 100; step++) await clock.advance(100);
  return await done;
}

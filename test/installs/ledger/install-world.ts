/**
 * A world that attacks a ledger: davit crashes at any call to the disk, its directory is lost or replaced by an older
 * copy, its clock steps, and machines send anything. The world counts installs by what machines were served, and knows
 * nothing of how the ledger works. `broken` is the first promise that was not kept.
 */

import type { LedgerMark } from "../../../src/installs/ledger/mark-keeper.ts";
import { type LedgerEntry, type NamedGrant, repeatMs } from "../../../src/model/permits/permit.ts";
import type { DeskAnswer, DeskAsk, MachineReport } from "../../../src/model/permits/permit-desk.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan, seededPick } from "../../helpers/fault-files.ts";
import { type Desk, openDesk, planOf, question, seededBytes } from "./desk.ts";

/** What the world remembers of a machine's name: no crash, loss or restore takes it away. */
interface Memory {
  /** When the machine was first served the script of a permit, by the monotonic clock. */
  readonly served: Map<string, number>;
  /** Permits whose install has begun or ended: the machine was served a config. */
  readonly begun: Set<string>;
}

export type Act =
  | { readonly act: "ask"; readonly asks: readonly AskAct[]; readonly crashesMeanwhile: boolean }
  | { readonly act: "report"; readonly token: number; readonly state: MachineReport["state"]; readonly forges: boolean }
  | {
      readonly act: "grant";
      readonly object: number;
      readonly raises: boolean;
      readonly hours: number;
      readonly all: boolean;
    }
  | { readonly act: "revert"; readonly to: number }
  | { readonly act: "wait"; readonly ms: number }
  | { readonly act: "step"; readonly ms: number }
  | { readonly act: "crash"; readonly plan: FaultPlan }
  | { readonly act: "stop" }
  | { readonly act: "lose" }
  | { readonly act: "copy" }
  | { readonly act: "restore"; readonly copy: number }
  | { readonly act: "forget"; readonly machine: number }
  | { readonly act: "adopt"; readonly hours: number }
  | { readonly act: "markFails"; readonly fails: boolean };

export interface AskAct {
  /** Which names the machine sends: bits of `names`. */
  readonly names: number;
  /** Names that a Machine lists; 0 for none. */
  readonly listed: number;
  readonly purpose: DeskAsk["purpose"];
  readonly mayClaim: boolean;
  readonly address: number;
}

/** Two machines with two network cards each. */
export const names: readonly string[] = [
  "uuid/4c4c4544-0001-4a10-8020-b4c04f202020",
  "mac/52:54:00:00:00:01",
  "mac/52:54:00:00:00:02",
  "uuid/4c4c4544-0002-4a10-8020-b4c04f202020",
  "mac/52:54:00:00:00:03",
];
const objects = ["group/racks/web", "machine/racks/one"] as const;

export class InstallWorld {
  readonly #clock = new FakeClock();
  readonly #memories = new Map<string, Memory>();
  /** Permits that a machine was refused because they had ended. */
  readonly #ended = new Set<string>();
  readonly #hasMark: boolean;
  readonly #copies: FaultFiles[] = [];
  readonly #tokens: string[] = [];
  /** All versions of the objects, as git has them. */
  readonly #versions: (readonly NamedGrant[])[] = [[]];
  #grants: readonly NamedGrant[] = [];
  #mark: { readonly id: string; readonly index: number } | undefined;
  #markFails = false;
  #desk: Desk | undefined;
  #files = new FaultFiles(seededPick(1));
  #seed: number;
  broken: string | undefined;
  /** How often each thing happened, so that a test knows that it tried them. */
  readonly seen = { granted: 0, repeated: 0, disk: 0, refused: 0, late: 0, crashed: 0, ledgers: new Set<string>() };

  constructor(seed: number, hasMark: boolean) {
    this.#seed = seed;
    this.#hasMark = hasMark;
  }

  async perform(acts: readonly Act[]): Promise<void> {
    for (const act of acts) {
      await this.#perform(act);
      if (this.broken !== undefined) break;
    }
    await this.#stop();
  }

  async #perform(act: Act): Promise<void> {
    switch (act.act) {
      case "ask":
        return await this.#ask(act.asks, act.crashesMeanwhile);
      case "report":
        return await this.#report(act);
      case "grant":
        return await this.#grant(act);
      case "revert":
        this.#grants = this.#versions[act.to % this.#versions.length] ?? [];
        this.#desk?.ledger.grantsChanged(this.#grants);
        return;
      case "wait":
        return await this.#clock.advance(act.ms);
      case "step":
        return this.#clock.stepWallClock(act.ms);
      case "crash":
        this.seen.crashed += 1;
        return await this.#crash(this.#files.afterCrash(act.plan));
      case "stop":
        return await this.#stop();
      case "lose":
        return await this.#crash(new FaultFiles(seededPick(++this.#seed)));
      case "copy":
        this.#copies.push(this.#files.reopened());
        return;
      case "restore": {
        const copy = this.#copies[act.copy % Math.max(1, this.#copies.length)];
        // Without a mark, nothing shows that a directory is older than it was: that is stated.
        if (copy === undefined || !this.#hasMark) return;
        return await this.#crash(copy.reopened());
      }
      case "forget": {
        const desk = await this.#running();
        await this.#settled(desk.ledger.forget([names[act.machine % names.length] ?? ""]));
        return;
      }
      case "adopt": {
        const desk = await this.#running();
        await this.#settled(desk.ledger.adopt("racks/web", desk.ledger.known.nowMs + act.hours * 3_600_000));
        return;
      }
      case "markFails":
        this.#markFails = act.fails;
        return;
    }
  }

  async #ask(asks: readonly AskAct[], crashesMeanwhile: boolean): Promise<void> {
    const desk = await this.#running();
    const sent = asks.map((each) => this.#questionOf(each));
    const { id } = desk.ledger;
    const answers = sent.map(async (each) => await desk.ledger.ask(each));
    if (crashesMeanwhile) {
      // The requests are on their way through the log, some further than others.
      for (let turn = asks.length; turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve));
      await this.#crash(this.#files.afterCrash());
      await this.#settled(Promise.all(answers));
      return;
    }
    const judged = (await this.#settled(Promise.all(answers))).map((answer, at) => ({ answer, asked: sent[at] }));
    // Of answers that were made at the same time, a script may have left before a config.
    for (const purpose of ["script", "config"]) {
      for (const { answer, asked } of judged) if (asked?.purpose === purpose) this.#judge(asked, answer, id);
    }
  }

  #questionOf({ names: bits, listed, purpose, mayClaim, address }: AskAct): DeskAsk {
    const among = (mask: number) => names.filter((_name, at) => (mask & (1 << at)) !== 0);
    return question({
      purpose,
      mayClaim,
      identities: among(bits),
      grants: this.#grants,
      plan: planOf(600),
      address: `10.0.0.${address}`,
      ...(listed > 0 && { listed: among(listed | bits) }),
    });
  }

  #judge(asked: DeskAsk, answer: DeskAnswer, ledger: string | undefined): void {
    if (answer.kind !== "granted") {
      this.seen[answer.kind] += 1;
      if (answer.kind === "refused" && answer.why === "ended" && asked.mayClaim) this.#noteEnded(asked, ledger);
      return;
    }
    this.#tokens.push(answer.reportToken);
    // A request that may not claim is served nothing that installs.
    if (asked.mayClaim) this.#judgeGranted(asked, answer.entry, ledger);
  }

  #judgeGranted(asked: DeskAsk, { grant }: LedgerEntry, ledger: string | undefined): void {
    const { key, generation } = grant ?? { key: "none", generation: 0 };
    const permit = `${ledger}/${key}/${generation}`;
    const memories = asked.identities.map((name) => this.#memoryOf(name));
    if (asked.purpose === "config") {
      // A config is no install by itself. But it ends the repeats of the script.
      for (const { begun } of memories) begun.add(permit);
      return;
    }
    const named = this.#grants.find((each) => each.key === key && each.grant.generation === generation);
    if (named === undefined) this.#break(`no object grants ${permit}`);
    else if (named.grant.ledger !== ledger) this.#break(`${permit} names the ledger ${named.grant.ledger}`);
    else if (this.#ended.has(permit)) this.#break(`${permit} had ended`);
    else this.#judgeServed(permit, memories);
  }

  /** A script that was served is the first one of its permit, or a repetition within a minute. */
  #judgeServed(permit: string, memories: readonly Memory[]): void {
    const nowMs = this.#clock.monotonicMs();
    const firstMs = Math.min(nowMs, ...memories.map(({ served }) => served.get(permit) ?? nowMs));
    const isRepeated = memories.some(({ served }) => served.has(permit));
    if (nowMs - firstMs > repeatMs) this.#break(`${permit} was served again after ${nowMs - firstMs} ms`);
    if (memories.some(({ begun }) => begun.has(permit))) this.#break(`${permit} was served after a config`);
    this.seen[isRepeated ? "repeated" : "granted"] += 1;
    for (const { served } of memories) if (!served.has(permit)) served.set(permit, firstMs);
  }

  #memoryOf(name: string): Memory {
    const memory = this.#memories.get(name) ?? { served: new Map(), begun: new Set() };
    this.#memories.set(name, memory);
    return memory;
  }

  #noteEnded({ grants }: DeskAsk, ledger: string | undefined): void {
    const nowMs = this.#desk?.ledger.known.nowMs ?? 0;
    for (const { key, grant } of grants) {
      const isOver = grant.ledger === ledger && grant.untilMs !== undefined && grant.untilMs <= nowMs;
      if (isOver) this.#ended.add(`${ledger}/${key}/${grant.generation}`);
    }
  }

  #break(how: string): void {
    this.broken ??= how;
  }

  async #report({ token, state, forges }: Extract<Act, { act: "report" }>): Promise<void> {
    const desk = await this.#running();
    const known = this.#tokens[token % Math.max(1, this.#tokens.length)] ?? "";
    const sent = forges ? `${known.slice(0, 20)}${Buffer.from(seededBytes(token)(9)).toString("base64url")}` : known;
    await this.#settled(desk.ledger.report(sent, { state, message: "x", progress: token }, "10.0.0.9"));
  }

  /** A person grants an install: a new generation, or other fields of the present one. */
  async #grant({ object, raises, hours, all }: Extract<Act, { act: "grant" }>): Promise<void> {
    const { ledger } = await this.#running();
    if (ledger.id === undefined) return;
    const key = objects[object % objects.length] ?? objects[0];
    const highest = Math.max(
      0,
      ...this.#versions
        .flat()
        .filter((each) => each.key === key)
        .map(({ grant }) => grant.generation),
    );
    const grant = {
      generation: raises ? highest + 1 : Math.max(1, highest),
      ledger: ledger.id,
      untilMs: ledger.known.nowMs + hours * 3_600_000,
      scope: all ? ("All" as const) : ("NeverInstalled" as const),
    };
    // The end of a permit that has ended is final: a person who sets it later must raise the generation.
    this.#grants = [...this.#grants.filter((each) => each.key !== key), { key, grant }];
    this.#versions.push(this.#grants);
    ledger.grantsChanged(this.#grants);
  }

  /** The davit that runs, after a start if there is none. */
  async #running(): Promise<Desk> {
    for (let attempt = 0; attempt < 20; attempt++) {
      if (this.#desk !== undefined) return this.#desk;
      const random = seededBytes(++this.#seed);
      try {
        const mark = this.#hasMark ? { mark: this.#markPort } : {};
        const opening = openDesk({ files: this.#files, clock: this.#clock, random, ...mark });
        this.#desk = await this.#settled(opening);
        this.#desk.ledger.grantsChanged(this.#grants);
        if (this.#desk.ledger.id !== undefined) this.seen.ledgers.add(this.#desk.ledger.id);
      } catch {
        this.#files = this.#files.afterCrash();
      }
    }
    if (this.#desk === undefined) throw new Error("davit never started");
    return this.#desk;
  }

  get #markPort(): LedgerMark {
    const assertWorks = () => {
      if (this.#markFails) throw new Error("the API server is away");
    };
    return {
      pauseMs: 200,
      read: async () => {
        assertWorks();
        return this.#mark;
      },
      write: async (id, index) => {
        assertWorks();
        if (this.#mark?.id !== id || this.#mark.index < index) this.#mark = { id, index };
      },
    };
  }

  async #stop(): Promise<void> {
    const desk = this.#desk;
    this.#desk = undefined;
    if (desk !== undefined) await this.#settled(desk.stop());
    this.#files = this.#files.reopened();
  }

  /** Ends davit without notice. The next one starts with these files. What this one still does, it does to others. */
  async #crash(files: FaultFiles): Promise<void> {
    const desk = this.#desk;
    this.#desk = undefined;
    this.#files = files;
    if (desk !== undefined) await this.#settled(desk.stop());
  }

  /** Waits for work, and lets time pass while it waits for time. */
  async #settled<Result>(work: Promise<Result>): Promise<Result> {
    let isDone = false;
    const done = work.finally(() => {
      isDone = true;
    });
    done.catch(() => undefined);
    for (let turn = 0; !isDone; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (turn > 50 && !isDone) await this.#clock.advance(100);
      if (turn > 1_000) throw new Error("stuck");
    }
    return await done;
  }
}

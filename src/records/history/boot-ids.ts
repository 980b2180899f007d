/**
 * Numbers the boots that this davit answers, so that the log lines of one boot have one id: from its script to its last
 * report. Nothing that a machine gets has the id.
 *
 * A request that names its machine belongs to that machine's boot. One without labels, such as for a kernel, belongs to
 * the boot of the only machine that named itself at its address shortly before. If it may be from several machines, it
 * has no id: davit never guesses.
 */

import { LRUCache } from "lru-cache";
import { isOwnUuid } from "../../model/labels/hardware-ids.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { isLoader } from "../../model/objects/profile.ts";
import { beginsBoot, bootGapMs, isFirstStage, isScriptGiven } from "./boot-rule.ts";
import { machineKey, ownCopy } from "./sent-labels.ts";
import { Tenancies } from "./tenancies.ts";

/** A boot that this davit answers. */
export interface NumberedBoot {
  /** 1 to 4294967295. */
  readonly number: number;
  /** The number in eight hexadecimal digits. */
  readonly id: string;
  /** The machine's key; undefined until it has named itself. */
  key: string | undefined;
  /** The uuid that the machine sent last, if it is its own. */
  uuid: string | undefined;
  /** True if the machine got a boot script. */
  hasScript: boolean;
  /** When its last request began or its last answer ended. */
  lastMs: number;
}

/** A request, when it begins. Times are by the monotonic clock. */
export interface BeginningRequest {
  /** The client's address. */
  readonly address: string;
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  readonly isHead: boolean;
  readonly startedMs: number;
}

export interface BootIdsOptions {
  /** A random number from 0 to below 1: after a restart, ids must differ from those before. */
  readonly random: () => number;
  /** Limits the machines, and also the addresses. Those seen longest ago are forgotten first. */
  readonly maxMachines?: number;
}

interface Here {
  /** Which machines named themselves at the address. */
  readonly tenancies: Tenancies;
  /** A boot that began with `/boot.ipxe`, until its machine names itself. */
  waiting: WaitingBoot | undefined;
}

interface WaitingBoot {
  readonly boot: NumberedBoot;
  /** True if another boot waited, too: perhaps of another machine. */
  readonly isDoubtful: boolean;
  isHead: boolean;
}

/** About 15 MiB if all of them are in use. */
const maxMachines = 32_768;
const numbers = 2 ** 32;
/** A download of less time changes little, and noting its end takes time. */
const longMs = 60_000;

export class BootIds {
  /** By the keys of machines, and by their uuids. */
  readonly #machines: LRUCache<string, NumberedBoot>;
  readonly #addresses: LRUCache<string, Here>;
  #number: number;

  constructor({ random, maxMachines: max = maxMachines }: BootIdsOptions) {
    this.#machines = new LRUCache({ max });
    this.#addresses = new LRUCache({ max });
    this.#number = Math.floor(random() * numbers);
  }

  /** Returns the boot of a request that names no machine; undefined in doubt. */
  unnamed(request: BeginningRequest): NumberedBoot | undefined {
    const { address, endpoint, startedMs } = request;
    if (isFirstStage(endpoint)) return this.#first(request);
    const here = this.#addresses.get(address);
    const only = here?.tenancies.onlyAt(startedMs);
    if (here === undefined || only === undefined) return undefined;
    const waiting = waitingAt(here, startedMs);
    // A machine that was here may fetch something, or another one that has not named itself.
    if (waiting !== undefined) return only === "none" && !waiting.isDoubtful ? waiting.boot : undefined;
    const boot = only === "none" ? undefined : this.#machines.get(only.key);
    return boot !== undefined && !isOver(boot, startedMs) ? boot : undefined;
  }

  /** Returns the boot of a request with labels. */
  named(request: BeginningRequest, labels: Labels): NumberedBoot | undefined {
    const key = machineKey(labels);
    if (key === undefined) return this.unnamed(request);
    const { address, endpoint, startedMs } = request;
    const here = this.#here(address);
    const waiting = isLoader(endpoint) ? claimable(here, key, startedMs) : undefined;
    if (waiting !== undefined) here.waiting = undefined;
    const known = this.#machines.get(key);
    const isSame = known && !beginsBoot(endpoint, { silentMs: startedMs - known.lastMs, hasScript: known.hasScript });
    const boot = waiting ?? (isSame === true ? known : this.#begin(startedMs));
    boot.key ??= known?.key === key ? known.key : ownCopy(key);
    here.tenancies.note(boot.key, startedMs);
    if (boot !== known) this.#machines.set(boot.key, boot);
    this.#noteUuid(boot, labels, known?.uuid);
    return boot;
  }

  /** Returns the boot in which an install began, for its reports: they may come much later. */
  reported(request: BeginningRequest, labels: Labels): NumberedBoot | undefined {
    const key = machineKey(labels);
    return (key === undefined ? undefined : this.#machines.get(key)) ?? this.named(request, labels);
  }

  /** Notes the end of an answer. */
  ended(
    boot: NumberedBoot,
    { address, endpoint, isHead, startedMs }: BeginningRequest,
    { status, endMs }: { readonly status: number; readonly endMs: number },
  ): void {
    boot.lastMs = Math.max(boot.lastMs, endMs);
    if (isScriptGiven({ endpoint, isHead, status })) boot.hasScript = true;
    // A long download ends: the machine is still here.
    if (boot.key !== undefined && endMs - startedMs > longMs)
      this.#addresses.get(address)?.tenancies.note(boot.key, endMs);
  }

  #first({ address, isHead, startedMs }: BeginningRequest): NumberedBoot {
    const here = this.#here(address);
    const before = waitingAt(here, startedMs);
    if (before?.isHead === true) {
      before.isHead = isHead;
      return before.boot;
    }
    here.waiting = { boot: this.#begin(startedMs), isDoubtful: before !== undefined, isHead };
    return here.waiting.boot;
  }

  #here(address: string): Here {
    const known = this.#addresses.get(address);
    if (known !== undefined) return known;
    const here: Here = { tenancies: new Tenancies(bootGapMs), waiting: undefined };
    this.#addresses.set(ownCopy(address), here);
    return here;
  }

  #begin(startedMs: number): NumberedBoot {
    this.#number = (this.#number + 1) % numbers || 1;
    return {
      number: this.#number,
      id: bootIdText(this.#number),
      key: undefined,
      uuid: undefined,
      hasScript: false,
      lastMs: startedMs,
    };
  }

  /** An operating system may send only the uuid of what its firmware sent. */
  #noteUuid(boot: NumberedBoot, labels: Labels, earlier: string | undefined): void {
    const uuid = labels.get("uuid");
    if (uuid === undefined || uuid === boot.uuid) return;
    if (uuid === earlier) boot.uuid = earlier;
    else if (isOwnUuid(uuid)) boot.uuid = ownCopy(uuid);
    else return;
    const key = `uuid=${boot.uuid}`;
    if (key !== boot.key) this.#machines.set(key, boot);
  }
}

/** Returns the id of a boot, as log lines have it. @param number 1 to 4294967295. */
export function bootIdText(number: number): string {
  return number.toString(16).padStart(8, "0");
}

function isOver({ lastMs }: NumberedBoot, nowMs: number): boolean {
  return nowMs - lastMs > bootGapMs;
}

function waitingAt({ waiting }: Here, nowMs: number): WaitingBoot | undefined {
  return waiting === undefined || isOver(waiting.boot, nowMs) ? undefined : waiting;
}

/** Returns the boot that waits for this machine; undefined if it may be that of another machine. */
function claimable(here: Here, key: string, nowMs: number): NumberedBoot | undefined {
  const waiting = waitingAt(here, nowMs);
  if (waiting === undefined || waiting.isDoubtful) return undefined;
  const only = here.tenancies.onlyAt(nowMs);
  return only === "none" || only?.key === key ? waiting.boot : undefined;
}

/**
 * Keeps the recorded requests of machines and addresses, and drops old ones to make room. A request that names its
 * machine is recorded for this machine, any other request for its address. For each address, davit also records which
 * machines named themselves there.
 *
 * Requests that followers answered come late, after newer requests of the same machine. No state goes back to them.
 */

import { Slices } from "../../lib/slices.ts";
import { isOwnUuid } from "../../model/labels/hardware-ids.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { keptValue } from "./label-sets.ts";
import { RequestRows, type SeenRequest } from "./request-rows.ts";
import { ownCopy } from "./shared-texts.ts";
import { type BootProgress, isLooping, isWaiting, newProgress, noteStep } from "./stuck.ts";
import { Tenancies } from "./tenancies.ts";
import { Track, Tracks } from "./tracks.ts";

export interface RecordLimits {
  /** The most machines, and also the most addresses. The least recently seen machine or address is dropped first. */
  readonly maxMachines: number;
  /** Limits the estimated memory of all records. */
  readonly maxBytes: number;
  /** Limits the requests of one machine, and those of one address. */
  readonly maxRequests: number;
  /** See `Tenancies`. */
  readonly gapMs: number;
}

export type AddressTrack = Track<Tenancies>;
export type MachineTrack = Track<MachineTraits>;

interface MachineTraits {
  readonly progress: BootProgress;
  /** Numbers of the machine's two latest label sets, 0 for none: one of its firmware, one of its operating system. */
  recent: number;
  earlier: number;
  /** The machine's latest address. A reference is quicker than a lookup. */
  address: AddressTrack;
}

interface NamedRequest {
  readonly seen: SeenRequest;
  readonly labels: Labels;
  /** True if the request is older than the machine's newest one. */
  readonly isLate: boolean;
}

/** How many machines are in each state. */
export interface StuckMachines {
  readonly looping: number;
  readonly waiting: number;
}

/** How many machines one slice counts. This takes less than a millisecond, even with cold caches. */
const sliceSize = 1_024;

/** Estimated memory of a track besides its rows: the object, its key, its map entry, and its members. */
const trackBytes = 450;

export class Records {
  readonly #limits: RecordLimits;
  readonly rows: RequestRows;
  readonly machines = new Tracks<MachineTraits>();
  readonly addresses = new Tracks<Tenancies>();
  /** Requests that followers answered and could not hand on. */
  missed = 0;

  constructor(limits: RecordLimits) {
    this.#limits = limits;
    this.rows = new RequestRows({ maxBytes: limits.maxBytes, maxRowsOfRing: limits.maxRequests });
  }

  /** Memory in use, estimated. It exceeds the limit by one machine at most. */
  get sizeBytes(): number {
    return this.rows.sizeBytes + (this.machines.count + this.addresses.count) * trackBytes;
  }

  /** Adds a request. @param labels of the machine; undefined if the history does not use them. */
  add(seen: SeenRequest, labels: Labels | undefined): void {
    this.#makeRoom();
    const seenMs = seen.startedMs + seen.durationMs;
    const key = labels === undefined ? undefined : machineKey(labels);
    if (labels === undefined || key === undefined) {
      const address = this.#addressTrack(seen.address, seenMs, undefined);
      this.rows.append(address.ring, seen, 0);
      return;
    }
    const known = this.machines.get(key);
    const address = this.#addressTrack(seen.address, seenMs, known?.own.address);
    const machine = known ?? this.#newMachine(key, address, seenMs);
    const { own, ring } = machine;
    const isLate = seenMs < machine.lastSeenMs;
    if (!isLate || !own.address.isKept) own.address = address;
    this.machines.touch(machine, seenMs);
    this.rows.append(ring, seen, this.#setOf(own, { seen, labels, isLate }));
    address.own.note(machine.key, seen.startedMs);
    noteStep(own.progress, seen);
  }

  /** Counts the machines that do not finish booting. It yields between slices. */
  *stuck(nowMs: number): Generator<undefined, StuckMachines> {
    const slices = new Slices(sliceSize);
    let [looping, waiting] = [0, 0];
    for (const { own } of this.machines.all()) {
      if (isLooping(own.progress, nowMs)) looping += 1;
      if (isWaiting(own.progress, nowMs)) waiting += 1;
      if (slices.isOver(1)) yield;
    }
    return { looping, waiting };
  }

  /** @param likely the track that probably has this key. To compare it is quicker than a lookup. */
  #addressTrack(key: string, seenMs: number, likely: AddressTrack | undefined): AddressTrack {
    const isLikely = likely?.key === key && likely.isKept;
    const known = isLikely ? likely : this.addresses.get(key);
    if (known !== undefined) {
      this.addresses.touch(known, seenMs);
      return known;
    }
    if (this.addresses.count >= this.#limits.maxMachines) this.#forgetAddress(this.addresses.oldest);
    return this.addresses.add(new Track(ownCopy(key), new Tenancies(this.#limits.gapMs)), seenMs);
  }

  #newMachine(key: string, address: AddressTrack, seenMs: number): MachineTrack {
    if (this.machines.count >= this.#limits.maxMachines) this.#forgetMachine(this.machines.oldest);
    return this.machines.add(
      new Track(ownCopy(key), { progress: newProgress(), recent: 0, earlier: 0, address }),
      seenMs,
    );
  }

  #setOf(own: MachineTraits, { seen, labels, isLate }: NamedRequest): number {
    // A report sends a token in place of labels. What davit knows by it must not displace what the machine sent.
    if (seen.endpoint === "report" && own.recent !== 0) return own.recent;
    return isLate ? this.#lateLabelSet(own, labels) : this.#labelSet(own, labels);
  }

  /** Returns the number of the set with these labels, and makes it the machine's recent set. */
  #labelSet(sent: MachineTraits, labels: Labels): number {
    const { labelSets } = this.rows;
    if (labelSets.is(sent.recent, labels)) return sent.recent;
    const { recent, earlier } = sent;
    if (labelSets.is(earlier, labels)) {
      sent.recent = earlier;
    } else {
      labelSets.release(earlier);
      sent.recent = labelSets.add(labels);
    }
    sent.earlier = recent;
    return sent.recent;
  }

  /** As `#labelSet`, for a request that is older than the machine's newest one. */
  #lateLabelSet(sent: MachineTraits, labels: Labels): number {
    const { labelSets } = this.rows;
    if (labelSets.is(sent.recent, labels)) return sent.recent;
    if (labelSets.is(sent.earlier, labels)) return sent.earlier;
    labelSets.release(sent.earlier);
    sent.earlier = labelSets.add(labels);
    return sent.earlier;
  }

  #makeRoom(): void {
    while (!this.rows.hasRoom || this.sizeBytes > this.#limits.maxBytes) {
      const machine = this.machines.oldest;
      const address = this.addresses.oldest;
      if (machine === undefined && address === undefined) return;
      const machineMs = machine?.lastSeenMs ?? Number.POSITIVE_INFINITY;
      if (address === undefined || machineMs <= address.lastSeenMs) this.#forgetMachine(machine);
      else this.#forgetAddress(address);
    }
  }

  #forgetMachine(machine: MachineTrack | undefined): void {
    if (machine === undefined) return;
    this.machines.delete(machine);
    this.rows.release(machine.ring);
    this.rows.labelSets.release(machine.own.recent);
    this.rows.labelSets.release(machine.own.earlier);
  }

  #forgetAddress(address: AddressTrack | undefined): void {
    if (address === undefined) return;
    this.addresses.delete(address);
    this.rows.release(address.ring);
  }
}

/**
 * Returns the key of a machine, from the first label that names it; undefined if none does. The MAC is first, because
 * every firmware sends it, and because some boards share a UUID.
 */
export function machineKey(labels: Labels): string | undefined {
  const mac = keptValue(labels, "mac");
  if (mac !== undefined) return mac;
  for (const name of ["uuid", "serial", "hostname"]) {
    const value = keptValue(labels, name);
    if (value !== undefined && (name !== "uuid" || isOwnUuid(value))) return `${name}=${value}`;
  }
  return undefined;
}

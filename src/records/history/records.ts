/**
 * Keeps the recorded requests of machines and addresses, and drops old ones to make room. A request that names its
 * machine is recorded for this machine, any other request for its address. For each address, davit also records which
 * machines named themselves there.
 *
 * Requests that followers answered come late, after newer requests of the same machine. No state goes back to them.
 */

import { LRUCache } from "lru-cache";
import { Slices } from "../../lib/slices.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { bootGapMs } from "./boot-rule.ts";
import { endOf, firstRefusal, type KeptRequest, type SeenRequest } from "./request.ts";
import { isSameSet, keptLabels, machineKey, noLabels, ownCopy } from "./sent-labels.ts";
import { type BootProgress, isLooping, isWaiting, newProgress, noteStep } from "./stuck.ts";
import { Tenancies } from "./tenancies.ts";

export interface RecordLimits {
  /** The most machines, and also the most addresses. The least recently seen machine or address is dropped first. */
  readonly maxMachines: number;
  /** Limits the estimated memory of all records, and of what waits to be recorded. */
  readonly maxBytes: number;
  /** Limits the requests of one machine, and those of one address. */
  readonly maxRequests: number;
}

/** The requests of one machine or address. */
interface Track {
  readonly key: string;
  /** In the order in which their answers ended. */
  readonly requests: CountedRequest[];
  lastSeenMs: number;
  /** Estimated memory. */
  bytes: number;
  /** False after the track was dropped. */
  isKept: boolean;
}

export interface AddressTrack extends Track {
  readonly tenancies: Tenancies;
}

export interface MachineTrack extends Track {
  /** The machine's two latest label sets: one of its firmware, one of its operating system. */
  recent: Labels;
  earlier: Labels;
  /** The machine's latest address. */
  address: AddressTrack;
  readonly progress: BootProgress;
}

/** How many machines are in each state. */
interface StuckMachines {
  readonly looping: number;
  readonly waiting: number;
}

/** How many machines one slice counts. This takes less than a millisecond, even with cold caches. */
const sliceSize = 1_024;

// Estimated memory, as measured with Node 24.
const trackBytes = 450;
const requestBytes = 216;
const labelsBytes = 256;
const textBytes = 24;

/** How many strings that many requests share are kept: endpoints, Groups, paths. */
const maxTexts = 1_024;

export class Records {
  readonly #limits: RecordLimits;
  readonly #machines: LRUCache<string, MachineTrack>;
  readonly #addresses: LRUCache<string, AddressTrack>;
  readonly #texts = new LRUCache<string, string>({ max: maxTexts });
  #sizeBytes = 0;
  /** Requests that followers answered and could not hand on. */
  missed = 0;

  constructor(limits: RecordLimits) {
    this.#limits = limits;
    const max = limits.maxMachines;
    const dispose = (track: Track) => {
      track.isKept = false;
      this.#sizeBytes -= track.bytes;
    };
    this.#machines = new LRUCache<string, MachineTrack>({ max, dispose });
    this.#addresses = new LRUCache<string, AddressTrack>({ max, dispose });
  }

  /** Memory in use, estimated. It exceeds the limit by one machine at most. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** All machines, the last seen first. */
  get machines(): readonly MachineTrack[] {
    return [...this.#machines.values()];
  }

  /** All addresses, the last seen first. */
  get addresses(): readonly AddressTrack[] {
    return [...this.#addresses.values()];
  }

  machine(key: string): MachineTrack | undefined {
    return this.#machines.peek(key);
  }

  address(address: string): AddressTrack | undefined {
    return this.#addresses.peek(address);
  }

  /** Adds a request. Call `makeRoom` before. */
  add(seen: SeenRequest): void {
    const { labels, startedMs, durationMs, endpoint } = seen;
    const seenMs = startedMs + durationMs;
    const address = this.#addressOf(seen.address, seenMs);
    const key = labels && machineKey(labels);
    if (labels === undefined || key === undefined) {
      this.#insert(address, seen, { address: address.key, labels: noLabels });
      return;
    }
    const machine = this.#machineOf(key, labels, address);
    const isLate = seenMs < machine.lastSeenMs;
    if (!isLate) this.#machines.get(key);
    if (!isLate || !machine.address.isKept) machine.address = address;
    machine.lastSeenMs = Math.max(machine.lastSeenMs, seenMs);
    this.#insert(machine, seen, { address: address.key, labels: setOf(machine, { endpoint, labels, isLate }) });
    address.tenancies.note(machine.key, startedMs);
    noteStep(machine.progress, seen);
  }

  /** Drops what was seen longest ago until there is room. @param waitingBytes memory of what is not recorded yet. */
  makeRoom(waitingBytes: number): void {
    while (this.#sizeBytes + waitingBytes > this.#limits.maxBytes) {
      const [machine] = this.#machines.rvalues();
      const [address] = this.#addresses.rvalues();
      const machineMs = machine?.lastSeenMs ?? Number.POSITIVE_INFINITY;
      if (machine !== undefined && machineMs <= (address?.lastSeenMs ?? machineMs)) this.#machines.delete(machine.key);
      else if (address !== undefined) this.#addresses.delete(address.key);
      else return;
    }
  }

  /** Counts the machines that do not finish booting. It yields between slices. */
  *stuck(nowMs: number): Generator<undefined, StuckMachines> {
    const slices = new Slices(sliceSize);
    let [looping, waiting] = [0, 0];
    for (const { progress } of [...this.#machines.values()]) {
      if (isLooping(progress, nowMs)) looping += 1;
      if (isWaiting(progress, nowMs)) waiting += 1;
      if (slices.isOver(1)) yield;
    }
    return { looping, waiting };
  }

  #addressOf(key: string, seenMs: number): AddressTrack {
    const known = this.#addresses.get(key);
    if (known !== undefined) {
      known.lastSeenMs = Math.max(known.lastSeenMs, seenMs);
      return known;
    }
    const address = { ...newTrack(ownCopy(key)), lastSeenMs: seenMs, tenancies: new Tenancies(bootGapMs) };
    this.#addresses.set(address.key, address);
    return address;
  }

  #machineOf(key: string, labels: Labels, address: AddressTrack): MachineTrack {
    const known = this.#machines.peek(key);
    if (known !== undefined) return known;
    const recent = keptLabels(labels);
    const own = { ...newTrack(machineKey(recent) ?? key), address, recent, earlier: noLabels, progress: newProgress() };
    this.#machines.set(own.key, own);
    return own;
  }

  /** @param shared values that the requests of a track share. */
  #insert(track: Track, seen: SeenRequest, shared: Pick<KeptRequest, "address" | "labels">): void {
    const { startedMs, durationMs, isHead, status, sentBytes, ofBytes, isCut, boot } = seen;
    const added: CountedRequest = {
      startedMs,
      lastStartedMs: startedMs,
      durationMs,
      address: shared.address,
      endpoint: this.#shared(seen.endpoint),
      path: this.#shared(seen.path),
      isHead,
      status,
      group: this.#shared(seen.group),
      sentBytes,
      ofBytes,
      isCut,
      refusal: this.#shared(seen.refusal),
      via: this.#shared(seen.via),
      boot,
      labels: shared.labels,
      times: 1,
    };
    insertRequest(track.requests, added, this.#limits.maxRequests);
    this.#sizeBytes -= track.bytes;
    track.bytes = bytesOf(track);
    this.#sizeBytes += track.bytes;
  }

  /** Returns a copy of a string that many requests have, which they share. */
  #shared<Text extends string | undefined>(text: Text): Text {
    if (text === undefined) return text;
    const known = this.#texts.get(text);
    if (known !== undefined) return known as Text;
    const own = ownCopy(text);
    this.#texts.set(own, own);
    return own as Text;
  }
}

function newTrack(key: string): Track {
  return { key, requests: [], lastSeenMs: Number.NEGATIVE_INFINITY, bytes: 0, isKept: true };
}

interface SentSet {
  readonly endpoint: string;
  readonly labels: Labels;
  /** True if the request is older than the machine's newest one. */
  readonly isLate: boolean;
}

/** Returns the machine's set with these labels, and makes it the machine's recent one. */
function setOf(machine: MachineTrack, { endpoint, labels, isLate }: SentSet): Labels {
  const { recent, earlier } = machine;
  // A report sends a token in place of labels. What davit knows by it must not displace what the machine sent.
  if (endpoint === "report" || isSameSet(recent, labels)) return recent;
  const set = isSameSet(earlier, labels) ? earlier : keptLabels(labels);
  machine.earlier = isLate ? set : recent;
  if (!isLate) machine.recent = set;
  return set;
}

/** Estimates the memory of a track. Requests in a row share equal strings and labels. */
function bytesOf({ requests }: Track): number {
  let bytes = trackBytes;
  let before: KeptRequest | undefined;
  // A plain loop, because every request runs this.
  for (const request of requests) {
    const { path, group, via, labels } = request;
    bytes += requestBytes;
    if (path !== before?.path) bytes += bytesOfText(path);
    if (group !== before?.group) bytes += bytesOfText(group);
    if (via !== before?.via) bytes += bytesOfText(via);
    if (labels !== before?.labels && labels !== noLabels) bytes += bytesOfLabels(labels);
    before = request;
  }
  return bytes;
}

/** Estimates a string's memory. V8 needs one byte for a unit of a Latin-1 string, else two. This always counts two. */
function bytesOfText(text: string | undefined): number {
  return text === undefined ? 0 : textBytes + text.length * 2;
}

function bytesOfLabels(labels: Labels): number {
  let bytes = labelsBytes;
  for (const value of labels.values()) bytes += bytesOfText(value);
  return bytes;
}

/** A request that further ones may be counted into. */
type CountedRequest = { -readonly [Member in keyof KeptRequest]: KeptRequest[Member] };

/**
 * Adds a request to those of one machine or address, in the order in which answers ended. This davit's own requests
 * arrive in this order. Those of followers come seconds late, so each is inserted at its place. Repeated refusals are
 * one request with a count, so that they do not displace others.
 * @param most beyond this many requests the oldest one is dropped, which can be the added one.
 */
function insertRequest(kept: CountedRequest[], added: CountedRequest, most: number): void {
  let at = kept.length;
  for (let before = kept[at - 1]; before !== undefined && endOf(before) > endOf(added); before = kept[at - 1]) at--;
  const [before, after] = [kept[at - 1], kept[at]];
  const isWithin = after !== undefined && after.times > 1 && after.startedMs < added.startedMs;
  if (after !== undefined && isRepeated(after, added)) countAgain(after, added);
  else if (!isWithin && before !== undefined && isRepeated(before, added)) countAgain(before, added);
  else kept.splice(at, 0, ...(isWithin ? [splitOff(after, added.startedMs)] : []), added);
  while (kept.length > most) kept.shift();
}

/** True for a refusal that equals an earlier one. */
function isRepeated(kept: KeptRequest, added: KeptRequest): boolean {
  return (
    added.status >= firstRefusal &&
    kept.status === added.status &&
    kept.isHead === added.isHead &&
    kept.isCut === added.isCut &&
    kept.refusal === added.refusal &&
    kept.labels === added.labels &&
    kept.endpoint === added.endpoint &&
    kept.path === added.path &&
    kept.group === added.group &&
    kept.address === added.address
  );
}

function countAgain(kept: CountedRequest, { startedMs, durationMs, via, boot }: KeptRequest): void {
  kept.times += 1;
  kept.startedMs = Math.min(kept.startedMs, startedMs);
  if (startedMs < kept.lastStartedMs) return;
  Object.assign(kept, { lastStartedMs: startedMs, durationMs, via, boot });
}

/**
 * Splits repeated refusals, between which another request came: the last one stays. Only the times of the first and the
 * last one are known. @returns the earlier ones.
 */
function splitOff(kept: CountedRequest, timeMs: number): CountedRequest {
  const { startedMs, lastStartedMs, times } = kept;
  const earlierMs = times === 2 ? startedMs : Math.min(timeMs, lastStartedMs);
  const earlier = { ...kept, lastStartedMs: earlierMs, times: times - 1 };
  kept.startedMs = lastStartedMs;
  kept.times = 1;
  return earlier;
}

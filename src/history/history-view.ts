/**
 * Answers questions about the records: whose requests they are, and when they came.
 *
 * A request belongs to the machine that its labels name. `/boot.ipxe` and assets carry no labels: they are recorded by
 * address. Such a request belongs to a machine if no other machine named itself at that address shortly before or
 * after; otherwise it belongs to none. davit never guesses.
 */

import type { Clock } from "../lib/clock.ts";
import type { Labels } from "../model/labels.ts";
import type { Intake } from "./intake.ts";
import type { AddressTrack, MachineTrack, Records } from "./records.ts";
import type { KeptRequest } from "./request-rows.ts";

/** A request, with times by the wall clock, Unix milliseconds. */
export interface PastRequest extends Omit<KeptRequest, "startedMs" | "lastStartedMs"> {
  readonly startedAtMs: number;
  /** Of the last one, if the same request was refused several times in a row. */
  readonly lastStartedAtMs: number;
  /** It named no machine, and is assigned to this one by its address. */
  readonly isByAddress: boolean;
}

/** One machine; or, without labels, an address where none has named itself. */
export interface MachineHistory {
  /** The reserved labels, each with its latest value. */
  readonly labels: Labels;
  readonly addresses: readonly string[];
  readonly lastSeenAtMs: number;
  /** Sorted by when they began. */
  readonly requests: readonly PastRequest[];
  /** Requests of its addresses that may be its own, or another machine's. */
  readonly unclaimed: readonly UnclaimedRequests[];
}

export interface UnclaimedRequests {
  readonly address: string;
  readonly count: number;
}

/** Requests that came faster than they could be recorded. */
export interface UnrecordedRequests {
  readonly count: number;
  /** When the first and the last of them began, Unix milliseconds. */
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** The most addresses that are searched for a list: most have only machines' requests. */
const maxLooks = 500;

/** How a listener that takes IPv4 and IPv6 writes the address of an IPv4 client. */
const mappedPrefix = "::ffff:";

export interface HistoryViewOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly records: Records;
  readonly intake: Pick<Intake, "lost">;
}

/** Use it at once: later records may or may not show. */
export class HistoryView {
  readonly #clock: HistoryViewOptions["clock"];
  readonly #records: Records;
  readonly #intake: HistoryViewOptions["intake"];

  constructor({ clock, records, intake }: HistoryViewOptions) {
    this.#clock = clock;
    this.#records = records;
    this.#intake = intake;
  }

  /** Undefined when everything was recorded since the start. */
  get unrecorded(): UnrecordedRequests | undefined {
    const { lost } = this.#intake;
    if (lost === undefined) return undefined;
    const offsetMs = this.#offsetMs;
    return { count: lost.count, firstAtMs: offsetMs + lost.firstMs, lastAtMs: offsetMs + lost.lastMs };
  }

  /** The machines that were seen last, and addresses with requests of unknown machines. */
  recent(limit: number): readonly MachineHistory[] {
    const { machines, addresses } = this.#records;
    const nobodys = first(addresses.newestFirst(), maxLooks).filter((track) => this.#hasUnknown(track));
    return [
      ...first(machines.newestFirst(), limit).map((track) => this.#ofMachine(track)),
      ...nobodys.slice(0, limit).map((track) => this.#ofAddress(track, (keys) => keys?.length === 0)),
    ]
      .toSorted((one, other) => other.lastSeenAtMs - one.lastSeenAtMs)
      .slice(0, limit);
  }

  /**
   * Machines that sent all these labels, those seen last first.
   * @param asked values of reserved labels, in normalised form.
   */
  find(asked: Labels, limit: number): readonly MachineHistory[] {
    const said = [...asked];
    const found = first(this.#mayHaveSaid(asked), limit, (track) => this.#hasSaid(track, said));
    return found.map((track) => this.#ofMachine(track));
  }

  /**
   * The requests from an address: the machines that named themselves there, and requests that belong to no single one.
   */
  at(address: string): readonly MachineHistory[] {
    const { machines, addresses } = this.#records;
    const track = addresses.get(address) ?? addresses.get(`${mappedPrefix}${address}`);
    if (track === undefined) return [];
    const known = track.own.keys.map((key) => machines.get(key)).filter((machine) => machine !== undefined);
    const nobodys = this.#ofAddress(track, (keys) => keys?.length !== 1);
    return [...known.map((machine) => this.#ofMachine(machine)), ...(nobodys.requests.length > 0 ? [nobodys] : [])];
  }

  /**
   * Machines that include all with these labels. A machine that sends a MAC is recorded under it, and most questions
   * have one.
   */
  #mayHaveSaid(asked: Labels): Iterable<MachineTrack> {
    const { machines } = this.#records;
    const mac = asked.get("mac");
    if (mac === undefined) return machines.newestFirst();
    const machine = machines.get(mac);
    return machine === undefined ? [] : [machine];
  }

  #hasSaid({ own: { recent, earlier } }: MachineTrack, said: readonly (readonly [string, string])[]): boolean {
    const { labelSets } = this.#records.rows;
    // Tens of thousands are checked in a row: no garbage is made for each.
    return said.every(([name, value]) => labelSets.has(recent, name, value) || labelSets.has(earlier, name, value));
  }

  #hasUnknown({ ring, own }: AddressTrack): boolean {
    return this.#records.rows.startTimes(ring).some((startedMs) => own.at(startedMs)?.length === 0);
  }

  #ofMachine({ key, ring }: MachineTrack): MachineHistory {
    const { rows, addresses } = this.#records;
    const named = rows.read(ring);
    const labels = new Map(named.flatMap((request) => [...request.labels]));
    const seenAt = [...new Set(named.map(({ address }) => address))];
    const tracks = seenAt.map((address) => addresses.get(address)).filter((track) => track !== undefined);
    const near = tracks.map((track) => ({
      address: plainAddress(track.key),
      requests: rows.read(track.ring).filter(({ startedMs }) => track.own.at(startedMs)?.includes(key) !== false),
      isOwn: ({ startedMs }: KeptRequest) => track.own.at(startedMs)?.length === 1,
    }));
    const joined = near.flatMap(({ requests, isOwn }) => requests.filter(isOwn));
    const requests = [...this.#past(named, false), ...this.#past(joined, true)].toSorted(byStart);
    const unclaimed = near.map(({ address, requests: all, isOwn }) => ({
      address,
      count: all.filter((request) => !isOwn(request)).length,
    }));
    return {
      labels,
      addresses: seenAt.map(plainAddress),
      lastSeenAtMs: lastSeen(requests),
      requests,
      unclaimed: unclaimed.filter(({ count }) => count > 0),
    };
  }

  /** @param isShown decides on a request by the machines that it may belong to; undefined for too many. */
  #ofAddress(
    { key, ring, own }: AddressTrack,
    isShown: (keys: readonly string[] | undefined) => boolean,
  ): MachineHistory {
    const requests = this.#records.rows.read(ring).filter(({ startedMs }) => isShown(own.at(startedMs)));
    const past = this.#past(requests, true);
    return {
      labels: new Map(),
      addresses: [plainAddress(key)],
      lastSeenAtMs: lastSeen(past),
      requests: past,
      unclaimed: [],
    };
  }

  /** From the monotonic to the present wall clock: if the clock was corrected meanwhile, it was wrong before. */
  get #offsetMs(): number {
    return this.#clock.nowMs() - this.#clock.monotonicMs();
  }

  #past(requests: readonly KeptRequest[], isByAddress: boolean): readonly PastRequest[] {
    const offsetMs = this.#offsetMs;
    return requests.map(({ startedMs, lastStartedMs, ...request }) => ({
      ...request,
      address: plainAddress(request.address),
      startedAtMs: offsetMs + startedMs,
      lastStartedAtMs: offsetMs + lastStartedMs,
      isByAddress,
    }));
  }
}

function first<Item>(items: Iterable<Item>, limit: number, isWanted = (_item: Item) => true): readonly Item[] {
  const found: Item[] = [];
  for (const item of items) {
    if (found.length >= limit) break;
    if (isWanted(item)) found.push(item);
  }
  return found;
}

function byStart(one: PastRequest, other: PastRequest): number {
  return one.startedAtMs - other.startedAtMs;
}

function lastSeen(requests: readonly PastRequest[]): number {
  return Math.max(...requests.map(({ lastStartedAtMs, durationMs }) => lastStartedAtMs + durationMs));
}

function plainAddress(address: string): string {
  return address.startsWith(mappedPrefix) ? address.slice(mappedPrefix.length) : address;
}

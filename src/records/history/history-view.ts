/**
 * Answers queries over the records: which machine sent which requests, and when.
 *
 * A request belongs to the machine that its labels name. Requests for `/boot.ipxe` and assets have no labels, so davit
 * records them by address. If exactly one machine named itself at that address shortly before or after, the request
 * belongs to this machine. Otherwise it belongs to none: davit never guesses.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { Intake } from "./intake.ts";
import type { AddressTrack, MachineTrack, Records } from "./records.ts";
import type { KeptRequest } from "./request-rows.ts";

/** A request with wall-clock times, in Unix milliseconds. */
export interface PastRequest extends Omit<KeptRequest, "startedMs" | "lastStartedMs"> {
  readonly startedAtMs: number;
  /** Start of the last repetition, if the same request was refused several times in a row. */
  readonly lastStartedAtMs: number;
  /** True if the request named no machine, and davit assigned it to this machine by its address. */
  readonly isByAddress: boolean;
}

/** The history of one machine. Without labels, it has the requests of an address that belong to no single machine. */
export interface MachineHistory {
  /** The reserved labels, each with its latest value. */
  readonly labels: Labels;
  readonly addresses: readonly string[];
  readonly lastSeenAtMs: number;
  /** Sorted by start time. */
  readonly requests: readonly PastRequest[];
  /** Requests from the machine's addresses that may be from this machine or from another one. */
  readonly unclaimed: readonly UnclaimedRequests[];
}

/** A machine and its newest request, for lists of many machines. */
export interface RecordedMachine {
  /** The reserved labels, each with its latest value. */
  readonly labels: Labels;
  readonly address: string;
  readonly lastSeenAtMs: number;
  readonly last: PastRequest;
  /** Of its newest request with labels: files have no Group. */
  readonly group: string | undefined;
}

export interface UnclaimedRequests {
  readonly address: string;
  readonly count: number;
}

/** Requests that were dropped because they came faster than davit could record them. */
export interface UnrecordedRequests {
  readonly count: number;
  /** Start times of the first and the last one, Unix milliseconds. */
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** How many addresses `recent` searches for requests of unknown machines. Most addresses have no such request. */
const maxLooks = 500;

/** A listener for both IPv4 and IPv6 puts this prefix before an IPv4 client's address. */
const mappedPrefix = "::ffff:";

export interface HistoryViewOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly records: Records;
  readonly intake: Pick<Intake, "lost">;
}

/** A view of the records. Use it immediately: later it may or may not include requests that came meanwhile. */
export class HistoryView {
  readonly #clock: HistoryViewOptions["clock"];
  readonly #records: Records;
  readonly #intake: HistoryViewOptions["intake"];

  constructor({ clock, records, intake }: HistoryViewOptions) {
    this.#clock = clock;
    this.#records = records;
    this.#intake = intake;
  }

  /** Undefined if every request since the start was recorded. */
  get unrecorded(): UnrecordedRequests | undefined {
    const { lost } = this.#intake;
    if (lost === undefined) return undefined;
    const offsetMs = this.#offsetMs;
    return { count: lost.count, firstAtMs: offsetMs + lost.firstMs, lastAtMs: offsetMs + lost.lastMs };
  }

  /** How many requests followers answered and could not hand on, since the start. */
  get missed(): number {
    return this.#records.missed;
  }

  /** Returns machines, and addresses with requests of unknown machines, in one list: the last seen first. */
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

  /** Yields every machine, in no particular order. The records may change meanwhile. */
  *recordedMachines(): Generator<RecordedMachine> {
    const { machines, rows } = this.#records;
    for (const { key, ring, own } of machines.all()) {
      const named = rows.newest(ring);
      const near = rows.newest(own.address.ring);
      // A file that was fetched after the last request with labels.
      const isOwn = near !== undefined && named !== undefined && near.startedMs > named.startedMs;
      const isAlone = isOwn && own.address.own.at(near.startedMs)?.join(" ") === key;
      const [last] = this.#past(
        [isAlone ? near : named].filter((each) => each !== undefined),
        isAlone,
      );
      if (last === undefined) continue;
      // An operating system sends fewer labels than the firmware.
      const labels = new Map([...rows.labelSets.get(own.earlier), ...rows.labelSets.get(own.recent)]);
      yield { labels, address: last.address, lastSeenAtMs: lastSeen([last]), last, group: named?.group };
    }
  }

  /**
   * Returns machines that sent all these labels, the last seen first.
   * @param asked normalized values of reserved labels.
   */
  find(asked: Labels, limit: number): readonly MachineHistory[] {
    const said = [...asked];
    const found = first(this.#mayHaveSaid(asked), limit, (track) => this.#hasSaid(track, said));
    return found.map((track) => this.#ofMachine(track));
  }

  /**
   * Returns the machines that named themselves at an address. Then comes the address itself, with its requests that
   * belong to no single machine.
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
   * Returns every machine that may have sent these labels. If a MAC is among them, as in most queries, there is at most
   * one such machine, because the MAC is its key.
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
    // One query checks tens of thousands of machines, so this allocates nothing.
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

  /** @param isShown selects a request by the machines that it may be from; undefined means too many machines. */
  #ofAddress(
    { key, ring, own }: AddressTrack,
    isShown: (keys: readonly string[] | undefined) => boolean,
  ): MachineHistory {
    const requests = this.#records.rows.read(ring).filter(({ startedMs }) => isShown(own.at(startedMs)));
    const past = this.#past(requests, true).toSorted(byStart);
    return {
      labels: new Map(),
      addresses: [plainAddress(key)],
      lastSeenAtMs: lastSeen(past),
      requests: past,
      unclaimed: [],
    };
  }

  /** The difference of the two clocks now. After a correction of the wall clock, earlier times are corrected, too. */
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

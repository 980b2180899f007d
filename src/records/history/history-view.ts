/**
 * Answers queries over the records: which machine sent which requests, and when.
 *
 * A request belongs to the machine that its labels name. Requests for `/boot.ipxe` and assets have no labels, so davit
 * records them by address. If exactly one machine named itself at that address shortly before or after, the request
 * belongs to this machine. Otherwise it belongs to none: davit never guesses.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { AddressTrack, MachineTrack, Records } from "./records.ts";
import type { KeptRequest } from "./request.ts";
import { noLabels } from "./sent-labels.ts";

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

interface UnclaimedRequests {
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

interface HistoryViewOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly records: Records;
  readonly unrecorded: () => UnrecordedRequests | undefined;
}

/** A view of the records. Use it immediately: later it may or may not include requests that came meanwhile. */
export class HistoryView {
  readonly #options: HistoryViewOptions;
  readonly #records: Records;

  constructor(options: HistoryViewOptions) {
    this.#options = options;
    this.#records = options.records;
  }

  /** Undefined if every request since the start was recorded. */
  get unrecorded(): UnrecordedRequests | undefined {
    return this.#options.unrecorded();
  }

  /** How many requests followers answered and could not hand on, since the start. */
  get missed(): number {
    return this.#records.missed;
  }

  /** Returns machines, and addresses with requests of unknown machines, in one list: the last seen first. */
  recent(limit: number): readonly MachineHistory[] {
    const { machines, addresses } = this.#records;
    const nobodys = first(addresses, maxLooks).filter((track) => this.#hasUnknown(track));
    return [
      ...first(machines, limit).map((track) => this.#ofMachine(track)),
      ...nobodys.slice(0, limit).map((track) => this.#ofAddress(track, (keys) => keys?.length === 0)),
    ]
      .toSorted((one, other) => other.lastSeenAtMs - one.lastSeenAtMs)
      .slice(0, limit);
  }

  /** Yields every machine, in no particular order. The records may change meanwhile. */
  *recordedMachines(): Generator<RecordedMachine> {
    const past = this.#past;
    for (const { key, requests, recent, earlier, address } of this.#records.machines) {
      const named = requests.at(-1);
      const near = address.requests.at(-1);
      // A file that was fetched after the last request with labels.
      const isOwn = near !== undefined && named !== undefined && near.startedMs > named.startedMs;
      const isAlone = isOwn && address.tenancies.at(near.startedMs)?.join(" ") === key;
      const newest = isAlone ? near : named;
      if (newest === undefined) continue;
      const last = past(newest, isAlone);
      // An operating system sends fewer labels than the firmware.
      const labels = new Map([...earlier, ...recent]);
      yield { labels, address: last.address, lastSeenAtMs: lastSeen([last]), last, group: named?.group };
    }
  }

  /**
   * Returns machines that sent all these labels, the last seen first.
   * @param asked normalized values of reserved labels.
   */
  find(asked: Labels, limit: number): readonly MachineHistory[] {
    const said = [...asked];
    // One query checks tens of thousands of machines, so this allocates nothing.
    const hasSaid = ({ recent, earlier }: MachineTrack) =>
      said.every(([name, value]) => recent.get(name) === value || earlier.get(name) === value);
    return first(this.#mayHaveSaid(asked), limit, hasSaid).map((track) => this.#ofMachine(track));
  }

  /**
   * Returns the machines that named themselves at an address. Then comes the address itself, with its requests that
   * belong to no single machine.
   */
  at(address: string): readonly MachineHistory[] {
    const records = this.#records;
    const track = records.address(address) ?? records.address(`${mappedPrefix}${address}`);
    if (track === undefined) return [];
    const known = track.tenancies.keys.map((key) => records.machine(key)).filter((machine) => machine !== undefined);
    const nobodys = this.#ofAddress(track, (keys) => keys?.length !== 1);
    return [...known.map((machine) => this.#ofMachine(machine)), ...(nobodys.requests.length > 0 ? [nobodys] : [])];
  }

  /**
   * Returns every machine that may have sent these labels. If a MAC is among them, as in most queries, there is at most
   * one such machine, because the MAC is its key.
   */
  #mayHaveSaid(asked: Labels): readonly MachineTrack[] {
    const mac = asked.get("mac");
    if (mac === undefined) return this.#records.machines;
    const machine = this.#records.machine(mac);
    return machine === undefined ? [] : [machine];
  }

  #hasUnknown({ requests, tenancies }: AddressTrack): boolean {
    return requests.some(({ startedMs }) => tenancies.at(startedMs)?.length === 0);
  }

  #ofMachine({ key, requests: named }: MachineTrack): MachineHistory {
    const labels = new Map(named.flatMap((request) => [...request.labels]));
    const seenAt = [...new Set(named.map(({ address }) => address))];
    const near = seenAt.flatMap((address) => {
      const track = this.#records.address(address);
      if (track === undefined) return [];
      const { requests, tenancies } = track;
      const maybeOwn = requests.filter(({ startedMs }) => tenancies.at(startedMs)?.includes(key) !== false);
      const own = maybeOwn.filter(({ startedMs }) => tenancies.at(startedMs)?.length === 1);
      return [{ address: plainAddress(address), own, unclaimed: maybeOwn.length - own.length }];
    });
    const past = this.#past;
    const joined = near.flatMap(({ own }) => own.map((request) => past(request, true)));
    const requests = [...named.map((request) => past(request, false)), ...joined].toSorted(byStart);
    return {
      labels,
      addresses: seenAt.map(plainAddress),
      lastSeenAtMs: lastSeen(requests),
      requests,
      unclaimed: near.flatMap(({ address, unclaimed: count }) => (count > 0 ? [{ address, count }] : [])),
    };
  }

  /** @param isShown selects a request by the machines that it may be from; undefined means too many machines. */
  #ofAddress(
    { key, requests, tenancies }: AddressTrack,
    isShown: (keys: readonly string[] | undefined) => boolean,
  ): MachineHistory {
    const shown = requests.filter(({ startedMs }) => isShown(tenancies.at(startedMs)));
    const past = this.#past;
    const all = shown.map((request) => past(request, true)).toSorted(byStart);
    return {
      labels: noLabels,
      addresses: [plainAddress(key)],
      lastSeenAtMs: lastSeen(all),
      requests: all,
      unclaimed: [],
    };
  }

  /** By the difference of the two clocks now: a correction of the wall clock corrects earlier times, too. */
  get #past() {
    const { clock } = this.#options;
    const offsetMs = clock.nowMs() - clock.monotonicMs();
    return ({ startedMs, lastStartedMs, ...request }: KeptRequest, isByAddress: boolean): PastRequest => ({
      ...request,
      address: plainAddress(request.address),
      startedAtMs: offsetMs + startedMs,
      lastStartedAtMs: offsetMs + lastStartedMs,
      isByAddress,
    });
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

/**
 * Keeps the statuses of Machines in line with the ledger and with the requests of machines. A reconcile shows its
 * status immediately. All other changes wait for their turn, at a limited rate: they never delay the statuses of other
 * objects for long, and no request of a machine waits for them.
 */

import { TokenBucket } from "../../lib/token-bucket.ts";
import { machinePhases } from "../../model/objects/machine.ts";
import { type ObjectName, type ObjectStatus, objectKey } from "../../model/objects/source.ts";
import type { MachineSighting } from "../../model/sighting.ts";
import type { ControllerPorts } from "../core/controller-ports.ts";
import type { Documents } from "../core/documents.ts";
import { groupName } from "../core/names.ts";
import type { LedgerFacts } from "../permits/grants.ts";
import { Grants } from "../permits/grants.ts";
import type { MachineIdentities } from "./identities.ts";
import { shownMachine } from "./machine-facts.ts";
import type { Sightings } from "./sightings.ts";

interface MachineBoardOptions extends Pick<ControllerPorts, "clock" | "metrics"> {
  readonly ledger?: LedgerFacts | undefined;
  readonly sightings?: Sightings | undefined;
  readonly documents: Pick<Documents, "machine" | "group" | "profile">;
  readonly identities: MachineIdentities;
  readonly show: (name: ObjectName, status: ObjectStatus) => void;
}

interface BoardEntry {
  readonly name: ObjectName;
  /** What the last reconcile reported. */
  readonly reported: ObjectStatus;
  readonly shown: ObjectStatus;
}

const turnMs = 1_000;
/** A third of what the status writer writes, and enough at once for a small fleet. */
const pace = { perSecond: 50, burst: 500 } as const;
// One look takes about 50 µs.
const looksPerTurn = 1_000;

export class MachineBoard {
  readonly #options: MachineBoardOptions;
  readonly #entries = new Map<string, BoardEntry>();
  /** Machines to look at again, the first one first. */
  readonly #due = new Map<string, ObjectName>();
  readonly #bucket: TokenBucket;
  readonly #grants: Grants | undefined;
  readonly #ends: (() => void)[] = [];
  readonly #stopping = new AbortController();
  /** Ends the wait for work. */
  #wake = () => {};
  #running: Promise<void> = Promise.resolve();

  constructor(options: MachineBoardOptions) {
    this.#options = options;
    const { clock, ledger, metrics } = options;
    this.#bucket = new TokenBucket({ clock, ...pace });
    this.#grants = ledger && new Grants(ledger);
    for (const phase of machinePhases) metrics.machines.set({ phase }, 0);
  }

  /** Begins to follow the ledger and the requests. Without both, statuses show only what reconciles report. */
  start(): void {
    const { ledger, sightings } = this.#options;
    if (ledger !== undefined) this.#ends.push(ledger.onChange((entries) => this.#lookAtEntries(entries)));
    if (sightings !== undefined) this.#ends.push(sightings.follow((sighting) => this.#lookAt(sighting.identities)));
    if (this.#ends.length > 0) this.#running = this.#run();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    this.#stopping.abort();
    this.#wake();
    await this.#running;
  }

  /** Shows what a reconcile reports. */
  report(name: ObjectName, reported: ObjectStatus): void {
    this.#noteGrant(name);
    this.#show(name, reported, this.#shownOf(name, reported));
  }

  #noteGrant(name: ObjectName): void {
    const grant = this.#options.documents.machine(name.namespace, name.name)?.spec.install;
    if (grant === undefined) this.#grants?.forget(name);
    else this.#grants?.note(name, grant);
    this.#wake();
  }

  forget(name: ObjectName): void {
    const key = objectKey(name);
    this.#count(this.#entries.get(key), -1);
    this.#entries.delete(key);
    this.#due.delete(key);
    this.#grants?.forget(name);
  }

  /** Looks again at the Machines that these Groups last took. */
  lookAtGroups(names: readonly ObjectName[]): void {
    if (this.#entries.size === 0) return;
    const ids = new Set(names.map(({ namespace, name }) => `${namespace}/${name}`));
    for (const [key, { name, shown }] of this.#entries) {
      if (ids.has(shown.machine?.group ?? "")) this.#add(key, name);
    }
  }

  #lookAtEntries(entries: Parameters<Parameters<LedgerFacts["onChange"]>[0]>[0]): void {
    if (entries === undefined) for (const [key, { name }] of this.#entries) this.#add(key, name);
    else for (const { identities } of entries) this.#lookAt(identities);
  }

  #lookAt(identities: readonly string[]): void {
    for (const name of this.#options.identities.of(identities)) this.#add(objectKey(name), name);
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#work();
      await this.#options.clock.sleep(turnMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      for (const name of this.#grants?.changed() ?? []) this.#add(objectKey(name), name);
      this.#turn();
    }
  }

  /** Resolves when there may be something to do. A grant ends without any news. */
  #work(): Promise<void> {
    if (this.#due.size > 0 || (this.#grants?.size ?? 0) > 0 || this.#stopping.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #add(key: string, name: ObjectName): void {
    this.#due.set(key, name);
    this.#wake();
  }

  #turn(): void {
    let looks = 0;
    for (const [key, name] of this.#due) {
      if (looks++ >= looksPerTurn) return;
      const entry = this.#entries.get(key);
      const status = entry && this.#shownOf(name, entry.reported);
      const isNews = entry !== undefined && status !== undefined && isNewsIn(entry.shown, status);
      if (isNews && !this.#bucket.tryTake()) return;
      this.#due.delete(key);
      this.#noteGrant(name);
      if (isNews) this.#show(name, entry.reported, status);
    }
  }

  #show(name: ObjectName, reported: ObjectStatus, shown: ObjectStatus): void {
    const key = objectKey(name);
    const entry = { name, reported, shown };
    this.#count(this.#entries.get(key), -1);
    this.#count(entry, 1);
    this.#entries.set(key, entry);
    this.#options.show(name, shown);
  }

  #shownOf(id: ObjectName, status: ObjectStatus): ObjectStatus {
    const { documents, ledger, sightings } = this.#options;
    const document = documents.machine(id.namespace, id.name);
    const identities = document?.spec.identities ?? [];
    const newest = sightings?.newestWith(identities);
    const mistaken = newest && this.#mistaken(id, newest);
    // The request may be of another machine, so it shows nothing about this one.
    const sighting = mistaken === undefined ? sightings?.of(identities) : undefined;
    const [entry] = ledger?.entriesOf(identities) ?? [];
    const group = this.#groupOf(sighting?.group ?? entry?.group);
    const profile = group && documents.profile(group.id.namespace, group.document.spec.profile).document;
    const installs = profile?.content.install !== undefined;
    const isMixedUp = newest?.result === "ambiguous";
    return shownMachine({ id, status, document, group, installs, ledger, sighting, isMixedUp, mistaken });
  }

  #groupOf(group: string | undefined) {
    if (group === undefined || group === "") return undefined;
    const id = groupName(group);
    const document = this.#options.documents.group(id.namespace, id.name);
    return document && { id, document };
  }

  /** Another Machine whose identities the request had, too. */
  #mistaken(id: ObjectName, { identities }: MachineSighting): ObjectName | undefined {
    return this.#options.identities.of(identities).find((name) => objectKey(name) !== objectKey(id));
  }

  #count(entry: BoardEntry | undefined, by: 1 | -1): void {
    const phase = entry?.shown.machine?.phase;
    if (phase !== undefined) this.#options.metrics.machines.inc({ phase }, by);
  }
}

/** False if only an address or a script has changed since the last step of time: the next step shows them, too. */
function isNewsIn(before: ObjectStatus, now: ObjectStatus): boolean {
  return newsOf(before) !== newsOf(now);
}

function newsOf({ conditions, machine }: ObjectStatus): string {
  const { address: _, rendered: _rendered, boot, ...news } = machine ?? {};
  return JSON.stringify([conditions, news, boot?.result]);
}

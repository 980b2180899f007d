/**
 * Enrols unknown machines: a machine that a Group with `enroll` takes, and that no Machine names, gets a Machine that
 * waits for a person. It approves and grants nothing. Anybody in the boot network can invent machines. So their number
 * and rate are limited, clients share them, and davit deletes a Machine after a day if nobody has changed it. Without a
 * place for Machines, as with a directory of files, davit only lists the machines.
 */

import { messageOf } from "../../lib/errors.ts";
import { Shares } from "../../lib/shares.ts";
import { networkOf } from "../../lib/text/address.ts";
import { SharedBucket } from "../../lib/token-bucket.ts";
import { groupPath } from "../../model/objects/documents.ts";
import { type MachineObject, type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { MachineSighting } from "../../model/sighting.ts";
import type { ControllerPorts, MachineMaker } from "../core/controller-ports.ts";
import type { Documents } from "../core/documents.ts";
import { groupName } from "../core/names.ts";
import type { MachineIdentities } from "./identities.ts";
import type { Sightings } from "./sightings.ts";

interface EnrolmentOptions extends Pick<ControllerPorts, "clock" | "log" | "source" | "machineMaker" | "metrics"> {
  readonly documents: Pick<Documents, "group" | "textAt">;
  readonly identities: MachineIdentities;
  readonly sightings?: Sightings | undefined;
}

/** A machine that waits for a Machine, or for the approval of its Machine. */
export interface Enrolled {
  readonly identities: readonly string[];
  /** `namespace/name` of the Group that enrolls it. */
  readonly group: string;
  /** Unix milliseconds. */
  readonly firstSeenAtMs: number;
}

interface Pending extends Enrolled {
  readonly name: ObjectName;
  /** Monotonic: since when it waits, as far as this davit knows. */
  readonly sinceMs: number;
  /** The client that asked; undefined if it is not known. */
  readonly client: string | undefined;
}

const rate = { perSecond: 5, burst: 50 } as const;
const mostPending = 1_000;
const lifetimeMs = 24 * 60 * 60_000;
const checkMs = 60_000;
/** A created Machine is not in view at once. */
const arrivalMs = 60_000;

export class Enrolment {
  readonly #options: EnrolmentOptions;
  readonly #bucket: SharedBucket;
  /** How many of the machines that wait each client has. */
  readonly #shares = new Shares({ limit: mostPending });
  /** By the key of the Machine that it has, or would have. The oldest is first. */
  readonly #pending = new Map<string, Pending>();
  /** By `namespace/name`: whether a Group enrolls, and the text of its document. Reading it again would take longer. */
  readonly #enrolling = new Map<string, { readonly text: string; readonly isEnrolling: boolean }>();
  readonly #stopping = new AbortController();
  readonly #works = new Set<Promise<void>>();
  /** Why davit could not create a Machine, until it creates one again: the log has one line for an outage. */
  #problem: string | undefined;
  #end: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: EnrolmentOptions) {
    this.#options = options;
    this.#bucket = new SharedBucket({ clock: options.clock, ...rate });
    for (const reason of ["rate", "full", "failed"]) options.metrics.enrolmentsRefused.inc({ reason }, 0);
  }

  start(): void {
    const { sightings } = this.#options;
    if (sightings === undefined) return;
    this.#end = sightings.follow((sighting, isOwn) => {
      if (isOwn) this.#saw(sighting);
    });
    this.#running = this.#check();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#end?.();
    this.#stopping.abort();
    await this.#running;
    await Promise.all(this.#works);
  }

  /** Problems for the operator, one per line. */
  get attention(): readonly string[] {
    return this.#problem === undefined ? [] : [`enrolment: cannot create a Machine: ${this.#problem}`];
  }

  /** Machines that no Machine names, because the source has no place for Machines. */
  *listed(): Iterable<Enrolled> {
    if (this.#options.machineMaker !== undefined) return;
    for (const { identities, group, firstSeenAtMs } of this.#pending.values()) {
      if (!this.#isKnown(identities)) yield { identities, group, firstSeenAtMs };
    }
  }

  #saw(sighting: MachineSighting): void {
    const { identities, group, address } = sighting;
    if (group === undefined || this.#isKnown(identities) || !this.#isEnrolling(group)) return;
    const name = nameOf(groupName(group).namespace, identities);
    if (name === undefined || this.#pending.has(objectKey(name))) return;
    const client = address === undefined ? undefined : networkOf(address);
    const refusal = this.#refusal(client);
    if (refusal !== undefined) {
      this.#options.metrics.enrolmentsRefused.inc({ reason: refusal });
      return;
    }
    const sinceMs = this.#options.clock.monotonicMs();
    this.#add({ name, identities, group, firstSeenAtMs: sighting.atMs, sinceMs, client });
    this.#measure();
    if (this.#options.machineMaker !== undefined)
      this.#track(this.#create(this.#options.machineMaker, name, identities));
  }

  #refusal(client: string | undefined): "rate" | "full" | undefined {
    if (!this.#shares.admits(client)) return "full";
    return this.#bucket.tryTake(client) ? undefined : "rate";
  }

  #add(pending: Pending): void {
    this.#pending.set(objectKey(pending.name), pending);
    this.#shares.add(pending.client, 1);
  }

  #remove(key: string): void {
    const pending = this.#pending.get(key);
    if (pending !== undefined && this.#pending.delete(key)) this.#shares.release(pending.client);
  }

  #isKnown(identities: readonly string[]): boolean {
    return this.#options.identities.of(identities).length > 0;
  }

  #isEnrolling(group: string): boolean {
    const { namespace, name } = groupName(group);
    const { documents } = this.#options;
    const text = documents.textAt(groupPath(namespace, name));
    const known = this.#enrolling.get(group);
    if (known !== undefined && known.text === text) return known.isEnrolling;
    const document = documents.group(namespace, name);
    const isEnrolling = document?.spec.enroll === true && document.refused !== true && document.outdated !== true;
    if (text === undefined) this.#enrolling.delete(group);
    else this.#enrolling.set(group, { text, isEnrolling });
    return isEnrolling;
  }

  async #create(maker: MachineMaker, id: ObjectName, identities: readonly string[]): Promise<void> {
    const { namespace, name } = id;
    try {
      await maker.create({ namespace, name, identity: identityOf(identities) });
      this.#problem = undefined;
    } catch (error) {
      this.#remove(objectKey(id));
      this.#options.metrics.enrolmentsRefused.inc({ reason: "failed" });
      const isNews = this.#problem === undefined;
      this.#problem = messageOf(error);
      if (!isNews) return;
      this.#options.log.warn({ namespace, name, err: this.#problem }, "cannot create a Machine for a new machine");
    }
  }

  async #check(): Promise<void> {
    for (;;) {
      this.#learn();
      this.#expire();
      await this.#options.clock.sleep(checkMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
    }
  }

  /** Finds the Machines that look as davit created them, and forgets those that a person has changed or deleted. */
  #learn(): void {
    const { source, clock, machineMaker } = this.#options;
    if (machineMaker === undefined) return;
    const nowMs = clock.monotonicMs();
    const untouched = new Map<string, Pending>();
    for (const machine of source.view.all("Machine")) {
      const name: ObjectName = { kind: "Machine", namespace: machine.namespace, name: machine.name };
      if (!looksUntouched(machine)) continue;
      const { identities } = machine.spec;
      const found = { name, identities, group: "", firstSeenAtMs: clock.nowMs(), sinceMs: nowMs, client: undefined };
      untouched.set(objectKey(name), found);
    }
    for (const [key, { sinceMs }] of this.#pending) {
      if (!untouched.has(key) && nowMs - sinceMs >= arrivalMs) this.#remove(key);
    }
    for (const [key, found] of untouched) if (!this.#pending.has(key)) this.#add(found);
    this.#measure();
  }

  #expire(): void {
    const { clock, machineMaker } = this.#options;
    for (const [key, { name, identities, sinceMs }] of this.#pending) {
      const hasMachine = machineMaker === undefined && this.#isKnown(identities);
      if (clock.monotonicMs() - sinceMs < lifetimeMs && !hasMachine) continue;
      this.#remove(key);
      if (machineMaker !== undefined) this.#track(this.#delete(machineMaker, name));
    }
    this.#measure();
  }

  async #delete(maker: MachineMaker, { namespace, name }: ObjectName): Promise<void> {
    try {
      await maker.deleteUntouched({ namespace, name });
    } catch (error) {
      this.#options.log.warn(
        { namespace, name, err: messageOf(error) },
        "cannot delete a Machine that nobody approved",
      );
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#works.delete(tracked));
    this.#works.add(tracked);
  }

  #measure(): void {
    this.#options.metrics.pendingMachines.set(this.#pending.size);
  }
}

/** True for a Machine as `create` makes it. The API server knows more: its labels, and who has changed it. */
function looksUntouched({ namespace, name, generation, spec }: MachineObject): boolean {
  const { approved, hold, labels, metadata, install, identities } = spec;
  const isPlain = !approved && !hold && install === undefined && Object.keys({ ...labels, ...metadata }).length === 0;
  return isPlain && generation === 1 && nameOf(namespace, identities)?.name === name;
}

/** The name of the Machine of an unknown machine: `mac-525400a19cae`, or `uuid-...` without a MAC address. */
function nameOf(namespace: string, identities: readonly string[]): ObjectName | undefined {
  const mac = identityValue("mac", identities)?.replaceAll(":", "");
  const uuid = identityValue("uuid", identities);
  if (mac === undefined && uuid === undefined) return undefined;
  return { kind: "Machine", namespace, name: mac === undefined ? `uuid-${uuid}` : `mac-${mac}` };
}

function identityOf(identities: readonly string[]) {
  const uuid = identityValue("uuid", identities);
  const macs = identities.filter((identity) => identity.startsWith("mac/")).map((identity) => identity.slice(4));
  return { ...(uuid && { uuid }), ...(macs.length > 0 && { macs }) };
}

function identityValue(label: "uuid" | "mac", identities: readonly string[]): string | undefined {
  return identities.find((identity) => identity.startsWith(`${label}/`))?.slice(label.length + 1);
}

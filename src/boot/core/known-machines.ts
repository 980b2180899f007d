/**
 * Machine objects as the boot service knows them, by their identities. A Machine counts for the Groups of every
 * namespace, or only for those of its own if there is an admin namespace and the Machine is in another one.
 */

import type { JsonObject } from "../../model/json.ts";
import { identityLabels, type Labels } from "../../model/labels.ts";
import {
  decodeMachine,
  decodeMachineTombstone,
  identitiesOf,
  type MachineDocument,
  type MachineSpec,
  type MachineTombstone,
} from "../../model/machine.ts";
import type { NamedGrant } from "../../model/permit.ts";

/** A Machine made ready for requests. A changed Machine is a new object. */
export interface BootMachine {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly spec: Pick<MachineSpec, "identities" | "hold" | "metadata">;
  /** False also for a refused version. */
  readonly isApproved: boolean;
  /** See `MachineDocument.refused`. */
  readonly isRefused: boolean;
  /** See `MachineDocument`. */
  readonly isLeaving: boolean;
  /** See `MachineDocument.tenant`. */
  readonly isTenant: boolean;
  readonly uuids: readonly string[];
  readonly macs: readonly string[];
  /** The labels that take part in selection, without names of identity labels. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  /** Undefined without a grant, and for a Machine that is refused or leaving. */
  readonly grant: NamedGrant | undefined;
  /** The variable `machine` of templates. */
  readonly variable: JsonObject;
}

/** The Machine of a request, among those that count. */
export interface SoleMachine {
  /** Undefined if there is none, and if it is not clear which one it is. */
  readonly machine: BootMachine | undefined;
  /** True if any of the Machines is held. */
  readonly isHeld: boolean;
  /** True if the request names several Machines, or if an identity of the request contradicts the Machine. */
  readonly isAmbiguous: boolean;
}

const none: readonly BootMachine[] = [];
const noMachine: SoleMachine = { machine: undefined, isHeld: false, isAmbiguous: false };

/** A removed Machine. */
interface GoneMachine extends MachineTombstone {
  readonly namespace: string;
}

type ByValue<Entry> = Map<string, readonly Entry[]>;

export class KnownMachines {
  readonly #machines = new Map<string, BootMachine>();
  readonly #byUuid: ByValue<BootMachine> = new Map();
  readonly #byMac: ByValue<BootMachine> = new Map();
  readonly #gone = new Map<string, GoneMachine>();
  readonly #goneByIdentity: ByValue<GoneMachine> = new Map();

  /**
   * Stores a Machine's document in place of the older one.
   * @returns false if the text cannot be read. Then the older document stays.
   */
  learn(namespace: string, name: string, text: string): boolean {
    const document = decodeMachine(text);
    if (document === undefined) return false;
    const machine = toMachine(namespace, name, document);
    this.forget(machine.id);
    this.#add(machine);
    return true;
  }

  /** Takes over the document of a Machine from an older view, if that view has one. */
  inherit(id: string, older: KnownMachines): void {
    const machine = older.#machines.get(id);
    if (machine !== undefined) this.#add(machine);
  }

  forget(id: string): void {
    const machine = this.#machines.get(id);
    if (machine === undefined) return;
    this.#machines.delete(id);
    for (const uuid of machine.uuids) removeFrom(this.#byUuid, uuid, machine);
    for (const mac of machine.macs) removeFrom(this.#byMac, mac, machine);
  }

  /** Like `learn`, for the tombstone of a Machine. */
  learnGone(namespace: string, name: string, text: string): boolean {
    const stone = decodeMachineTombstone(text);
    if (stone === undefined) return false;
    const id = [namespace, name].join("/");
    this.forgetGone(id);
    const gone = { ...stone, namespace };
    this.#gone.set(id, gone);
    for (const identity of stone.identities) addTo(this.#goneByIdentity, identity, gone);
    return true;
  }

  forgetGone(id: string): void {
    const gone = this.#gone.get(id);
    if (gone === undefined) return;
    this.#gone.delete(id);
    for (const identity of gone.identities) removeFrom(this.#goneByIdentity, identity, gone);
  }

  /** True if a Machine of the request was removed or changed a moment ago, and counts for the namespace. */
  hasGone(labels: Labels, namespace: string): boolean {
    if (this.#gone.size === 0) return false;
    return identitiesOf(labels).some((identity) =>
      this.#goneByIdentity.get(identity)?.some((gone) => gone.tenant !== true || gone.namespace === namespace),
    );
  }

  /** True if a Machine has an identity by this label. */
  speaksOf(label: string): boolean {
    return (label === "mac" && this.#byMac.size > 0) || (label === "uuid" && this.#byUuid.size > 0);
  }

  /** Returns the distinct Machines that the identities of a request name, wherever they count. */
  of(labels: Labels): readonly BootMachine[] {
    if (this.#machines.size === 0) return none;
    const byUuid = this.#byUuid.get(labels.get("uuid") ?? "") ?? none;
    const byMac = this.#byMac.get(labels.get("mac") ?? "") ?? none;
    if (byMac.length === 0) return byUuid;
    if (byUuid.length === 0 || (byUuid.length === 1 && byMac.length === 1 && byUuid[0] === byMac[0])) return byMac;
    return [...new Set([...byUuid, ...byMac])];
  }

  #add(machine: BootMachine): void {
    this.#machines.set(machine.id, machine);
    for (const uuid of machine.uuids) addTo(this.#byUuid, uuid, machine);
    for (const mac of machine.macs) addTo(this.#byMac, mac, machine);
  }
}

/**
 * Returns the one Machine of a request.
 * @param found the Machines that the request names (`KnownMachines.of`).
 * @param namespace of the Group that the machine gets. Undefined before selection: then no Machine of a tenant counts.
 */
export function soleMachine(found: readonly BootMachine[], labels: Labels, namespace: string | undefined): SoleMachine {
  let machine: BootMachine | undefined;
  let isHeld = false;
  let isAmbiguous = false;
  for (const each of found) {
    if (each.isTenant && each.namespace !== namespace) continue;
    isHeld ||= each.spec.hold;
    isAmbiguous ||=
      machine !== undefined || contradicts(each.uuids, labels.get("uuid")) || contradicts(each.macs, labels.get("mac"));
    machine = each;
  }
  if (machine === undefined) return noMachine;
  return { machine: isAmbiguous ? undefined : machine, isHeld, isAmbiguous };
}

/**
 * True for an identity of the request that the Machine does not list, although it lists others of this kind. Boards
 * with a common uuid would otherwise be one machine.
 */
function contradicts(listed: readonly string[], value: string | undefined): boolean {
  return listed.length > 0 && value !== undefined && value !== "" && !listed.includes(value);
}

/**
 * Returns the labels by which Groups select. People's labels replace those of the request, and these replace what the
 * machine has reported. No added label names a machine.
 */
export function mergedLabels(
  request: Labels,
  machine: Pick<BootMachine, "labels"> | undefined,
  reported: ReadonlyMap<string, string> | undefined,
): Labels {
  const own = machine?.labels ?? [];
  if (own.length === 0 && (reported === undefined || reported.size === 0)) return request;
  const merged = new Map(request);
  if (reported !== undefined) addReported(merged, reported);
  for (const [name, value] of own) merged.set(name, value);
  return request.flaws === undefined ? merged : Object.assign(merged, { flaws: request.flaws });
}

function addReported(labels: Map<string, string>, reported: ReadonlyMap<string, string>): void {
  for (const [name, value] of reported) if (!labels.has(name) && isSticky(name)) labels.set(name, value);
}

/** True for a label that a machine may report. */
function isSticky(name: string): boolean {
  return !identityLabels.includes(name) && !name.startsWith("davit.");
}

function toMachine(namespace: string, name: string, document: MachineDocument): BootMachine {
  const { spec, refused, tenant, leaving } = document;
  const id = [namespace, name].join("/");
  const isRefused = refused === true;
  const isLeaving = leaving === true;
  const grant =
    isRefused || isLeaving || spec.install === undefined ? undefined : { key: `machine/${id}`, grant: spec.install };
  return {
    id,
    namespace,
    spec: { identities: spec.identities, hold: spec.hold !== false, metadata: spec.metadata },
    isApproved: spec.approved === true && !isRefused,
    isRefused,
    isLeaving,
    isTenant: tenant === true,
    uuids: valuesOf("uuid", spec.identities),
    macs: valuesOf("mac", spec.identities),
    labels: Object.entries(spec.labels).filter(([label]) => !identityLabels.includes(label)),
    grant,
    variable: { name, namespace, labels: spec.labels },
  };
}

function valuesOf(label: string, identities: readonly string[]): readonly string[] {
  const start = `${label}/`;
  return identities.filter((identity) => identity.startsWith(start)).map((identity) => identity.slice(start.length));
}

function addTo<Entry>(map: ByValue<Entry>, value: string, entry: Entry): void {
  map.set(value, [...(map.get(value) ?? []), entry]);
}

function removeFrom<Entry>(map: ByValue<Entry>, value: string, entry: Entry): void {
  const left = (map.get(value) ?? []).filter((other) => other !== entry);
  if (left.length > 0) map.set(value, left);
  else map.delete(value);
}

/**
 * Machine objects as the boot service knows them, by their identities. A Machine counts for the Groups of every
 * namespace, or only for those of its own if there is an admin namespace and the Machine is in another one.
 */

import { MultiMap, Several } from "../../lib/multi-map.ts";
import type { JsonObject } from "../../model/json.ts";
import { identityLabels, type LabelPair, type Labels } from "../../model/labels/labels.ts";
import {
  decodeMachine,
  decodeMachineTombstone,
  identitiesOf,
  type MachineDocument,
  type MachineSpec,
  type MachineTombstone,
} from "../../model/objects/machine.ts";
import type { NamedGrant } from "../../model/permits/permit.ts";

/** The parts of a Machine that take part in selection. */
interface SelectingPart {
  readonly uuids: readonly string[];
  readonly macs: readonly string[];
  /** Without names of identity labels. */
  readonly labels: readonly LabelPair[];
}

/** A Machine made ready for requests. A changed Machine is a new object. */
export interface BootMachine extends SelectingPart {
  /** `namespace/name`. */
  readonly id: string;
  readonly namespace: string;
  readonly document: MachineDocument;
  readonly isHeld: boolean;
  /** False also for a refused version. */
  readonly isApproved: boolean;
  /** See `MachineDocument.refused`. */
  readonly isRefused: boolean;
  /** See `MachineDocument`. */
  readonly isLeaving: boolean;
  /** See `MachineDocument.tenant`. */
  readonly isTenant: boolean;
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
  /** True if the request names a Machine of a tenant that does not count for the namespace. */
  readonly hasOthers: boolean;
}

const none: readonly BootMachine[] = [];
const noMachine: SoleMachine = { machine: undefined, isHeld: false, isAmbiguous: false, hasOthers: false };

/** A removed Machine. */
interface GoneMachine extends MachineTombstone {
  readonly namespace: string;
}

export class KnownMachines {
  /** By `namespace/name`. */
  readonly #machines = new Map<string, BootMachine>();
  readonly #byUuid = new MultiMap<BootMachine>();
  readonly #byMac = new MultiMap<BootMachine>();
  readonly #gone = new Map<string, GoneMachine>();
  readonly #goneByIdentity = new MultiMap<GoneMachine>();

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

  /** By `namespace/name`. */
  get all(): ReadonlyMap<string, BootMachine> {
    return this.#machines;
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
    for (const uuid of machine.uuids) this.#byUuid.remove(uuid, machine);
    for (const mac of machine.macs) this.#byMac.remove(mac, machine);
  }

  /** Like `learn`, for the tombstone of a Machine. */
  learnGone(namespace: string, name: string, text: string): boolean {
    const stone = decodeMachineTombstone(text);
    if (stone === undefined) return false;
    const id = [namespace, name].join("/");
    this.forgetGone(id);
    const gone = { ...stone, namespace };
    this.#gone.set(id, gone);
    for (const identity of stone.identities) this.#goneByIdentity.add(identity, gone);
    return true;
  }

  forgetGone(id: string): void {
    const gone = this.#gone.get(id);
    if (gone === undefined) return;
    this.#gone.delete(id);
    for (const identity of gone.identities) this.#goneByIdentity.remove(identity, gone);
  }

  /** True if a Machine of the request was removed or changed a moment ago, and counts for the namespace. */
  hasGone(labels: Labels, namespace: string): boolean {
    if (this.#gone.size === 0) return false;
    return identitiesOf(labels).some((identity) =>
      this.#goneByIdentity.of(identity).some((gone) => gone.tenant !== true || gone.namespace === namespace),
    );
  }

  /** True if a Machine has an identity by this label. */
  speaksOf(label: string): boolean {
    return (label === "mac" && this.#byMac.size > 0) || (label === "uuid" && this.#byUuid.size > 0);
  }

  /** Returns the distinct Machines that the identities of a request name, wherever they count. */
  of(labels: Labels): readonly BootMachine[] {
    if (this.#machines.size === 0) return none;
    const byUuid = this.#byUuid.of(labels.get("uuid") ?? "");
    const byMac = this.#byMac.of(labels.get("mac") ?? "");
    if (byMac.length === 0) return byUuid;
    if (byUuid.length === 0 || (byUuid.length === 1 && byMac.length === 1 && byUuid[0] === byMac[0])) return byMac;
    return [...new Set([...byUuid, ...byMac])];
  }

  /**
   * Returns the one Machine of a request.
   * @param namespace of the Group that the machine gets; undefined before selection, when no tenant's Machine counts.
   */
  soleOf(labels: Labels, namespace: string | undefined): SoleMachine {
    if (this.#machines.size === 0) return noMachine;
    const byUuid = this.#byUuid.slot(labels.get("uuid") ?? "");
    const byMac = this.#byMac.slot(labels.get("mac") ?? "");
    if (byUuid === undefined && byMac === undefined) return noMachine;
    // The usual Machine lists the uuid and the mac of the request, so it contradicts neither.
    if (byUuid === byMac && byUuid !== undefined && !(byUuid instanceof Several) && !byUuid.isTenant) {
      return { machine: byUuid, isHeld: byUuid.isHeld, isAmbiguous: false, hasOthers: false };
    }
    return soleAmong(this.of(labels), labels, namespace);
  }

  #add(machine: BootMachine): void {
    this.#machines.set(machine.id, machine);
    for (const uuid of machine.uuids) this.#byUuid.add(uuid, machine);
    for (const mac of machine.macs) this.#byMac.add(mac, machine);
  }
}

function soleAmong(found: readonly BootMachine[], labels: Labels, namespace: string | undefined): SoleMachine {
  let machine: BootMachine | undefined;
  let isHeld = false;
  let isAmbiguous = false;
  let hasOthers = false;
  for (const each of found) {
    if (each.isTenant && each.namespace !== namespace) {
      hasOthers = true;
      continue;
    }
    isHeld ||= each.isHeld;
    isAmbiguous ||=
      machine !== undefined || contradicts(each.uuids, labels.get("uuid")) || contradicts(each.macs, labels.get("mac"));
    machine = each;
  }
  return { machine: isAmbiguous ? undefined : machine, isHeld, isAmbiguous, hasOthers };
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
 * machine has reported. No added label names a machine. All identities of the Machine select (`Labels.further`).
 */
export function mergedLabels(
  request: Labels,
  machine: SelectingPart | undefined,
  reported: readonly LabelPair[] = [],
): Labels {
  const own = machine?.labels ?? [];
  const further = machine && furtherOf(request, machine);
  if (own.length === 0 && reported.length === 0 && further === undefined) return request;
  const merged = new Map(request);
  for (const [name, value] of reported) if (!merged.has(name) && isSticky(name)) merged.set(name, value);
  for (const [name, value] of own) merged.set(name, value);
  return withExtras(merged, request.flaws, further);
}

function withExtras(labels: Labels, flaws: Labels["flaws"], further: Labels["further"]): Labels {
  if (flaws === undefined && further === undefined) return labels;
  return Object.assign(labels, { ...(flaws && { flaws }), ...(further && { further }) });
}

/** Undefined if the request has all identities of its Machine. */
function furtherOf(request: Labels, { uuids, macs }: SelectingPart): Labels["further"] {
  const [uuid, mac] = [request.get("uuid"), request.get("mac")];
  // Nearly every Machine has one uuid and one MAC address.
  if (uuids.every((each) => each === uuid) && macs.every((each) => each === mac)) return undefined;
  const others = [
    ["uuid", uuids.filter((each) => each !== uuid)],
    ["mac", macs.filter((each) => each !== mac)],
  ] as const;
  return new Map(others.filter(([, values]) => values.length > 0));
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
    document,
    isHeld: spec.hold !== false,
    isApproved: spec.approved === true && !isRefused,
    isRefused,
    isLeaving,
    isTenant: tenant === true,
    ...selectingPart(spec),
    grant,
    variable: { name, namespace, labels: spec.labels },
  };
}

/** Returns the parts of a Machine that take part in selection. */
export function selectingPart({ identities, labels }: Pick<MachineSpec, "identities" | "labels">): SelectingPart {
  return {
    uuids: valuesOf("uuid", identities),
    macs: valuesOf("mac", identities),
    labels: Object.entries(labels).filter(([label]) => !identityLabels.includes(label)),
  };
}

function valuesOf(label: string, identities: readonly string[]): readonly string[] {
  const start = `${label}/`;
  return identities.filter((identity) => identity.startsWith(start)).map((identity) => identity.slice(start.length));
}

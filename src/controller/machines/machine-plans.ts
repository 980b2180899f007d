/** Plans the Machines of a step: their documents, tombstones and statuses. */

import { machinePath, machineTombstonePath } from "../../model/objects/documents.ts";
import {
  decodeMachineTombstone,
  encodeMachine,
  encodeMachineTombstone,
  type MachineDocument,
  type MachineSpec,
} from "../../model/objects/machine.ts";
import type { ObjectName, ObjectStatus, Source } from "../../model/objects/source.ts";
import type { ControllerPorts } from "../core/controller-ports.ts";
import type { Documents, DocumentWrite } from "../core/documents.ts";
import type { FaultGuard } from "../core/faults.ts";
import { MachineSamples } from "../core/machine-samples.ts";
import { failedStatus } from "../status/conditions.ts";
import type { TombstoneOptions, TombstoneWrite } from "../tombstones/tombstones.ts";
import { draftMachine, type MachineVersions, machineStandIn } from "./draft-machine.ts";
import { MachineIdentities } from "./identities.ts";
import { machineStatus } from "./machine-facts.ts";

interface MachinePlansOptions extends Pick<ControllerPorts, "tombstoneTtlSeconds" | "adminNamespace"> {
  readonly source: Pick<Source, "view">;
  /** The stored documents. */
  readonly documents: Pick<Documents, "machine" | "textAt">;
  readonly guard: FaultGuard;
}

/** The facts about a Machine that do not depend on other Machines. */
export interface MachineDraft {
  readonly id: ObjectName;
  readonly known: MachineVersions;
  readonly document: MachineDocument | undefined;
  readonly isFailed: boolean;
  /** True if the Machine is stored, and may be in a part of the source that cannot be read. */
  readonly isWithheld: boolean;
  /** True if Machines define other names of variables than before. */
  readonly definesOthers: boolean;
  /** Other Machines whose status may change. */
  readonly sharing: readonly ObjectName[];
}

interface MachinePlan {
  readonly changes: readonly DocumentWrite[];
  readonly tombstones: readonly TombstoneWrite[];
  /** Undefined for a Machine that is gone, or not in view. */
  readonly status: ObjectStatus | undefined;
  readonly isRemoved: boolean;
}

export class MachinePlans {
  /** The Machines of the last steps, by identity. */
  readonly identities = new MachineIdentities();
  readonly samples = new MachineSamples();
  readonly #options: MachinePlansOptions;

  constructor(options: MachinePlansOptions) {
    this.#options = options;
  }

  /** True if a Machine with this label's value has a grant. */
  hasGrant(label: string, value: string): boolean {
    const { view } = this.#options.source;
    const machines = this.identities.of([`${label}/${value}`]);
    return machines.some(({ namespace, name }) => view.get("Machine", namespace, name)?.spec.install !== undefined);
  }

  /** Drafts a Machine. Draft all Machines of a step before `plan`, because statuses depend on other Machines. */
  draft(id: ObjectName): MachineDraft {
    const known = this.#known(id);
    const drafted = this.#options.guard(
      id,
      () => ({ document: draftMachine(known), isFailed: false }),
      () => ({ document: machineStandIn(known), isFailed: true }),
    );
    const { object, refusal, stored, isGone } = known;
    const isWithheld = object === undefined && refusal === undefined && !isGone && stored !== undefined;
    const { document } = drafted;
    const definesOthers = this.samples.update(id, document);
    return { id, known, ...drafted, isWithheld, definesOthers, sharing: this.identities.update(id, document) };
  }

  /** Plans a Machine: what to write, and its status. */
  plan({ id, known, document, isFailed }: MachineDraft): MachinePlan {
    const { documents, tombstoneTtlSeconds } = this.#options;
    const textAt = (path: string) => documents.textAt(path);
    const path = machinePath(id.namespace, id.name);
    const text = document && encodeMachine(document);
    const changes = text === textAt(path) ? [] : [{ path, text }];
    return {
      changes,
      tombstones: machineTombstoneWrites(
        { id, before: known.stored, after: document },
        { textAt, ttlSeconds: tombstoneTtlSeconds },
      ),
      status: this.#status(id, known, document, isFailed),
      isRemoved: document === undefined && changes.length > 0,
    };
  }

  #status(
    id: ObjectName,
    { object, refusal }: MachineVersions,
    document: MachineDocument | undefined,
    isFailed: boolean,
  ): ObjectStatus | undefined {
    const newest = refusal ?? object;
    if (newest === undefined) return undefined;
    const { generation } = newest;
    if (isFailed) return failedStatus(generation, false);
    const rival = this.identities.rivalOf(id);
    return machineStatus({ generation, refusal: refusal?.message ?? object?.refusal, document, rival });
  }

  #known(id: ObjectName): MachineVersions {
    const { documents, adminNamespace } = this.#options;
    const { view } = this.#options.source;
    const { namespace, name } = id;
    return {
      id,
      object: view.get("Machine", namespace, name),
      refusal: view.refusalOf(id),
      stored: documents.machine(namespace, name),
      isGone: view.isGone(id),
      isLeaving: view.isLeaving?.(id) === true,
      isUnheard: view.unheard.has(namespace),
      isTenant: adminNamespace !== undefined && namespace !== adminNamespace,
    };
  }
}

/** A step's change to one Machine: its stored document and its new one. */
interface MachineChange {
  readonly id: ObjectName;
  readonly before: MachineDocument | undefined;
  readonly after: MachineDocument | undefined;
}

// A tombstone collects the identities of all changes before it expires. Beyond this number, the oldest are dropped.
const mostIdentities = 256;

/**
 * The writes to a Machine's tombstone. A Machine's labels may keep its machine away from a Group that installs. When
 * the Machine goes, or loses identities or labels, this may be half of a change: `kubectl replace --force` deletes an
 * object and creates it again. So the step that changes the Machine also writes a tombstone, and until it expires, no
 * `Install` is served to the identities of the earlier version. A Machine that only gains identities or labels leaves
 * none.
 */
function machineTombstoneWrites(
  { id: { namespace, name }, before, after }: MachineChange,
  { textAt, ttlSeconds }: Pick<TombstoneOptions, "textAt" | "ttlSeconds">,
): readonly TombstoneWrite[] {
  if (before === undefined || (after !== undefined && keepsAll(before.spec, after.spec))) return [];
  const path = machineTombstonePath(namespace, name);
  const known = decodeMachineTombstone(textAt(path) ?? "")?.identities ?? [];
  const identities = [...new Set([...before.spec.identities, ...known])].slice(0, mostIdentities);
  const tenant = (after ?? before).tenant;
  return [{ path, text: encodeMachineTombstone({ identities, ...(tenant && { tenant }) }), ttlSeconds, namespace }];
}

/** True if the newer version has every identity and every label of the earlier one. */
function keepsAll(before: MachineSpec, after: MachineSpec): boolean {
  const has = new Set(after.identities);
  const isSame = ([label, value]: [string, string]) =>
    Object.hasOwn(after.labels, label) && after.labels[label] === value;
  return before.identities.every((identity) => has.has(identity)) && Object.entries(before.labels).every(isSame);
}

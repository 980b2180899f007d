/**
 * A Machine: what people know of one machine. It is optional. Its labels take part in the selection of a Group, and its
 * metadata replaces that of the Group.
 */

import { isJsonObject, type JsonObject, parseJsonObject } from "../json.ts";
import { isOwnUuid } from "../labels/hardware-ids.ts";
import type { Labels } from "../labels/labels.ts";
import { type InstallGrant, isUnderWay, type LedgerEntry } from "../permits/permit.ts";

/** A Machine's spec after admission. */
export interface MachineSpec {
  /** `uuid/VALUE` and `mac/VALUE`, normalised like labels; at least one. */
  readonly identities: readonly string[];
  /** True if Groups with `approval: Required` may serve the machine. */
  readonly approved: boolean;
  /** True if the machine is answered 503 and waits. */
  readonly hold: boolean;
  /** They replace labels of the request that have the same name. None names a machine. */
  readonly labels: Readonly<Record<string, string>>;
  /** A name at the top replaces that of the Group. */
  readonly metadata: JsonObject;
  readonly install?: InstallGrant;
}

/** The document of a Machine at `/davit/machines/<namespace>/<name>`. */
export interface MachineDocument {
  /** For people: file and document, or `cluster`. */
  readonly origin: string;
  readonly uid: string;
  readonly generation: number;
  readonly spec: MachineSpec;
  /**
   * There is an admin namespace, and the Machine is in another one. It counts only for machines of its namespace's
   * Groups, and its labels take no part in selection.
   */
  readonly tenant?: true;
  /** The newest version is refused. Only `hold` and identities of it count, and nothing is approved or granted. */
  readonly refused?: true;
  /** No readable part of the source defines the Machine any more. Nothing is granted, and an `Install` waits. */
  readonly leaving?: true;
}

/** Returns the identities in a request's labels, as the ledger names them: `uuid/...` before `mac/...`. */
export function identitiesOf(labels: Labels): readonly string[] {
  const uuid = labels.get("uuid");
  const mac = labels.get("mac");
  return [
    ...(uuid !== undefined && isOwnUuid(uuid) ? [identity("uuid", uuid)] : []),
    ...(mac !== undefined && mac !== "" ? [identity("mac", mac)] : []),
  ];
}

/** Returns the ledger's name of a normalised uuid or MAC address. */
export function identity(label: "uuid" | "mac", value: string): string {
  return [label, value].join("/");
}

/** Reads a Machine's document; undefined for any other text. It checks only a few members: only davit writes them. */
export function decodeMachine(text: string): MachineDocument | undefined {
  const value = parseJsonObject(text);
  if (value === undefined || !isJsonObject(value.spec)) return undefined;
  const { identities, labels, metadata } = value.spec;
  if (!Array.isArray(identities) || !isJsonObject(labels) || !isJsonObject(metadata)) return undefined;
  return value as unknown as MachineDocument;
}

/** Returns the text that `decodeMachine` reads. */
export function encodeMachine(document: MachineDocument): string {
  return JSON.stringify(document);
}

/**
 * A Machine was just removed, or its labels or identities changed. Installs of machines with these identities wait:
 * the Machine may return, or other objects that belong to the change may follow.
 */
export interface MachineTombstone {
  /** As in `MachineSpec`: those of the earlier version. */
  readonly identities: readonly string[];
  /** See `MachineDocument`. */
  readonly tenant?: true;
}

/** Returns the text that `decodeMachineTombstone` reads. */
export function encodeMachineTombstone({ identities, tenant }: MachineTombstone): string {
  return JSON.stringify({ identities, ...(tenant && { tenant }) });
}

/** Like `decodeMachine`. */
export function decodeMachineTombstone(text: string): MachineTombstone | undefined {
  const value = parseJsonObject(text);
  const identities = value?.identities;
  if (!Array.isArray(identities) || !identities.every((each) => typeof each === "string")) return undefined;
  return { identities, ...(value?.tenant === true && { tenant: true }) };
}

/** A machine as its status shows it. */
export const machinePhases = [
  "Waiting",
  "Held",
  "Permitted",
  "Installing",
  "Installed",
  "Failed",
  "Unconfirmed",
  "Booted",
] as const;
export type MachinePhase = (typeof machinePhases)[number];

/** What the phase of a machine depends on. */
interface PhaseFacts {
  /** True for a machine that its Machine or its Group holds. */
  readonly isHeld: boolean;
  /** True if the next boot script would be an install. */
  readonly mayInstall: boolean;
  /** The machine's entry with the latest change; undefined without one. */
  readonly entry: LedgerEntry | undefined;
  /** By the ledger's clock. */
  readonly nowMs: number;
}

/** Returns the phase of a machine. */
export function phaseOf({ isHeld, mayInstall, entry, nowMs }: PhaseFacts): MachinePhase {
  if (isHeld) return "Held";
  if (entry !== undefined && isUnderWay(entry, nowMs)) return "Installing";
  if (mayInstall) return "Permitted";
  if (entry === undefined) return "Waiting";
  return endedPhase(entry);
}

function endedPhase({ state, reported }: LedgerEntry): MachinePhase {
  switch (state) {
    case "Installed":
      return reported?.state === "booted" ? "Booted" : "Installed";
    case "Failed":
      return "Failed";
    // The ledger's ticker has not closed an install yet whose time is over.
    case "Claimed":
    case "Installing":
    case "Unconfirmed":
      return "Unconfirmed";
  }
}

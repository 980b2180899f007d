/**
 * What the objects of a chaos run say at a moment, and which machines may be installed by it. The rules are written
 * here a second time, in few words and without an index, so that a mistake of davit's is not made twice.
 */

import type { JsonObject } from "../../src/model/json.ts";

export type Labels = Readonly<Record<string, string>>;

export interface ChaosGroup {
  /** Label to value. Empty with `matchAll`. */
  readonly labels: Labels;
  /** MAC addresses of one expression `mac In`, beside the labels. */
  readonly macs?: readonly string[];
  readonly matchAll?: boolean;
  readonly priority: number;
  readonly hold: boolean;
  readonly profile: string;
  /** The newest version has a value that davit refuses. */
  readonly isMalformed?: boolean;
}

/** What makes the newest version of a Profile unusable. */
export type Flaw = "parse" | "undefined";

export interface ChaosProfile {
  readonly kernel: string;
  readonly isInstall: boolean;
  /** Boots from the disk instead of its kernel. */
  readonly isLocal: boolean;
  readonly flaw?: Flaw;
  /** Names the ConfigMap. */
  readonly usesConfigMap: boolean;
}

export interface World {
  readonly groups: ReadonlyMap<string, ChaosGroup>;
  readonly profiles: ReadonlyMap<string, ChaosProfile>;
  readonly hasConfigMap: boolean;
}

/** What the objects give a machine. `unsure`: the rules leave it open, since a version is not usable. */
export type Given = { readonly kernel: string } | "local" | "wait" | "nothing" | "unsure";

/**
 * What a machine with these labels is given by the objects.
 * @param isConfig asks for what its system is set up by: that is there for one that boots from its disk, too.
 */
export function givenBy(world: World, machine: Labels, isConfig = false): Given {
  const [winner, ...others] = [...world.groups.values()].filter((group) => selects(group, machine)).toSorted(compare);
  const [second] = others;
  if (winner === undefined) return "nothing";
  if (winner.isMalformed === true || winner.hold) return "wait";
  if (second !== undefined && compare(winner, second) === 0 && winner.profile !== second.profile) return "wait";
  const profile = world.profiles.get(winner.profile);
  const given = profile === undefined ? "nothing" : givenByProfile(profile, world, isConfig);
  const isInstall = typeof given === "object" && profile?.isInstall === true;
  return isInstall && others.some((other) => disputes(other, winner)) ? "wait" : given;
}

/** True for a Group that names the machine by other labels than the winner of its priority, and gives something else. */
function disputes(other: ChaosGroup, winner: ChaosGroup): boolean {
  if (other.matchAll === true || winner.matchAll === true || other.priority !== winner.priority) return false;
  const isSame = other.profile === winner.profile && other.hold === winner.hold;
  return !isSame && namesOf(other).every((label) => !namesOf(winner).includes(label));
}

function namesOf({ labels, macs }: ChaosGroup): readonly string[] {
  return [...Object.keys(labels), ...(macs === undefined ? [] : ["mac"])];
}

function givenByProfile(profile: ChaosProfile, { hasConfigMap }: World, isConfig: boolean): Given {
  const isFlawed = profile.flaw !== undefined || (profile.usesConfigMap && !hasConfigMap);
  const isLocal = profile.isLocal && !isConfig;
  // A boot from the disk counts at once if there is a version before that it can count for.
  if (isFlawed) return profile.isInstall && !isLocal ? "wait" : "unsure";
  return isLocal ? "local" : { kernel: profile.kernel };
}

/** True when the objects say that a machine with these labels is to be installed. */
export function installs(world: World, machine: Labels, kernel: string, isConfig = false): boolean {
  const given = givenBy(world, machine, isConfig);
  return typeof given === "object" && given.kernel === kernel;
}

function selects({ labels, macs, matchAll }: ChaosGroup, machine: Labels): boolean {
  if (matchAll === true) return true;
  if (macs !== undefined && !macs.includes(machine.mac ?? "")) return false;
  return Object.entries(labels).every(([label, value]) => machine[label] === value);
}

/** The winner first; zero for Groups that tie. */
function compare(a: ChaosGroup, b: ChaosGroup): number {
  return rankOf(b) - rankOf(a) || expressionCount(a) - expressionCount(b) || Number(keysOf(b) > keysOf(a)) || tie(a, b);
}

function tie(a: ChaosGroup, b: ChaosGroup): number {
  return keysOf(a) > keysOf(b) ? -1 : 0;
}

function rankOf({ labels, macs, matchAll, priority }: ChaosGroup): number {
  if (matchAll === true) return 0;
  return priority * 100 + Object.keys(labels).length + (macs === undefined ? 0 : 1);
}

function expressionCount({ macs }: ChaosGroup): number {
  return macs === undefined ? 0 : 1;
}

function keysOf({ labels, macs }: ChaosGroup): string {
  const texts = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return [...texts, ...(macs === undefined ? [] : ["mac In"])].toSorted().join(",");
}

/** The spec of a Group as the API server gets it. */
export function groupSpec({ labels, macs, matchAll, priority, hold, profile, isMalformed }: ChaosGroup): JsonObject {
  const expressions = [
    ...(macs === undefined ? [] : [{ key: "mac", operator: "In", values: macs }]),
    ...(isMalformed === true ? [{ key: "mac", operator: "In", values: ["52:54:00:00:00:0g"] }] : []),
  ];
  const selector = {
    ...(Object.keys(labels).length > 0 && { matchLabels: labels }),
    ...(expressions.length > 0 && { matchExpressions: expressions }),
  };
  return {
    profileRef: { name: profile },
    ...(matchAll === true ? { matchAll } : { selector }),
    ...(matchAll !== true && { priority }),
    hold,
  };
}

const flaws: Readonly<Record<Flaw, string>> = { parse: "{{#if broken}", undefined: "{{nobodyDefinesThis}}" };

/** The spec of a Profile as the API server gets it. */
export function profileSpec({ kernel, isInstall, isLocal, flaw, usesConfigMap }: ChaosProfile): JsonObject {
  const ignition = usesConfigMap
    ? { templateFrom: { configMapKeyRef: { name: configMapName, key: "ignition" } } }
    : { inline: ignitionOf(kernel) };
  return {
    ...(isInstall && { effect: "Install" }),
    boot: isLocal ? { local: "exit" } : { kernel: `/assets/${kernel}` },
    ignition,
    ...(flaw !== undefined && { generic: { inline: flaws[flaw] } }),
  };
}

export const configMapName = "ignitions";

/** A config that says which kernel it belongs to. */
export function ignitionOf(kernel: string): string {
  return JSON.stringify({ ignition: { version: "3.4.0" }, storage: { files: [{ path: `/${kernel}` }] } });
}

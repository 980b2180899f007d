/**
 * What the objects of a chaos run say at a moment, and which machines may be installed by it. The rules are written
 * here a second time, in few words and without an index, so that a mistake of davit's is not made twice.
 */

import type { JsonObject } from "../../src/model/json.ts";

export type Labels = Readonly<Record<string, string>>;

/** A machine that asks. */
export interface Machine {
  readonly name: string;
  readonly labels: Labels;
}

/** Opens one install of each machine. No two grants of a run have the same generation. */
export interface Grant {
  readonly generation: number;
  readonly scope: "NeverInstalled" | "All";
}

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
  readonly grant?: Grant | undefined;
}

/** The Machine object of a machine, which lists all of its identities. */
export interface ChaosMachine {
  readonly labels: Labels;
  /** The label `role`. */
  readonly role: string;
  readonly hold: boolean;
  readonly generation?: number | undefined;
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
  /** Each install needs a permit. */
  readonly needsPermit: boolean;
  /** No two versions of a run have the same number. An odd one has a longer text than an even one. */
  readonly revision: number;
}

export interface World {
  readonly groups: ReadonlyMap<string, ChaosGroup>;
  readonly profiles: ReadonlyMap<string, ChaosProfile>;
  readonly machines: ReadonlyMap<string, ChaosMachine>;
  /** The revision of the ConfigMap; undefined without one. */
  readonly configMap: number | undefined;
}

/** Which version an answer was made from. */
export interface Version {
  readonly kernel: string;
  readonly revision: number;
  /** Of the ConfigMap, in a config; 0 if the Profile has its own text. */
  readonly configMap?: number | undefined;
}

interface Boot extends Required<Version> {
  /** What opens this install; undefined if it needs no permit. */
  readonly grants: readonly Grant[] | undefined;
}

/** What the objects give a machine. `unsure`: the rules leave it open, since a version is not usable. */
export type Given = Boot | "local" | "wait" | "nothing" | "unsure";

/**
 * What a machine with these labels is given by the objects.
 * @param isConfig asks for what its system is set up by: that is there for one that boots from its disk, too.
 */
export function givenBy(world: World, asked: Labels, isConfig = false): Given {
  const own = [...world.machines.values()].find(({ labels }) => labels.mac === asked.mac);
  if (own?.hold === true) return "wait";
  const machine = own === undefined ? asked : { ...asked, role: own.role };
  const [winner, ...others] = [...world.groups.values()].filter((group) => selects(group, machine)).toSorted(compare);
  const [second] = others;
  if (winner === undefined) return "nothing";
  if (winner.isMalformed === true || winner.hold) return "wait";
  if (second !== undefined && compare(winner, second) === 0 && differs(winner, second)) return "wait";
  const profile = world.profiles.get(winner.profile);
  if (profile === undefined) return "nothing";
  const grants = grantsOf(winner, own);
  const given = givenByProfile(profile, world, isConfig, grants);
  const isInstall = typeof given === "object" && profile.isInstall;
  return isInstall && others.some((other) => disputes(other, winner)) ? waiting(profile) : given;
}

/** The objects that have to do with a machine, for a person. */
export function objectsFor({ groups, profiles, machines }: World, asked: Labels): string {
  const own = [...machines.values()].find(({ labels }) => labels.mac === asked.mac);
  const machine = own === undefined ? asked : { ...asked, role: own.role };
  const selecting = [...groups].filter(([, group]) => selects(group, machine));
  const named = selecting.map(([, { profile }]) => [profile, profiles.get(profile)] as const);
  return JSON.stringify({ own, ...Object.fromEntries(selecting), profiles: Object.fromEntries(named) });
}

/** A machine waits in doubt. If its install has ended, it boots its disk, and only the ledger knows that. */
function waiting(profile: ChaosProfile): Given {
  return asksPermit(profile) ? "unsure" : "wait";
}

function grantsOf({ grant }: ChaosGroup, own: ChaosMachine | undefined): readonly Grant[] {
  const { generation } = own ?? {};
  return [
    ...(grant === undefined ? [] : [grant]),
    ...(generation === undefined ? [] : [{ generation, scope: "All" as const }]),
  ];
}

/** True if two Groups give a machine something else. */
function differs(one: ChaosGroup, other: ChaosGroup): boolean {
  const [a, b] = [one, other].map(({ profile, hold, grant }) => JSON.stringify([profile, hold, grant]));
  return a !== b;
}

/**
 * True if both Groups name the machine, in the same priority, but by different labels, and the other one gives something
 * else. A role names no machine: a Group by role may win over one that names the machine.
 */
function disputes(other: ChaosGroup, winner: ChaosGroup): boolean {
  if (other.matchAll === true || winner.matchAll === true || other.priority !== winner.priority) return false;
  if ([other, winner].some((group) => namesOf(group).includes("role"))) return false;
  return differs(other, winner) && namesOf(other).every((label) => !namesOf(winner).includes(label));
}

function namesOf({ labels, macs }: ChaosGroup): readonly string[] {
  return [...Object.keys(labels), ...(macs === undefined ? [] : ["mac"])];
}

/** What boots from the disk never installs. */
function asksPermit({ needsPermit, isLocal }: ChaosProfile): boolean {
  return needsPermit && !isLocal;
}

function givenByProfile(
  profile: ChaosProfile,
  { configMap }: World,
  isConfig: boolean,
  grants: readonly Grant[],
): Given {
  const { flaw, usesConfigMap, isInstall, isLocal, kernel, revision } = profile;
  const boots = isLocal && !isConfig;
  // A boot from the disk counts at once if there is a version before that it can count for.
  if (flaw !== undefined || (usesConfigMap && configMap === undefined))
    return isInstall && !boots ? waiting(profile) : "unsure";
  if (boots) return "local";
  const text = usesConfigMap ? (configMap ?? 0) : 0;
  return { kernel, revision, configMap: text, grants: asksPermit(profile) ? grants : undefined };
}

/** How the objects install a machine with this version; undefined if they do not, or with another version. */
export function bootBy(world: World, machine: Labels, { kernel, revision, configMap }: Version): Boot | undefined {
  const given = givenBy(world, machine, configMap !== undefined);
  if (typeof given !== "object" || given.kernel !== kernel || given.revision !== revision) return undefined;
  return configMap !== undefined && configMap !== given.configMap ? undefined : given;
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

/** How long a grant of a run stays open. */
const grantMs = 86_400_000;

function install(generation: number, ledger: string, scope?: Grant["scope"]): JsonObject {
  const until = new Date(Date.now() + grantMs).toISOString().replace(/\.\d+Z$/, "Z");
  return { install: { generation, ledger, until, ...(scope && { scope }) } };
}

/** The spec of a Group as the API server gets it. @param ledger the id of davit's ledger. */
export function groupSpec(group: ChaosGroup, ledger = ""): JsonObject {
  const { labels, macs, matchAll, priority, hold, profile, isMalformed, grant } = group;
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
    ...(grant && install(grant.generation, ledger, grant.scope)),
    hold,
  };
}

/** The spec of a Machine as the API server gets it. @param ledger the id of davit's ledger. */
export function machineSpec({ labels, role, hold, generation }: ChaosMachine, ledger = ""): JsonObject {
  const { uuid, mac } = labels;
  return {
    identity: { ...(uuid && { uuid }), macs: [mac ?? ""] },
    labels: { role },
    ...(generation !== undefined && install(generation, ledger)),
    hold,
  };
}

const flaws: Readonly<Record<Flaw, string>> = { parse: "{{#if broken}", undefined: "{{nobodyDefinesThis}}" };

/** The spec of a Profile as the API server gets it. */
export function profileSpec(profile: ChaosProfile): JsonObject {
  const { kernel, isInstall, isLocal, flaw, usesConfigMap, revision } = profile;
  const needsPermit = asksPermit(profile);
  const ignition = usesConfigMap
    ? { templateFrom: { configMapKeyRef: { name: configMapName, key: "ignition" } } }
    : { inline: ignitionOf(0) };
  const args = [`rev=${revision}`, ...(revision % 2 === 1 ? ["wipe_data=1"] : [])];
  const generic = flaw === undefined ? (needsPermit ? "report {{davit.report}}" : undefined) : flaws[flaw];
  return {
    ...(isInstall && { effect: "Install" }),
    ...(needsPermit && { install: { then: "exit", timeout: "1h" } }),
    metadata: { version: `${kernel}.${revision}` },
    ignition,
    ...(generic && { generic: { inline: generic } }),
    boot: isLocal ? { local: "exit" } : { kernel: `/assets/${kernel}`, args },
  };
}

export const configMapName = "ignitions";

/** A config that says which versions it was made from. @param revision of the ConfigMap, 0 for a text of a Profile. */
export function ignitionOf(revision: number): string {
  const path = `/{{version}}.${revision}`;
  return JSON.stringify({ ignition: { version: "3.4.0" }, storage: { files: [{ path }] } });
}

/** Which version an answer was made from; undefined if it boots nothing. Revision -1: it has none. */
export function versionIn(body: string): Version | undefined {
  const config = /"\/(\w+)\.(\d+)\.(\d+)"/.exec(body);
  if (config !== null) return { kernel: config[1] ?? "", revision: Number(config[2]), configMap: Number(config[3]) };
  const script = /\/assets\/(\w+)(?:\?claim=[\w-]+)?(?:"? "?rev=(\d+))?/.exec(body);
  return script === null ? undefined : { kernel: script[1] ?? "", revision: Number(script[2] ?? -1) };
}

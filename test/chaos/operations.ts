/** Random changes of the objects: what operators, tenants, tools and accidents do to them. */

import type { JsonObject } from "../../src/model/json.ts";
import type { Machine } from "./witness.ts";
import {
  type ChaosGroup,
  type ChaosProfile,
  configMapName,
  groupSpec,
  ignitionOf,
  profileSpec,
  type World,
} from "./world.ts";

export type Kind = "Group" | "Profile" | "ConfigMap";

/** What is sent to the API server; no spec deletes. */
export interface Write {
  readonly kind: Kind;
  readonly name: string;
  readonly body?: JsonObject;
}

/** A change: its writes, one after the other, and what the objects say once all of them are done. */
export interface Operation {
  readonly what: string;
  readonly writes: readonly Write[];
  readonly world: World;
}

export const installer = "installer";
export const profileNames = ["work", "spare", "install"] as const;
const catchAllName = "everybody";
const priorities = [0, 0, 0, 10, 1_000] as const;

/** A number below the one given. */
export type Pick = (below: number) => number;

// Every so many machines one has no Group of its own: only the catch-all installs it.
const strangers = 5;

/** The objects at the beginning: Groups for most machines, and a catch-all that installs the others. */
export function firstWorld(machines: readonly Machine[]): World {
  const named = machines.flatMap((machine, at): readonly (readonly [string, ChaosGroup])[] =>
    at % strangers === 0 ? [] : [[machine.name, ownGroup(machine, at)]],
  );
  const groups = new Map(named);
  groups.set(catchAllName, catchAll(false));
  const boot = { isInstall: false, isLocal: false, usesConfigMap: false };
  const profiles = new Map<string, ChaosProfile>([
    ["work", { ...boot, kernel: "work" }],
    ["spare", { ...boot, kernel: "spare" }],
    ["install", { ...boot, kernel: installer, isInstall: true, usesConfigMap: true }],
  ]);
  return { groups, profiles, hasConfigMap: true };
}

// Half by mac, a quarter each by serial and uuid.
const ownLabels = ["mac", "mac", "serial", "uuid"] as const;

function ownGroup({ labels }: Machine, at: number): ChaosGroup {
  const label = ownLabels[at % ownLabels.length] ?? "mac";
  // Many are installed: what takes an install away is what may go wrong.
  const profile = at % 3 === 1 ? "install" : "work";
  return { labels: { [label]: labels[label] ?? "" }, priority: 0, hold: false, profile };
}

function catchAll(hold: boolean): ChaosGroup {
  return { labels: {}, matchAll: true, priority: 0, hold, profile: "install" };
}

export class Operations {
  readonly #machines: readonly Machine[];
  readonly #pick: Pick;
  #twins = 0;

  constructor(machines: readonly Machine[], pick: Pick) {
    this.#machines = machines;
    this.#pick = pick;
  }

  /** The next change of what the objects say now. */
  next(world: World): Operation {
    const kinds = [
      () => this.#changeGroup(world),
      () => this.#changeGroup(world),
      () => this.#changeGroup(world),
      () => this.#removeOrCreateGroup(world),
      () => this.#removeOrCreateGroup(world),
      () => this.#createAnew(world),
      () => this.#rename(world),
      () => this.#twin(world),
      () => this.#list(world),
      () => this.#changeCatchAll(world),
      () => this.#changeProfile(world),
      () => this.#createProfileAnew(world),
      () => this.#changeConfigMap(world),
      () => this.#removeMany(world),
    ];
    return this.#one(kinds)();
  }

  /** Makes every Group whole that davit refuses. */
  mend(world: World): Operation {
    const malformed = [...world.groups].filter(([, group]) => group.isMalformed === true);
    const entries = malformed.map(([name, group]): Entry => [name, { ...group, isMalformed: false }]);
    return this.#put(world, `${entries.length} whole Groups`, entries);
  }

  #changeGroup(world: World): Operation {
    const name = this.#one(this.#machines).name;
    const group = world.groups.get(name) ?? ownGroup(this.#machineOf(name), this.#pick(ownLabels.length));
    const [what, changed] = this.#one<() => readonly [string, ChaosGroup]>([
      () => ["hold", { ...group, hold: true }],
      () => ["release", { ...group, hold: false }],
      () => ["install", { ...group, profile: "install", hold: false, isMalformed: false }],
      () => ["install", { ...group, profile: "install", hold: false, isMalformed: false }],
      () => ["work", { ...group, profile: "work" }],
      () => ["spare", { ...group, profile: "spare" }],
      () => ["priority", { ...group, priority: this.#one(priorities) }],
      () => ["a malformed version", { ...group, isMalformed: true }],
      () => ["a whole version", { ...group, isMalformed: false }],
      () => ["a malformed version with a hold", { ...group, isMalformed: true, hold: true }],
      () => ["another label", { ...group, labels: this.#otherLabels(name) }],
    ])();
    return this.#put(world, `Group ${name}: ${what}`, [[name, changed]]);
  }

  #otherLabels(name: string): ChaosGroup["labels"] {
    const { labels } = this.#machineOf(name);
    const { mac = "", serial = "", uuid = "" } = labels;
    return this.#one([{ mac }, { serial }, { uuid }, { mac, serial }, { mac, uuid, serial }]);
  }

  #removeOrCreateGroup(world: World): Operation {
    const at = this.#pick(this.#machines.length);
    const machine = this.#machines[at];
    const name = machine?.name ?? "";
    if (world.groups.has(name)) return this.#put(world, `Group ${name}: delete`, [[name, undefined]]);
    return this.#put(world, `Group ${name}: create`, [[name, ownGroup(this.#machineOf(name), at)]]);
  }

  /** As `kubectl replace --force` does. */
  #createAnew(world: World): Operation {
    const name = this.#one([...world.groups.keys()]);
    const group = world.groups.get(name);
    return this.#put(world, `Group ${name}: delete and create`, [
      [name, undefined],
      [name, group],
    ]);
  }

  #rename(world: World): Operation {
    const name = this.#one([...world.groups.keys()]);
    const group = world.groups.get(name);
    const other = name.endsWith("-b") ? name.slice(0, -2) : `${name}-b`;
    if (world.groups.has(other)) return this.#put(world, `Group ${other}: delete`, [[other, undefined]]);
    return this.#put(world, `Group ${name}: now ${other}`, [
      [other, group],
      [name, undefined],
    ]);
  }

  /** A second Group for the machine of another one. */
  #twin(world: World): Operation {
    const machine = this.#one(this.#machines);
    const group = world.groups.get(machine.name);
    const name = `twin-${this.#twins++ % 3}`;
    if (world.groups.has(name) || group === undefined)
      return this.#put(world, `Group ${name}: delete`, [[name, undefined]]);
    return this.#put(world, `Group ${name}: twin of ${machine.name}`, [[name, { ...group, profile: "install" }]]);
  }

  #list(world: World): Operation {
    const from = this.#pick(this.#machines.length - 5);
    const macs = this.#machines.slice(from, from + 5).map(({ labels }) => labels.mac ?? "");
    const profile = this.#one(["work", "install"]);
    const list: ChaosGroup = { labels: {}, macs, priority: this.#one([0, 10]), hold: false, profile };
    const name = `list-${this.#pick(2)}`;
    if (world.groups.has(name)) return this.#put(world, `Group ${name}: delete`, [[name, undefined]]);
    return this.#put(world, `Group ${name}: ${profile} for five from ${from}`, [[name, list]]);
  }

  #changeCatchAll(world: World): Operation {
    if (!world.groups.has(catchAllName))
      return this.#put(world, "catch-all: create", [[catchAllName, catchAll(false)]]);
    if (world.groups.get(catchAllName)?.hold === true) {
      return this.#put(world, "catch-all: release", [[catchAllName, catchAll(false)]]);
    }
    return this.#pick(2) === 0
      ? this.#put(world, "catch-all: delete", [[catchAllName, undefined]])
      : this.#put(world, "catch-all: hold", [[catchAllName, catchAll(true)]]);
  }

  #changeProfile(world: World): Operation {
    const name = this.#one(profileNames);
    const profile = world.profiles.get(name);
    const whole = this.#wholeProfile(name);
    // Most of the time it is whole: else nobody would be installed, and nothing be tried.
    if (profile === undefined || profile.flaw !== undefined || profile.isLocal) {
      return this.#putProfile(world, `Profile ${name}: whole`, name, [whole]);
    }
    const [what, changed] = this.#one<readonly [string, ChaosProfile | undefined]>([
      ["does not parse", { ...profile, flaw: "parse" }],
      ["undefined variable", { ...profile, flaw: "undefined" }],
      ["boots from disk", { ...profile, isLocal: true }],
      ["boots from disk, and does not parse", { ...profile, isLocal: true, flaw: "parse" }],
      ["delete", undefined],
    ]);
    return this.#putProfile(world, `Profile ${name}: ${what}`, name, [changed]);
  }

  #createProfileAnew(world: World): Operation {
    const name = this.#one(profileNames);
    const profile = world.profiles.get(name) ?? this.#wholeProfile(name);
    return this.#putProfile(world, `Profile ${name}: delete and create`, name, [undefined, profile]);
  }

  #wholeProfile(name: string): ChaosProfile {
    const isInstall = name === "install";
    return { kernel: isInstall ? installer : name, isInstall, isLocal: false, usesConfigMap: isInstall };
  }

  #changeConfigMap(world: World): Operation {
    const hasConfigMap = !world.hasConfigMap;
    const body = hasConfigMap ? { data: { ignition: ignitionOf(installer) } } : undefined;
    return {
      what: `ConfigMap: ${hasConfigMap ? "create" : "delete"}`,
      writes: [{ kind: "ConfigMap", name: configMapName, ...(body && { body }) }],
      world: { ...world, hasConfigMap },
    };
  }

  /** A rack's Groups at once, as a prune does. */
  #removeMany(world: World): Operation {
    const from = this.#pick(this.#machines.length);
    const names = this.#machines.slice(from, from + 20).map(({ name }) => name);
    const isRemoval = names.filter((name) => world.groups.has(name)).length * 2 > names.length;
    const entries = names.map(
      (name, at): Entry => [
        name,
        isRemoval ? undefined : (world.groups.get(name) ?? ownGroup(this.#machineOf(name), from + at)),
      ],
    );
    return this.#put(world, `${isRemoval ? "remove" : "restore"} ${names.length} Groups from ${names[0]}`, entries);
  }

  #put(world: World, what: string, entries: readonly Entry[]): Operation {
    const groups = new Map(world.groups);
    for (const [name, group] of entries) {
      if (group === undefined) groups.delete(name);
      else groups.set(name, group);
    }
    const writes = entries.map(([name, group]) => ({
      kind: "Group" as const,
      name,
      ...(group && { body: { spec: groupSpec(group) } }),
    }));
    return { what, writes, world: { ...world, groups } };
  }

  #putProfile(world: World, what: string, name: string, versions: readonly (ChaosProfile | undefined)[]): Operation {
    const profiles = new Map(world.profiles);
    const last = versions.at(-1);
    if (last === undefined) profiles.delete(name);
    else profiles.set(name, last);
    const writes = versions.map((profile) => ({
      kind: "Profile" as const,
      name,
      ...(profile && { body: { spec: profileSpec(profile) } }),
    }));
    return { what, writes, world: { ...world, profiles } };
  }

  #machineOf(name: string): Machine {
    const machine = this.#machines.find((each) => each.name === name) ?? this.#machines[0];
    if (machine === undefined) throw new Error("There are no machines");
    return machine;
  }

  #one<Value>(values: readonly Value[]): Value {
    const value = values[this.#pick(values.length)];
    if (value === undefined) throw new Error("Nothing to pick from");
    return value;
  }
}

type Entry = readonly [name: string, group: ChaosGroup | undefined];

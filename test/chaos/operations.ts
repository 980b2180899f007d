/** Random changes of the objects: what operators, tenants, tools and accidents do to them. */

import type { JsonObject } from "../../src/model/json.ts";
import type { Pick } from "../helpers/fault-files.ts";
import {
  catchAll,
  catchAllName,
  installers,
  machineObject,
  ownGroup,
  ownLabels,
  profileNames,
  roles,
  wholeProfile,
} from "./first-world.ts";
import {
  type ChaosGroup,
  type ChaosMachine,
  type ChaosProfile,
  configMapName,
  type Grant,
  groupSpec,
  ignitionOf,
  type Machine,
  machineSpec,
  profileSpec,
  type World,
} from "./world.ts";

export type Kind = "Group" | "Profile" | "Machine" | "ConfigMap";

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
  /** How long the person waits before it; undefined for any time. */
  readonly pauseMs?: number | undefined;
}

const priorities = [0, 0, 0, 10, 1_000] as const;

export class Operations {
  readonly #machines: readonly Machine[];
  readonly #pick: Pick;
  /** The id of davit's ledger, which grants name. */
  readonly #ledger: () => string;
  #twins = 0;
  #revision = 1;
  #generation = 0;
  /** What a person has begun and goes on with. */
  #plan: Step[] = [];

  constructor(machines: readonly Machine[], pick: Pick, ledger: () => string) {
    this.#machines = machines;
    this.#pick = pick;
    this.#ledger = ledger;
  }

  /** The next change of what the objects say now. */
  next(world: World): Operation {
    if (this.#plan.length === 0 && this.#pick(3) === 0) this.#plan = this.#changesAndGrant(this.#one(this.#machines));
    const step = this.#plan.shift();
    return step === undefined ? this.#any(world) : { ...step.make(world), pauseMs: step.pauseMs };
  }

  /** A person changes what a machine is installed with, and then grants its install. */
  #changesAndGrant(machine: Machine): Step[] {
    const pauses = [0, 0, 200, 500, 2_000, 4_000];
    const edits = Array.from({ length: 1 + this.#pick(2) }, (): Step => {
      const pauseMs = this.#one(pauses);
      return { pauseMs, make: (world) => this.#edit(world, machine) };
    });
    return [...edits, { pauseMs: this.#one(pauses), make: (world) => this.#grant(world, machine) }];
  }

  /** Changes one of the objects that an install of this machine is made from. */
  #edit(world: World, { name }: Machine): Operation {
    const own = world.machines.get(name);
    const group = world.groups.get(name);
    const profile = group?.profile ?? (own === undefined ? "careful" : roles[own.role as keyof typeof roles]);
    const planned = installers.some((each) => each === profile) ? profile : this.#one(["careful", "wiper"] as const);
    return this.#one([
      () => this.#editProfile(world, planned),
      () => this.#editProfile(world, planned),
      () => this.#editConfigMap(world),
      () =>
        own === undefined
          ? this.#toProfile(world, name, planned === "careful" ? "wiper" : "careful")
          : this.#putMachine(world, name, { ...own, role: this.#one(["db", "old"]) }),
    ])();
  }

  #toProfile(world: World, name: string, profile: string): Operation {
    const group = world.groups.get(name) ?? ownGroup(this.#machineOf(name), 0);
    return this.#put(world, `Group ${name}: ${profile}`, [[name, { ...group, profile, grant: undefined }]]);
  }

  /** On the Machine if there is one, or on the Group. */
  #grant(world: World, machine: Machine): Operation {
    const { name } = machine;
    const own = world.machines.get(name);
    const generation = ++this.#generation;
    const what = `grant ${generation}`;
    if (own !== undefined) return this.#putMachine(world, name, { ...own, hold: false, generation }, what);
    const group = world.groups.get(name) ?? { ...ownGroup(machine, 0), profile: "careful" };
    const grant: Grant = { generation, scope: this.#one(["NeverInstalled", "All"]) };
    const profile = roles.web === group.profile || group.profile === "spare" ? "careful" : group.profile;
    return this.#put(world, `Group ${name}: ${what} ${grant.scope}`, [
      [name, { ...group, profile, hold: false, isMalformed: false, grant }],
    ]);
  }

  #editProfile(world: World, name: string): Operation {
    const profile = world.profiles.get(name) ?? wholeProfile(name, 0);
    const revision = ++this.#revision;
    return this.#putProfile(world, `Profile ${name}: revision ${revision}`, name, [{ ...profile, revision }]);
  }

  #editConfigMap(world: World): Operation {
    return this.#putConfigMap(world, ++this.#revision);
  }

  #putConfigMap(world: World, configMap: number | undefined): Operation {
    const body = configMap === undefined ? undefined : { data: { ignition: ignitionOf(configMap) } };
    return {
      what: `ConfigMap: ${configMap ?? "delete"}`,
      writes: [{ kind: "ConfigMap", name: configMapName, ...(body && { body }) }],
      world: { ...world, configMap },
    };
  }

  #putMachine(world: World, name: string, machine: ChaosMachine | undefined, what?: string): Operation {
    const machines = new Map(world.machines);
    if (machine === undefined) machines.delete(name);
    else machines.set(name, machine);
    const body = machine && { spec: machineSpec(machine, this.#ledger()) };
    const { role, hold } = machine ?? {};
    return {
      what: `Machine ${name}: ${what ?? (machine === undefined ? "delete" : `${role}${hold ? ", hold" : ""}`)}`,
      writes: [{ kind: "Machine", name, ...(body && { body }) }],
      world: { ...world, machines },
    };
  }

  #changeMachine(world: World): Operation {
    const name = this.#one([
      ...world.machines.keys(),
      ...(this.#pick(3) === 0 ? [this.#one(this.#machines).name] : []),
    ]);
    const machine = world.machines.get(name);
    if (machine === undefined) return this.#putMachine(world, name, machineObject(this.#machineOf(name)));
    if (this.#pick(4) === 0) return this.#putMachine(world, name, undefined);
    const others = [
      { ...machine, role: this.#one(Object.keys(roles)) },
      { ...machine, hold: !machine.hold },
      { ...machine, generation: undefined },
    ];
    return this.#putMachine(world, name, this.#one(others));
  }

  #any(world: World): Operation {
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
      () => this.#changeMachine(world),
      () => this.#changeMachine(world),
      () => this.#changeProfile(world),
      () => this.#editProfile(world, this.#one(profileNames)),
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
      () => ["install", { ...group, profile: "installer", hold: false, isMalformed: false }],
      () => ["by permit", { ...group, profile: "careful", hold: false, isMalformed: false }],
      () => ["without a grant", { ...group, grant: undefined }],
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
    return this.#put(world, `Group ${name}: twin of ${machine.name}`, [
      [name, { ...group, profile: this.#one(installers), grant: undefined }],
    ]);
  }

  #list(world: World): Operation {
    const from = this.#pick(this.#machines.length - 5);
    const macs = this.#machines.slice(from, from + 5).map(({ labels }) => labels.mac ?? "");
    const profile = this.#one(["work", "installer"]);
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
    const whole = wholeProfile(name, ++this.#revision);
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
    const profile = world.profiles.get(name) ?? wholeProfile(name, ++this.#revision);
    return this.#putProfile(world, `Profile ${name}: delete and create`, name, [undefined, profile]);
  }

  #changeConfigMap(world: World): Operation {
    return this.#putConfigMap(world, world.configMap === undefined ? ++this.#revision : undefined);
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
      ...(group && { body: { spec: groupSpec(group, this.#ledger()) } }),
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

/** A change that a person makes after another one. */
interface Step {
  readonly pauseMs: number;
  readonly make: (world: World) => Operation;
}

type Entry = readonly [name: string, group: ChaosGroup | undefined];

/**
 * A fleet under chaos: a real API server, davits that follow it or another one's store, 200 machines that ask all of them
 * all the time, and a catch-all that installs. Objects change at random, connections break, processes die, and etcd goes
 * back to an older state. A seed repeats the choices, not what the machine makes of them.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { type Cluster, type EtcdCopy, startCluster } from "../../tools/cluster/cluster.ts";
import { type Pick, seededPick } from "../helpers/fault-files.ts";
import { countsText, type Davits, Disturber, type Pace } from "./davits.ts";
import { firstWorld } from "./first-world.ts";
import type { StartOptions } from "./one-davit.ts";
import { type Kind, type Operation, Operations } from "./operations.ts";
import { unsettled } from "./outcome.ts";
import { fleet, markMac, Witness } from "./witness.ts";
import { configMapName, groupSpec, ignitionOf, machineSpec, profileSpec, type World } from "./world.ts";

export interface ChaosOptions extends Pace {
  readonly seed: number;
  readonly startDavits: (options: StartOptions) => Promise<Davits>;
}

const machineCount = 200;
const maxStaleMs = 4_000;
// What a busy machine may add to a limit that davit keeps.
const slackMs = 4_000;
const patienceMs = 120_000;

const machines = fleet(machineCount);

interface Saved {
  readonly copy: EtcdCopy;
  readonly world: World;
}

export class ChaosRun {
  readonly #options: ChaosOptions;
  readonly #pick: Pick;
  readonly #operations: Operations;
  readonly #directory: string;
  readonly #cluster: Cluster;
  readonly #davits: Davits;
  #world: World = firstWorld(machines);
  #witness: Witness;
  #saved: Saved | undefined;
  readonly #disturber: Disturber;
  #done = 0;

  private constructor(options: ChaosOptions, parts: { directory: string; cluster: Cluster; davits: Davits }) {
    this.#options = options;
    this.#pick = seededPick(options.seed);
    this.#operations = new Operations(machines, this.#pick, () => parts.davits.ledger);
    this.#directory = parts.directory;
    this.#cluster = parts.cluster;
    this.#davits = parts.davits;
    const kinds = {
      ...parts.davits.disturbances,
      "API server killed": () => this.#cluster.restart(),
      "API server paused": () => this.#pauseApi(),
      "etcd restored": () => this.#restore(),
    };
    this.#disturber = new Disturber({ kinds, pick: this.#pick, shortMs: maxStaleMs });
    this.#witness = new Witness(
      {
        machines,
        davits: parts.davits.urls,
        staleMs: maxStaleMs + slackMs,
        pick: seededPick(options.seed + 1),
      },
      this.#world,
    );
  }

  /** Starts everything, with the first objects applied and served by all davits. */
  static async start(options: ChaosOptions): Promise<ChaosRun> {
    const directory = await mkdtemp(join(tmpdir(), "davit-chaos-"));
    const cluster = await startCluster();
    await relaxSelectors(cluster);
    await createFirst(cluster);
    const davits = await options.startDavits({
      cluster,
      directory,
      serveArgs: ["--limit", "watch-silence=3s", "--tombstone-ttl", "5s"],
      commonArgs: ["--install-max-source-age", `${maxStaleMs}ms`, "--limit", "source-grace=1s"],
    });
    const run = new ChaosRun(options, { directory, cluster, davits });
    await run.#mark(0);
    return run;
  }

  get witness(): Witness {
    return this.#witness;
  }

  /** What was done, and what machines got, as text. */
  get summary(): string {
    const [disturbed, answers] = [this.#disturber.counts, this.#witness.counts].map(countsText);
    return `seed ${this.#options.seed}, ${this.#done} changes; ${disturbed}; answers: ${answers}`;
  }

  /** Does everything, and waits until nothing is disturbed any more. */
  async run(): Promise<void> {
    this.#witness.start();
    await this.#witness.untilInstalls();
    const next = () => this.#operations.next(this.#world);
    this.#done = await this.#disturber.amid(this.#options, { next, change: (operation) => this.#change(operation) });
    // A Group whose selector cannot be read may name any machine: those that no other Group names would wait for ever.
    await this.#change(this.#operations.mend(this.#world));
  }

  /** As the function of that name. */
  async unsettled(): Promise<readonly string[]> {
    const davits = Object.keys(this.#davits.urls);
    return await unsettled({ witness: this.#witness, davits, machines, world: this.#world });
  }

  async stop(): Promise<void> {
    await this.#witness.stop();
    await this.#disturber.settle();
    await this.#davits.stop();
    await this.#cluster.stop();
    await rm(this.#directory, { recursive: true });
  }

  async #change({ what, writes, world }: Operation): Promise<void> {
    const number = this.#witness.begin(world, what);
    for (const { kind, name, body } of writes) await this.#write(kind, name, body);
    this.#world = world;
    this.#witness.written(number);
    await this.#mark(number);
  }

  async #mark(number: number): Promise<void> {
    await this.#write("Group", "mark", {
      spec: {
        profileRef: { name: "mark" },
        selector: { matchLabels: { mac: markMac } },
        metadata: { group_mark: number },
      },
    });
    await this.#write("Profile", "mark", {
      spec: {
        metadata: { profile_mark: number },
        generic: { templateFrom: { configMapKeyRef: { name: "mark", key: "mark" } } },
      },
    });
    await this.#write("ConfigMap", "mark", { data: { mark: `${number}` } });
  }

  /** Applies an object, or deletes it. */
  async #write(kind: Kind, name: string, body?: JsonObject): Promise<void> {
    await writeObject(this.#cluster, kind, name, body);
  }

  async #pauseApi(): Promise<void> {
    await this.#cluster.pause();
    await systemClock.sleep(500 + this.#pick(3_000));
    this.#cluster.resume();
  }

  /** Keeps a copy the first time, goes back to it the second time. */
  async #restore(): Promise<void> {
    if (this.#saved === undefined) {
      this.#saved = { copy: await this.#cluster.copyEtcd(), world: this.#world };
      return;
    }
    const { copy, world } = this.#saved;
    this.#saved = undefined;
    const number = this.#witness.begin(world, "etcd goes back to a copy");
    await this.#cluster.restoreEtcd(copy);
    this.#world = world;
    this.#witness.written(number);
    await this.#mark(number);
  }
}

const collections: Readonly<Record<Kind, string>> = {
  Group: "/apis/davit.dev/v1alpha1/namespaces/default/groups",
  Profile: "/apis/davit.dev/v1alpha1/namespaces/default/profiles",
  Machine: "/apis/davit.dev/v1alpha1/namespaces/default/machines",
  ConfigMap: "/api/v1/namespaces/default/configmaps",
};

async function writeObject(cluster: Cluster, kind: Kind, name: string, body?: JsonObject): Promise<void> {
  const path = `${collections[kind]}/${name}`;
  if (body === undefined) {
    const { status } = await cluster.ask({ method: "DELETE", path });
    if (status !== 200 && status !== 404) throw new Error(`Deleting ${kind} ${name}: ${status}`);
    return;
  }
  const apiVersion = kind === "ConfigMap" ? "v1" : "davit.dev/v1alpha1";
  const object = { apiVersion, kind, metadata: { name }, ...body };
  const contentType = "application/apply-patch+yaml";
  const asked = { method: "PATCH", path: `${path}?fieldManager=chaos&force=true`, body: object, contentType } as const;
  const answer = await cluster.ask(asked);
  if (answer.status >= 300) throw new Error(`Applying ${kind} ${name}: ${JSON.stringify(answer.body)}`);
}

// An API server on two cores has no more to do at a time.
const writers = 8;

async function createFirst(cluster: Cluster): Promise<void> {
  const world = firstWorld(machines);
  await writeObject(cluster, "ConfigMap", configMapName, { data: { ignition: ignitionOf(world.configMap ?? 0) } });
  for (const [name, profile] of world.profiles) {
    await writeObject(cluster, "Profile", name, { spec: profileSpec(profile) });
  }
  for (const [name, machine] of world.machines) {
    await writeObject(cluster, "Machine", name, { spec: machineSpec(machine) });
  }
  const groups = world.groups.entries();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (const [name, group] of groups) await writeObject(cluster, "Group", name, { spec: groupSpec(group) });
    }),
  );
}

/** Has the API server take selectors that davit refuses, as one with a CRD of another version may. */
async function relaxSelectors(cluster: Cluster): Promise<void> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/groups.davit.dev";
  const { body } = await cluster.ask({ path });
  const relaxed = withoutRules(body);
  if (!isJsonObject(relaxed)) throw new Error("The CRD of Groups is no object");
  const { status } = await cluster.ask({ method: "PUT", path, body: relaxed });
  if (status !== 200) throw new Error(`Relaxing the CRD of Groups: ${status}`);
  await takesMalformed(cluster);
}

// Where an OpenAPI schema says which values are right; their types stay.
const rules: ReadonlySet<string> = new Set(["x-kubernetes-validations", "pattern", "anyOf", "allOf", "oneOf"]);

function withoutRules(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutRules);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !rules.has(name));
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutRules(each)]));
}

/** Waits until the API server goes by the relaxed CRD. */
async function takesMalformed(cluster: Cluster): Promise<void> {
  const spec = groupSpec({ labels: {}, macs: [], priority: 0, hold: true, profile: "work", isMalformed: true });
  const limit = systemClock.monotonicMs() + patienceMs;
  for (;;) {
    try {
      await writeObject(cluster, "Group", "probe", { spec });
      await writeObject(cluster, "Group", "probe");
      return;
    } catch (error) {
      if (systemClock.monotonicMs() > limit) throw error;
      await systemClock.sleep(100);
    }
  }
}

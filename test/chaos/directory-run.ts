/**
 * A directory under chaos: davits that serve it, machines that ask all the time, and somebody who writes its files in
 * every way that people and programs do. Between the changes davits die, and their store is out of reach.
 */

import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import type { JsonObject } from "../../src/model/json.ts";
import { type Pick, seededPick } from "../helpers/fault-files.ts";
import { countsText, type Davits, Disturber, type Pace } from "./davits.ts";
import { maxStaleMs, startFileDavits } from "./file-davits.ts";
import { firstWorld } from "./first-world.ts";
import { type Operation, Operations, type Write } from "./operations.ts";
import { unsettled } from "./outcome.ts";
import { fleet, Witness } from "./witness.ts";
import { configMapName, groupSpec, ignitionOf, type Machine, machineSpec, profileSpec, type World } from "./world.ts";
import { Writing } from "./writing.ts";

export interface DirectoryOptions extends Pace {
  readonly seed: number;
}

const machineCount = 60;
// A change that davit has seen stops every install, but a follower whose store is away does not see it. The rest is for a
// busy machine.
const staleMs = maxStaleMs + 4_000;
const shortMs = 4_000;

export class DirectoryRun {
  readonly #options: DirectoryOptions;
  readonly #pick: Pick;
  readonly #machines: readonly Machine[] = fleet(machineCount);
  readonly #operations: Operations;
  readonly #folder: string;
  readonly #davits: Davits;
  readonly #disturber: Disturber;
  readonly #writing: Writing;
  #done = 0;
  #world: World = firstWorld(this.#machines);
  readonly witness: Witness;

  private constructor(options: DirectoryOptions, folder: string, davits: Davits) {
    this.#options = options;
    this.#pick = seededPick(options.seed);
    this.#operations = new Operations(this.#machines, this.#pick, () => davits.ledger);
    this.#folder = folder;
    this.#davits = davits;
    this.#disturber = new Disturber({ kinds: davits.disturbances, pick: this.#pick, shortMs });
    this.#writing = new Writing({ folder, pick: this.#pick });
    this.witness = new Witness(
      { machines: this.#machines, davits: davits.urls, staleMs, pick: seededPick(options.seed + 1) },
      this.#world,
    );
  }

  /** Starts the davits on a directory with the first objects. */
  static async start(options: DirectoryOptions): Promise<DirectoryRun> {
    const folder = await mkdtemp(join(tmpdir(), "davit-chaos-files-"));
    const manifests = join(folder, "manifests");
    await mkdir(manifests);
    for (const write of firstWrites(firstWorld(fleet(machineCount)))) {
      const path = join(manifests, fileOf(write));
      await writeFile(path, textOf(write));
      await utimes(path, 1e9, 1e9);
    }
    return new DirectoryRun(options, folder, await startFileDavits({ manifests, folder }));
  }

  /** What was done, and what machines got, as text. */
  get summary(): string {
    const [ways, disturbed, answers] = [this.#writing.counts, this.#disturber.counts, this.witness.counts].map(
      countsText,
    );
    return `files: seed ${this.#options.seed}, ${this.#done} changes; ${ways}; ${disturbed}; answers: ${answers}`;
  }

  async run(): Promise<void> {
    this.witness.start();
    await this.witness.untilInstalls();
    const next = () => this.#operations.next(this.#world);
    this.#done = await this.#disturber.amid(this.#options, { next, change: (operation) => this.#change(operation) });
    // A file that davit refuses holds up every deletion, which may have been meant to move an object into it.
    await this.#change(this.#operations.mend(this.#world));
  }

  async #change({ what, writes, world }: Operation): Promise<void> {
    const number = this.witness.begin(world, what);
    // Few are written one after the other, as their order may matter; many at once, as a tool does.
    if (writes.length > 2) await Promise.all(writes.map((write) => this.#write(write)));
    else for (const write of writes) await this.#write(write);
    this.#world = world;
    this.witness.written(number);
  }

  /** As the function of that name. */
  async unsettled(): Promise<readonly string[]> {
    const { witness } = this;
    const davits = Object.keys(this.#davits.urls);
    return await unsettled({ witness, davits, machines: this.#machines, world: this.#world });
  }

  async stop(): Promise<void> {
    await this.witness.stop();
    await this.#disturber.settle();
    await this.#davits.stop();
    await rm(this.#folder, { recursive: true });
  }

  async #write(write: Write): Promise<void> {
    const path = join(this.#folder, "manifests", fileOf(write));
    if (write.body === undefined) await rm(path, { force: true });
    else await this.#writing.write(path, textOf(write));
  }
}

function firstWrites({ groups, profiles, machines, configMap = 0 }: World): readonly Write[] {
  const spec = (kind: Write["kind"], name: string, body: JsonObject): Write => ({ kind, name, body: { spec: body } });
  return [
    { kind: "ConfigMap", name: configMapName, body: { data: { ignition: ignitionOf(configMap) } } },
    ...[...profiles].map(([name, each]) => spec("Profile", name, profileSpec(each))),
    ...[...machines].map(([name, each]) => spec("Machine", name, machineSpec(each))),
    ...[...groups].map(([name, each]) => spec("Group", name, groupSpec(each))),
  ];
}

function fileOf({ kind, name }: Write): string {
  return `${kind.toLowerCase()}-${name}.yaml`;
}

/** As a person writes it, the most dangerous way round: what holds a machine back stands last. */
function textOf({ kind, name, body = {} }: Write): string {
  const object: JsonObject = {
    apiVersion: kind === "ConfigMap" ? "v1" : "davit.dev/v1alpha1",
    kind,
    metadata: { name },
    ...body,
  };
  return stringify(object, { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "PLAIN" });
}

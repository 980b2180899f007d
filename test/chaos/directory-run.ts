/**
 * A directory under chaos: a davit that serves it, machines that ask all the time, and somebody who writes its files in
 * every way that people and programs do: renamed whole, in place with pauses, cut off, with rubbish at their end.
 */

import { mkdir, mkdtemp, open, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { systemClock } from "../../src/lib/clock.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { firstWorld, installer, type Operation, Operations, type Pick, type Write } from "./operations.ts";
import { unsettled } from "./outcome.ts";
import { fleet, type Machine, Witness } from "./witness.ts";
import { configMapName, groupSpec, ignitionOf, profileSpec, type World } from "./world.ts";

export interface DirectoryOptions {
  readonly seed: number;
  readonly operations: number;
  /** From one change to the next, on average. */
  readonly paceMs: number;
}

const machineCount = 60;
// A file that shrank or has no last newline counts after 10 s; the rest is for a busy machine.
const staleMs = 16_000;
// Below the two seconds in which a file has to rest: a writer that pauses longer is a documented limit.
const longestPauseMs = 1_500;

type Manner = "renamed" | "in pieces" | "cut off" | "rubbish at its end";
const manners: readonly Manner[] = ["renamed", "in pieces", "in pieces", "cut off", "rubbish at its end"];

export class DirectoryRun {
  readonly #options: DirectoryOptions;
  readonly #pick: Pick;
  readonly #machines: readonly Machine[] = fleet(machineCount);
  readonly #operations: Operations;
  readonly #folder: string;
  readonly #davit: DavitProcess;
  readonly #counts = new Map<string, number>();
  #world: World = firstWorld(this.#machines);
  readonly witness: Witness;

  private constructor(options: DirectoryOptions, folder: string, davit: DavitProcess) {
    this.#options = options;
    this.#pick = seededPick(options.seed);
    this.#operations = new Operations(this.#machines, this.#pick);
    this.#folder = folder;
    this.#davit = davit;
    this.witness = new Witness(
      {
        machines: this.#machines,
        davits: { directory: () => davit.bootUrl },
        installer,
        staleMs,
        pick: seededPick(options.seed + 1),
      },
      this.#world,
    );
  }

  /** Starts davit on a directory with the first objects. */
  static async start(options: DirectoryOptions): Promise<DirectoryRun> {
    const folder = await mkdtemp(join(tmpdir(), "davit-chaos-files-"));
    const manifests = join(folder, "manifests");
    await mkdir(manifests);
    for (const write of firstWrites(firstWorld(fleet(machineCount)))) {
      const path = join(manifests, fileOf(write));
      await writeFile(path, textOf(write));
      await utimes(path, 1e9, 1e9);
    }
    const davit = await startDavit({ manifests, dataDir: join(folder, "data") });
    return new DirectoryRun(options, folder, davit);
  }

  /** What was done, and what machines got, as text. */
  get summary(): string {
    const [done, answers] = [this.#counts, this.witness.counts].map((counts) =>
      [...counts]
        .toSorted()
        .map(([what, count]) => `${what}: ${count}`)
        .join(", "),
    );
    return `files: seed ${this.#options.seed}, ${this.#options.operations} changes; ${done}; answers: ${answers}`;
  }

  async run(): Promise<void> {
    this.witness.start();
    await this.witness.untilInstalls();
    for (let at = 0; at < this.#options.operations; at++) {
      await this.#change(this.#operations.next(this.#world));
      await systemClock.sleep(this.#pick(this.#options.paceMs * 2));
    }
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
    return await unsettled({ witness, davits: ["directory"], machines: this.#machines, world: this.#world });
  }

  async stop(): Promise<void> {
    await this.witness.stop();
    await this.#davit.stop();
    await rm(this.#folder, { recursive: true });
  }

  async #write(write: Write): Promise<void> {
    const path = join(this.#folder, "manifests", fileOf(write));
    if (write.body === undefined) {
      await rm(path, { force: true });
      return;
    }
    const manner = manners[this.#pick(manners.length)] ?? "renamed";
    this.#counts.set(manner, (this.#counts.get(manner) ?? 0) + 1);
    const text = textOf(write);
    const cut = 1 + this.#pick(text.length - 1);
    const start = text.slice(0, cut);
    if (manner === "in pieces") return await this.#inPieces(path, [start, text.slice(cut)]);
    if (manner === "cut off") await this.#inPieces(path, [start]);
    if (manner === "rubbish at its end") await this.#inPieces(path, [start, "\n\t}{ no: [yaml\n"]);
    const whole = join(this.#folder, fileOf(write));
    await writeFile(whole, text);
    await rename(whole, path);
  }

  /** Each piece comes a while after the one before it, and the file stays a while as it is. */
  async #inPieces(path: string, pieces: readonly string[]): Promise<void> {
    const file = await open(path, "w");
    try {
      for (const piece of pieces) {
        await file.writeFile(piece);
        await systemClock.sleep(this.#pick(longestPauseMs));
      }
    } finally {
      await file.close();
    }
  }
}

function firstWrites({ groups, profiles }: World): readonly Write[] {
  return [
    { kind: "ConfigMap", name: configMapName, body: { data: { ignition: ignitionOf(installer) } } },
    ...[...profiles].map(([name, each]) => ({ kind: "Profile" as const, name, body: { spec: profileSpec(each) } })),
    ...[...groups].map(([name, each]) => ({ kind: "Group" as const, name, body: { spec: groupSpec(each) } })),
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

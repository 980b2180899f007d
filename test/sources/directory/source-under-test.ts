import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Clock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/logging/create-log.ts";
import { type JsonObject, parseJsonObject } from "../../../src/model/json.ts";
import type { ObjectName } from "../../../src/model/objects/source.ts";
import { DirectorySource } from "../../../src/sources/directory/directory.ts";

/** Makes an empty directory that `disposals` removes. */
export async function temporaryDirectory(disposals: (() => Promise<void>)[]): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "davit-directory-"));
  disposals.push(() => rm(path, { recursive: true, force: true }));
  return path;
}

export async function writeFiles(root: string, files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

interface StartOptions {
  readonly directories: readonly string[];
  /** Which a test moves itself, from the first look on. */
  readonly clock?: Clock;
  /** See `StepClock`. */
  readonly aheadMs?: number;
  readonly crdsDirectory?: string;
}

/**
 * A clock whose sleepers wake when a test says so; the time moves by as much as they wanted.
 * Its wall clock is an hour ahead of that of files, unless a test says by how much: what a test writes was finished long
 * ago and counts at once.
 */
export class StepClock implements Clock {
  readonly #startMs: number;
  #nowMs = 0;

  constructor(aheadMs = 3_600_000) {
    this.#startMs = Date.now() + aheadMs;
  }
  #sleepers: { readonly durationMs: number; readonly wake: () => void }[] = [];

  /** How long whoever sleeps now wants to sleep. */
  get sleepingMs(): readonly number[] {
    return this.#sleepers.map(({ durationMs }) => durationMs);
  }

  nowMs(): number {
    return this.#startMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
    if (durationMs <= 0 || signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { durationMs, wake: resolve };
      this.#sleepers.push(sleeper);
      const end = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      };
      signal?.addEventListener("abort", end, { once: true });
    });
  }

  /** Waits until someone sleeps. */
  async someoneSleeps(): Promise<void> {
    while (this.#sleepers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Wakes those who sleep now. */
  step(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    this.#nowMs += Math.max(...sleepers.map(({ durationMs }) => durationMs));
    for (const { wake } of sleepers) wake();
  }
}

/** A directory source with its real worker, a clock that a test moves, and a record of what it told. */
export class SourceUnderTest {
  readonly source: DirectorySource;
  /** The source's clock unless the test gave another. */
  readonly clock: StepClock;
  readonly logLines: string[] = [];
  /** Each call of `changed`, as sorted `Kind/namespace/name`. */
  readonly changes: string[][] = [];
  listedCount = 0;
  #waiting: { readonly seen: () => boolean; readonly resolve: () => void }[] = [];

  static async start(options: StartOptions): Promise<SourceUnderTest> {
    const started = new SourceUnderTest(options);
    const looked = started.#nextLook();
    await started.source.start({
      listed: () => {
        started.listedCount++;
        started.#wake();
      },
      changed: (names) => {
        started.changes.push(names.map(textOf).toSorted());
        started.#wake();
      },
    });
    if (options.clock !== undefined) await looked;
    // The first look waits, too, until files were seen twice alike, and the first list until they are at rest.
    else while (started.listedCount === 0) await started.look();
    return started;
  }

  private constructor({ directories, clock, aheadMs, crdsDirectory }: StartOptions) {
    this.clock = new StepClock(aheadMs);
    const write = (line: string) => {
      this.logLines.push(line);
      this.#wake();
    };
    const log = createLog({ level: "debug", format: "json", destination: { write } });
    this.source = new DirectorySource({
      directories,
      rescanMs: 30_000,
      clock: clock ?? this.clock,
      log,
      ...(crdsDirectory && { crdsDirectory }),
    });
  }

  /** Lets time pass until the source looks, `times` times: a changed file is read when it was seen twice alike. */
  async look(times = 1): Promise<void> {
    for (let count = 0; count < times; count++) {
      const looked = this.#nextLook();
      await this.clock.someoneSleeps();
      this.clock.step();
      // A watch that stirred during the sleep makes a second, short one before the look.
      while (!(await settled(looked))) if (this.clock.sleepingMs.length > 0) this.clock.step();
    }
  }

  /** Lets the source look until a fact holds: a late event of a watch may bring a look before its time. */
  async lookUntil(seen: () => boolean): Promise<void> {
    for (let count = 0; count < 20 && !seen(); count++) await this.look();
  }

  /** Waits until a fact holds; it is asked whenever the source told something. */
  until(seen: () => boolean): Promise<void> {
    return seen() ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ seen, resolve }));
  }

  /** Messages of all problems, each behind its origin. */
  problems(): readonly string[] {
    return this.source.view.problems.map(({ origin, message }) => `${origin}: ${message}`);
  }

  names(kind: ObjectName["kind"]): readonly string[] {
    return [...this.source.view.all(kind)].map(({ namespace, name }) => `${namespace}/${name}`).toSorted();
  }

  group(name: string) {
    return this.source.view.get("Group", "default", name);
  }

  profile(name: string) {
    return this.source.view.get("Profile", "default", name);
  }

  /** Every line of the log with this message. */
  told(message: string): readonly JsonObject[] {
    const lines = this.logLines.map(parseJsonObject).filter((line) => line !== undefined);
    return lines.filter(({ msg }) => msg === message);
  }

  /** How many files the last look parsed; of all looks from one on, counted from 0. */
  parsedCount(from = -1): number {
    const looks = this.told("directories read").slice(from);
    return looks.reduce((sum, { parsed }) => sum + Number(parsed), 0);
  }

  #nextLook(): Promise<void> {
    const count = this.#lookCount();
    return this.until(() => this.#lookCount() > count);
  }

  #lookCount(): number {
    return this.logLines.filter((line) => line.includes('"directories read"')).length;
  }

  #wake(): void {
    for (const waiting of this.#waiting.filter(({ seen }) => seen())) {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      waiting.resolve();
    }
  }
}

/** Replaces a file as careful writers do: a new one beside it, then a rename. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const beside = join(dirname(path), ".new");
  await writeFile(beside, text);
  await rename(beside, path);
}

/** Lets events run for a moment; true when the promise is resolved by then. */
function settled(promise: Promise<void>): Promise<boolean> {
  const moment = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([promise.then(() => true), moment]);
}

function textOf({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`;
}

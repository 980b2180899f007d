/**
 * Asks for machines at several davits all the time, and compares each answer that installs with what the objects said:
 * at that moment, or at the moment before. The moment before ends where the davit has shown a mark that was written
 * after it; without new marks, with the time that an install may be stale.
 *
 * A person makes one change after the other. So objects that say a grant and an older version of what it installs
 * never existed, and such an answer is a breach however late the davit is. A grant installs a machine once: for a
 * minute, in which an answer can be lost, and never after the machine has reported its end.
 */

import { systemClock } from "../../src/lib/clock.ts";
import { installers } from "./first-world.ts";
import { bootBy, type Grant, givenBy, type Machine, objectsFor, type Version, versionIn, type World } from "./world.ts";

/** So many machines, each with a mac, a serial and a uuid of its own. */
export function fleet(count: number): readonly Machine[] {
  return Array.from({ length: count }, (_, at) => {
    const digits = at.toString(16).padStart(4, "0");
    const mac = `52:54:00:01:${digits.slice(0, 2)}:${digits.slice(2)}`;
    return {
      name: `node-${at}`,
      labels: { mac, serial: `SN${digits}`, uuid: `00000000-0000-4000-8000-00000001${digits}` },
    };
  });
}

export interface WitnessOptions {
  readonly machines: readonly Machine[];
  /** Where davits answer machines, by their names; undefined while one is down. */
  readonly davits: Readonly<Record<string, () => string | undefined>>;
  /** How long an install may follow objects that have changed meanwhile and no mark tells of, milliseconds. */
  readonly staleMs: number;
  readonly pick: (below: number) => number;
}

/** One state of the objects, for as long as it may have been what the API server had. */
interface Era {
  readonly world: World;
  readonly number: number;
  readonly fromMs: number;
  /** Infinity for the state of now. */
  untilMs: number;
  readonly what: string;
}

/** A question of a machine. */
interface Asked {
  readonly davit: string;
  readonly machine: Machine;
  readonly endpoint: string;
  readonly fromMs: number;
}

/** An answer that installs. */
interface Judged extends Asked {
  readonly version: Version;
  /** The mark that the davit had shown, and the grants whose end was reported, before the question. */
  readonly shown: number;
  readonly ended: ReadonlySet<number>;
  /** True if the machine may have claimed an install by a script that it did not get. */
  readonly mayHaveClaimed: boolean;
}

/** An install that the objects did not say. */
export interface Breach {
  readonly davit: string;
  readonly machine: string;
  readonly endpoint: string;
  readonly version: Version;
  /** Which grants the machine had used, and for how long, or reported as ended. */
  readonly used: string;
  /** The mark that the davit had shown before the question. */
  readonly shown: number;
  readonly atMs: number;
  /** The last changes, and those by which the machine was given something else, the newest last. */
  readonly after: readonly string[];
  /** The objects that have to do with the machine, in the end. */
  readonly objects: string;
}

const endpoints = ["ipxe", "ipxe", "ipxe", "grub", "ignition"] as const;
const pauseMs = 4;
// A script is repeated for a minute; the rest is for a busy machine.
const repeatMs = 65_000;
// One of so many installs ends with a report.
const reportEvery = 3;
const longestAnswerMs = 15_000;
const historyLength = 4;
const patienceMs = 120_000;

export class Witness {
  readonly breaches: Breach[] = [];
  /** How often each davit gave which kind of answer. */
  readonly counts = new Map<string, number>();
  readonly #options: WitnessOptions;
  readonly #eras: Era[] = [];
  /** The number of the era that each davit has shown, by its name. */
  readonly #shown = new Map<string, number>();
  /** When each machine first got a script by each grant, by the machine's name and the generation. */
  readonly #begun = new Map<string, Map<number, number>>();
  /** The grants whose install each machine has reported as ended, by the machine's name. */
  readonly #ended = new Map<string, Set<number>>();
  /** The versions of the scripts that each machine got by a permit, by the machine's name. */
  readonly #claimed = new Map<string, Set<string>>();
  /** How many scripts each machine has asked for without an answer, by the machine's name. */
  readonly #unanswered = new Map<string, number>();
  readonly #stopping = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(options: WitnessOptions, world: World) {
    this.#options = options;
    this.#eras.push({ world, number: 0, fromMs: systemClock.monotonicMs(), untilMs: Infinity, what: "the beginning" });
  }

  start(): void {
    this.#running = Object.keys(this.#options.davits).flatMap((davit) => [this.#ask(davit), this.#readMarks(davit)]);
  }

  /**
   * Waits until every davit installs a machine: else nothing would be tried.
   * @throws {Error} after two minutes.
   */
  async untilInstalls(): Promise<void> {
    const limit = systemClock.monotonicMs() + patienceMs;
    const names = Object.keys(this.#options.davits);
    while (!names.every((davit) => this.counts.has(`${davit} install`))) {
      if (systemClock.monotonicMs() > limit) throw new Error("No machine was installed within two minutes");
      await systemClock.sleep(100);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  /**
   * Notes what the objects say from now on. Called before the first write of a change; the states before may last
   * until `written`.
   * @returns the number by which the change is marked.
   */
  begin(world: World, what: string): number {
    const number = (this.#eras.at(-1)?.number ?? 0) + 1;
    this.#eras.push({ world, number, fromMs: systemClock.monotonicMs(), untilMs: Infinity, what });
    return number;
  }

  /** The writes of this change are done. */
  written(number: number): void {
    const now = systemClock.monotonicMs();
    for (const era of this.#eras) if (era.number < number && era.untilMs === Infinity) era.untilMs = now;
    this.#forget(now);
  }

  /** The lowest mark that all davits have shown. */
  get shownByAll(): number {
    return Math.min(...Object.keys(this.#options.davits).map((davit) => this.#shown.get(davit) ?? 0));
  }

  /** One answer, as the machine has it. */
  async answer(davit: string, { labels }: Machine, endpoint: string): Promise<{ status: number; body: string }> {
    const url = this.#options.davits[davit]?.();
    if (url === undefined) return { status: 0, body: "" };
    try {
      const signal = AbortSignal.timeout(longestAnswerMs);
      const answer = await fetch(`${url}/${endpoint}?${new URLSearchParams(labels)}`, { signal });
      return { status: answer.status, body: await answer.text() };
    } catch {
      // Down, or on its way down.
      return { status: 0, body: "" };
    }
  }

  async #ask(davit: string): Promise<void> {
    const { machines, pick } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const machine = machines[pick(machines.length)];
      const endpoint = endpoints[pick(endpoints.length)];
      if (machine === undefined || endpoint === undefined) continue;
      await this.#askOnce({ davit, machine, endpoint, fromMs: systemClock.monotonicMs() });
      await systemClock.sleep(pauseMs, signal);
    }
  }

  async #askOnce(asked: Asked): Promise<void> {
    const { davit, machine, endpoint } = asked;
    const { pick } = this.#options;
    const shown = this.#shown.get(davit) ?? 0;
    const begun = new Set(this.#begun.get(machine.name)?.keys());
    const ended = new Set(this.#ended.get(machine.name));
    const isScript = endpoint !== "ignition";
    const mayHaveClaimed = this.#unansweredOf(machine) > 0;
    const { status, body } = await this.#answerTo(asked);
    const version = status === 200 ? versionIn(body) : undefined;
    const isInstall = version !== undefined && installers.some((kernel) => kernel === version.kernel);
    const isPlanned = isInstall && version.kernel !== installers[0];
    this.#count(`${davit} ${isPlanned ? "by permit" : isInstall ? "install" : status}`);
    if (!isInstall) return;
    if (isPlanned && isScript) this.#claims(machine, version);
    this.#judge({ ...asked, shown, ended, version, mayHaveClaimed });
    if (isPlanned && isScript && pick(reportEvery) === 0) await this.#report(asked, begun);
  }

  /** The answer. A question for a script is counted as long as it may have claimed an install. */
  async #answerTo({ davit, machine, endpoint }: Asked): Promise<{ status: number; body: string }> {
    if (endpoint === "ignition") return await this.answer(davit, machine, endpoint);
    this.#unanswered.set(machine.name, this.#unansweredOf(machine) + 1);
    const answer = await this.answer(davit, machine, endpoint);
    // A claim may be in the ledger though the script is late.
    const isAnswered = answer.status !== 0 && !answer.body.includes("not logged yet");
    if (isAnswered) this.#unanswered.set(machine.name, this.#unansweredOf(machine) - 1);
    return answer;
  }

  /** Reports the end of an install that began before this question: another grant may have opened since. */
  async #report({ davit, machine }: Asked, begun: ReadonlySet<number>): Promise<void> {
    if (begun.size === 0) return;
    const { body } = await this.answer(davit, machine, "generic");
    const path = /\/report\/\S+/.exec(body)?.[0];
    const url = this.#options.davits[davit]?.();
    if (path === undefined || url === undefined) return;
    const signal = AbortSignal.timeout(longestAnswerMs);
    const report = { method: "POST", body: new URLSearchParams({ state: "installed" }), signal };
    const { ok } = await fetch(`${url}${path}`, report).catch(() => ({ ok: false }));
    this.#count(`${davit} ${ok ? "reported" : "report refused"}`);
    if (ok) this.#ended.set(machine.name, new Set([...(this.#ended.get(machine.name) ?? []), ...begun]));
  }

  #judge(asked: Judged): void {
    const { davit, machine, endpoint, version, fromMs, shown } = asked;
    const eras = this.#eras.filter(
      ({ number, untilMs }) => number >= shown && untilMs >= fromMs - this.#options.staleMs,
    );
    const begun = [...(this.#begun.get(machine.name) ?? [])];
    const ways = eras.flatMap(({ world }): readonly (Grant | "free")[] => {
      const boot = bootBy(world, machine.labels, version);
      if (boot === undefined) return [];
      if (boot.grants === undefined) return ["free"];
      const isConfig = endpoint === "ignition" && !asked.mayHaveClaimed;
      return isConfig ? this.#waysToConfig(asked) : boot.grants.filter((grant) => this.#isOpen(grant, asked));
    });
    const generations = new Set(ways.map((way) => (way === "free" ? 0 : way.generation)));
    const [generation] = generations;
    if (generation !== undefined) {
      // Of two open grants, the answer does not say which one it is by.
      if (generations.size === 1 && endpoint !== "ignition") this.#begin(machine.name, generation, fromMs);
      return;
    }
    // The first one of a machine says what there is to say.
    if (this.breaches.some((breach) => breach.davit === davit && breach.machine === machine.name)) return;
    const given = this.#eras.map(({ world }) =>
      JSON.stringify(givenBy(world, machine.labels, version.configMap !== undefined)),
    );
    const after = this.#eras.flatMap(({ number, what, fromMs: sinceMs }, at) => {
      const isNews = given[at] !== given[at - 1] || at >= given.length - historyLength;
      const seconds = Math.round((fromMs - sinceMs) / 100) / 10;
      return isNews ? [`${number}, ${seconds} s before: ${what}: ${given[at]}`] : [];
    });
    const ages = begun.map(([used, atMs]) => `${used} ${Math.round((fromMs - atMs) / 1_000)} s ago`);
    const used = `begun: ${ages.join(", ")}; ended: ${[...asked.ended].join(", ")}`;
    const newest = this.#eras.at(-1)?.world;
    const objects = newest === undefined ? "" : objectsFor(newest, machine.labels);
    this.breaches.push({ davit, machine: machine.name, endpoint, version, used, shown, atMs: fromMs, after, objects });
  }

  /**
   * A config is of the version for which the machine got a script by a permit. It may come after the grant was
   * withdrawn, as an installer may go on (machines.md), but not after its end.
   */
  #waysToConfig({ machine, version, ended }: Judged): readonly "free"[] {
    const begun = [...(this.#begun.get(machine.name)?.keys() ?? [])].filter((generation) => generation !== 0);
    const isOver = begun.length > 0 && begun.every((generation) => ended.has(generation));
    return this.#claimed.get(machine.name)?.has(textOf(version)) === true && !isOver ? ["free"] : [];
  }

  #claims({ name }: Machine, version: Version): void {
    this.#claimed.set(name, (this.#claimed.get(name) ?? new Set()).add(textOf(version)));
  }

  #unansweredOf({ name }: Machine): number {
    return this.#unanswered.get(name) ?? 0;
  }

  /** True if the machine may be installed by a grant that the objects have. */
  #isOpen({ generation, scope }: Grant, { machine, endpoint, fromMs, ended }: Judged): boolean {
    if (ended.has(generation)) return false;
    const begun = this.#begun.get(machine.name);
    // A machine whose next install has begun is no longer installed.
    const isInstalled = ended.size > 0 && [...(begun?.keys() ?? [])].every((each) => ended.has(each));
    if (isInstalled && scope === "NeverInstalled") return false;
    const sinceMs = begun?.get(generation);
    return endpoint === "ignition" || sinceMs === undefined || fromMs - sinceMs <= repeatMs;
  }

  #begin(name: string, generation: number, atMs: number): void {
    const begun = this.#begun.get(name) ?? new Map<number, number>();
    this.#begun.set(name, begun.set(generation, begun.get(generation) ?? atMs));
  }

  /** Follows the marks, one object of each kind, which are written after a change's own objects. */
  async #readMarks(davit: string): Promise<void> {
    const { signal } = this.#stopping;
    const mark = { name: "mark", labels: { mac: markMac } };
    while (!signal.aborted) {
      const { body } = await this.answer(davit, mark, "metadata");
      const numbers = ["GROUP_MARK", "PROFILE_MARK"].map((name) => Number(markOf(body, name)));
      const { body: part } = await this.answer(davit, mark, "generic");
      const shown = Math.min(...numbers, Number(part.trim() || "NaN"));
      if (shown > (this.#shown.get(davit) ?? 0)) this.#shown.set(davit, shown);
      await systemClock.sleep(pauseMs, signal);
    }
  }

  /** States that no answer can follow any more. */
  #forget(now: number): void {
    const oldest = now - this.#options.staleMs - longestAnswerMs * 2;
    while ((this.#eras[0]?.untilMs ?? Infinity) < oldest) this.#eras.shift();
  }

  #count(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }
}

/** The machine whose answers carry the marks. */
export const markMac = "52:54:ff:ff:ff:ff";

function textOf({ kernel, revision }: Version): string {
  return `${kernel} ${revision}`;
}

function markOf(body: string, name: string): string | undefined {
  return new RegExp(`^${name}="?(\\d+)"?$`, "m").exec(body)?.[1];
}

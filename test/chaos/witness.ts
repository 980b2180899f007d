/**
 * Asks for machines at several davits all the time, and holds each answer that installs against what the objects said:
 * at that moment, or at the moment before. The moment before ends where the davit has shown a mark that was written
 * after it; without new marks, with the time that an install may be stale.
 */

import { systemClock } from "../../src/lib/clock.ts";
import { installs, type Labels, type World } from "./world.ts";

export interface Machine {
  readonly name: string;
  readonly labels: Labels;
}

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
  /** The kernel of the only Profile that installs, which no other text names. */
  readonly installer: string;
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

/** An install that the objects did not say. */
export interface Breach {
  readonly davit: string;
  readonly machine: string;
  readonly endpoint: string;
  readonly atMs: number;
  /** What was done last, the newest last. */
  readonly after: readonly string[];
}

const endpoints = ["ipxe", "ipxe", "ipxe", "grub", "ignition"] as const;
const pauseMs = 4;
const longestAnswerMs = 15_000;
const historyLength = 12;
const patienceMs = 120_000;

export class Witness {
  readonly breaches: Breach[] = [];
  /** How often each davit gave which kind of answer. */
  readonly counts = new Map<string, number>();
  readonly #options: WitnessOptions;
  readonly #eras: Era[] = [];
  /** The number of the era that each davit has shown, by its name. */
  readonly #shown = new Map<string, number>();
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
    const { machines, pick, installer } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const machine = machines[pick(machines.length)];
      const endpoint = endpoints[pick(endpoints.length)];
      if (machine === undefined || endpoint === undefined) continue;
      const fromMs = systemClock.monotonicMs();
      const shown = this.#shown.get(davit) ?? 0;
      const { status, body } = await this.answer(davit, machine, endpoint);
      const isInstall = status === 200 && body.includes(installer);
      this.#count(`${davit} ${isInstall ? "install" : status}`);
      if (isInstall) this.#judge({ davit, machine, endpoint, fromMs, shown });
      await systemClock.sleep(pauseMs, signal);
    }
  }

  #judge(asked: { davit: string; machine: Machine; endpoint: string; fromMs: number; shown: number }): void {
    const { davit, machine, endpoint, fromMs, shown } = asked;
    const { installer, staleMs } = this.#options;
    const isSaid = this.#eras.some(
      ({ world, number, untilMs }) =>
        number >= shown &&
        untilMs >= fromMs - staleMs &&
        installs(world, machine.labels, installer, endpoint === "ignition"),
    );
    // The first one of a machine says what there is to say.
    const isKnown = this.breaches.some((breach) => breach.davit === davit && breach.machine === machine.name);
    if (isSaid || isKnown) return;
    const after = this.#eras.slice(-historyLength).map(({ number, what }) => `${number}: ${what}`);
    this.breaches.push({ davit, machine: machine.name, endpoint, atMs: fromMs, after });
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

function markOf(body: string, name: string): string | undefined {
  return new RegExp(`^${name}="?(\\d+)"?$`, "m").exec(body)?.[1];
}

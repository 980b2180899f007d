/**
 * Machines that boot and clients that write while davits have a fault. A machine asks until it is answered, as firmware
 * does, each time another davit; what it is answered is held against its objects.
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DavitBootProcess, DavitProcess } from "../tools/davit-process.ts";

/** The davits that clients ask, at the moment of each request. One that is down stays in the list. */
export interface Asked {
  readonly boot: () => readonly Pick<DavitBootProcess, "bootUrl">[];
  readonly store: () => readonly Pick<DavitProcess, "storeUrl">[];
}

export interface Outcome {
  readonly boots: number;
  /** Answers 200 that are not what the machine's objects say. */
  readonly wrong: number;
  /** Boots that more than one request was needed for. */
  readonly repeated: number;
  readonly longestWaitMs: number;
  readonly writes: number;
  /** How often a key was older than its last acknowledged write. Checked at the next write, and at the end. */
  readonly lost: number;
  readonly refused: number;
  /** The longest time in which a davit took no write. */
  readonly longestGapMs: number;
  /** What was answered otherwise, and how often. */
  readonly others: ReadonlyMap<string, number>;
}

const bootingCount = 180;
const installCount = 20;
const machinesAtOnce = 10;
const writersPerDavit = 2;
// More than the seven seconds after which davit gives up a write.
const limitMs = 15_000;
const filler = "x".repeat(4_000);
const pauseMs = 10;
const repeatMs = 200;

const apiVersion = "davit.dev/v1alpha1";

/** Every machine has a Group; one without would be installed. */
export const faultObjects = [
  { apiVersion, kind: "Profile", metadata: { name: "work" }, spec: { boot: { kernel: "/assets/work" } } },
  {
    ...{ apiVersion, kind: "Profile", metadata: { name: "wipe" } },
    spec: { effect: "Install", boot: { kernel: "/assets/wipe" } },
  },
  {
    ...{ apiVersion, kind: "Group", metadata: { name: "others" } },
    spec: { profileRef: { name: "wipe" }, matchAll: true },
  },
  ...Array.from({ length: bootingCount + installCount }, (_, number) => ({
    ...{ apiVersion, kind: "Group", metadata: { name: `node-${number}` } },
    spec: {
      profileRef: { name: number < bootingCount ? "work" : "wipe" },
      selector: { matchLabels: { mac: macOf(number) } },
    },
  })),
];

/** Writes them into a new directory. @returns its path. */
export function writeFaultObjects(folder: string): string {
  const manifests = join(folder, "manifests");
  mkdirSync(manifests);
  writeFileSync(join(manifests, "objects.yaml"), faultObjects.map((object) => JSON.stringify(object)).join("\n---\n"));
  return manifests;
}

export class FaultClients {
  readonly #asked: Asked;
  readonly #over = new AbortController();
  readonly #running: readonly Promise<void>[];
  readonly #others = new Map<string, number>();
  /** The number that each key was last acknowledged to have, by its path. */
  readonly #acknowledged = new Map<string, number>();
  /** Of each davit, by its number. */
  readonly #gapsMs = new Map<number, number>();
  readonly #lost = new Set<number>();
  #boots = 0;
  #wrong = 0;
  #repeated = 0;
  #longestWaitMs = 0;
  #writes = 0;
  #refused = 0;
  #overwrittenLosses = 0;

  constructor(asked: Asked) {
    this.#asked = asked;
    this.#running = [
      ...Array.from({ length: machinesAtOnce }, (_, at) => this.#bootAll(at)),
      ...asked.store().flatMap((_, davit) => {
        return Array.from({ length: writersPerDavit }, (__, writer) => this.#writeAll(davit, writer));
      }),
    ];
  }

  /** A davit cannot take writes: its gap does not count. */
  lose(davit: number): void {
    this.#lost.add(davit);
    this.#gapsMs.delete(davit);
  }

  /** Ends them, and reads what was written. */
  async stop(): Promise<Outcome> {
    this.#over.abort();
    await Promise.all(this.#running);
    return {
      boots: this.#boots,
      wrong: this.#wrong,
      repeated: this.#repeated,
      longestWaitMs: this.#longestWaitMs,
      writes: this.#writes,
      lost: await this.#countLost(),
      refused: this.#refused,
      longestGapMs: Math.max(0, ...this.#gapsMs.values()),
      others: this.#others,
    };
  }

  async #bootAll(first: number): Promise<void> {
    for (let number = first; !this.#over.signal.aborted; number += machinesAtOnce) {
      await this.#bootOne(number % (bootingCount + installCount));
      await pause(pauseMs);
    }
  }

  async #bootOne(number: number): Promise<void> {
    const startMs = performance.now();
    const [name, kernel] = number < bootingCount ? ["boot", "/assets/work"] : ["install", "/assets/wipe"];
    for (let tries = 0; !this.#over.signal.aborted; tries++) {
      const boot = this.#asked.boot();
      const { status, body } = await ask(`${boot[(number + tries) % boot.length]?.bootUrl}/ipxe?mac=${macOf(number)}`);
      if (status === "200") {
        this.#noteBoot({ isRight: body.includes(kernel), tries, waitMs: performance.now() - startMs });
        return;
      }
      this.#note(`${name}: ${status}`);
      // An install that waits for davit to be sure is no failure, and others go on meanwhile.
      if (name === "install" && status === "503") return;
      await pause(repeatMs);
    }
  }

  #noteBoot({ isRight, tries, waitMs }: { isRight: boolean; tries: number; waitMs: number }): void {
    this.#boots += 1;
    if (!isRight) this.#wrong += 1;
    if (tries > 0) this.#repeated += 1;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, waitMs);
  }

  async #writeAll(davit: number, writer: number): Promise<void> {
    const path = `/v2/keys/w${davit}/${writer}`;
    let takenAtMs = performance.now();
    const noteGap = () => {
      const gapMs = performance.now() - takenAtMs;
      if (!this.#lost.has(davit)) this.#gapsMs.set(davit, Math.max(gapMs, this.#gapsMs.get(davit) ?? 0));
    };
    for (let number = 1; !this.#over.signal.aborted; number++) {
      const body = new URLSearchParams({ value: `${number} ${filler}` });
      const url = `${this.#asked.store()[davit]?.storeUrl}${path}`;
      const { status, body: answer } = await ask(url, { method: "PUT", body });
      if (status === "200" || status === "201") {
        this.#writes += 1;
        // Otherwise this write would hide a loss of the last one.
        const before = numberIn(answer.slice(answer.indexOf('"prevNode"')));
        if (before < (this.#acknowledged.get(path) ?? 0)) this.#overwrittenLosses += 1;
        this.#acknowledged.set(path, number);
        noteGap();
        takenAtMs = performance.now();
      } else {
        this.#refused += 1;
        this.#note(`write: ${status}`);
      }
      await pause(pauseMs);
    }
    noteGap();
  }

  async #countLost(): Promise<number> {
    const [store] = this.#asked.store();
    let lost = this.#overwrittenLosses;
    for (const [path, acknowledged] of this.#acknowledged) {
      const { body } = await ask(`${store?.storeUrl}${path}`);
      if (numberIn(body) < acknowledged) lost += 1;
    }
    return lost;
  }

  #note(answer: string): void {
    this.#others.set(answer, (this.#others.get(answer) ?? 0) + 1);
  }
}

/** The last machine, which is installed. */
export const installedMac = macOf(bootingCount + installCount - 1);

function macOf(number: number): string {
  return `52:54:00:fa:00:${number.toString(16).padStart(2, "0")}`;
}

/** The status of an answer, or why there is none. */
async function ask(url: string, init: RequestInit = {}): Promise<{ readonly status: string; readonly body: string }> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(limitMs) });
    return { body: await response.text(), status: String(response.status) };
  } catch (error) {
    return { status: error instanceof Error ? error.name : "failed", body: "" };
  }
}

/** Milliseconds. */
export async function pause(durationMs: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** @returns the number in the first value of an answer; 0 without one. */
function numberIn(answer: string): number {
  return Number(/"value":"(\d+) /.exec(answer)?.[1] ?? 0);
}

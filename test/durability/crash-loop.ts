/**
 * Starts davit on one data directory again and again, lets 64 clients write, and kills it at some moment: after so many
 * answers, while a snapshot or a segment is being made, or while it starts. After each start everything that was ever
 * acknowledged must be as it was left.
 *
 * A seed repeats the choice of moments and writes; what the machine makes of them is never the same twice.
 */

import { ok, strictEqual } from "node:assert";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type Pick, seededPick } from "../helpers/fault-files.ts";
import { KeysClient } from "./keys-client.ts";
import { anyMoment, type Moment, Occasion, type WritingMoment } from "./moments.ts";
import { checkOldWait, Watcher } from "./watcher.ts";
import { type Acknowledged, Writer } from "./writer.ts";

export interface CrashLoopOptions {
  readonly kills: number;
  readonly seed: number;
  readonly manifests: string;
  readonly dataDir: string;
}

const writerCount = 64;
// Some writes are of several pages, most of less than one.
const maxValueChars = 8_000;
const smallFiles = join(import.meta.dirname, "davit-small-files.ts");

export class CrashLoop {
  readonly #options: CrashLoopOptions;
  readonly #pick: Pick;
  readonly #watcher = new Watcher();
  readonly #writers: readonly Writer[];
  readonly #kills = { write: 0, snapshot: 0, segment: 0, start: 0 };
  readonly #inFlight = { found: 0, absent: 0, "none in flight": 0 };
  readonly #oldWaits = { continued: 0, cleared: 0 };
  readonly #readyMs: number[] = [];
  /** Index at each start. */
  readonly #indexes: number[] = [];
  #clusterId: string | undefined;
  #term = 0;
  #raftIndex = 0;
  #occasion: Occasion | undefined;
  #snapshots = 0;
  #unfinished: readonly string[] = [];
  #unfinishedSnapshots = 0;
  #cutBytes = 0;

  constructor(options: CrashLoopOptions) {
    this.#options = options;
    this.#pick = seededPick(options.seed);
    this.#writers = Array.from({ length: writerCount }, (_, number) => {
      const pick = seededPick(options.seed * 1_000 + number);
      const onAcknowledged = (write: Acknowledged) => this.#note(write);
      return new Writer(`${number}`, { pick, maxValueChars, onAcknowledged });
    });
  }

  /** @throws {Error} for the first promise that was not kept. */
  async run(): Promise<void> {
    for (let kill = 0; kill < this.#options.kills; kill++) await this.#live(anyMoment(this.#pick));
    // Once more, to see what the last kill left, and again after a clean stop.
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const davit = await this.#start([]);
      await this.#check(davit);
      await davit.stop(signal);
    }
  }

  /** One line of everything that was seen. */
  get summary(): string {
    const { write, snapshot, segment, start } = this.#kills;
    const acknowledged = this.#writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
    const sorted = this.#readyMs.toSorted((a, b) => a - b);
    const medianMs = Math.round(sorted[sorted.length >> 1] ?? 0);
    return [
      `kill loop, seed ${this.#options.seed}: ${write + snapshot + segment + start} kills (${write} between writes,`,
      `${snapshot} at a snapshot, ${segment} at a new segment, ${start} at a start),`,
      `${this.#unfinishedSnapshots} left an unfinished snapshot, ${acknowledged} acknowledged writes checked,`,
      `in flight ${this.#inFlight.found} found and ${this.#inFlight.absent} absent, ${this.#cutBytes} torn bytes cut,`,
      `${this.#snapshots} snapshots taken, old waitIndexes ${this.#oldWaits.continued} continued and`,
      `${this.#oldWaits.cleared} cleared, ${sorted.length} restarts, median time to ready ${medianMs} ms`,
    ].join(" ");
  }

  async #live(moment: Moment): Promise<void> {
    const log: JsonObject[] = [];
    this.#kills[moment.kind] += 1;
    if (moment.kind === "start") {
      const crash = AbortSignal.timeout(Math.round(moment.share * (this.#readyMs.at(-1) ?? 1_000)));
      const davit = await this.#start(log, crash).catch((error: unknown) => {
        if (!crash.aborted) throw error;
        return undefined;
      });
      await davit?.stop("SIGKILL");
    } else {
      const davit = await this.#start(log);
      try {
        await this.#check(davit);
        await this.#writeUntil(davit, moment);
      } finally {
        await davit.stop("SIGKILL");
      }
    }
    this.#learn(log);
  }

  async #start(log: JsonObject[], crash?: AbortSignal): Promise<DavitProcess> {
    const { manifests, dataDir } = this.#options;
    const startMs = systemClock.monotonicMs();
    const how = { program: smallFiles, log, ...(crash !== undefined && { crash }) };
    const davit = await startDavit({ manifests, dataDir, ...how });
    this.#readyMs.push(systemClock.monotonicMs() - startMs);
    return davit;
  }

  /** What must hold after every start. */
  async #check({ storeUrl }: DavitProcess): Promise<void> {
    const client = new KeysClient(storeUrl);
    const { headers } = (await client.send({ method: "GET", path: "/" })) ?? {};
    ok(headers !== undefined, "The store answers");
    const clusterId = headers.get("x-etcd-cluster-id");
    this.#clusterId ??= clusterId;
    strictEqual(clusterId, this.#clusterId, "The cluster id stays");
    const [index, raftIndex, term] = ["x-etcd-index", "x-raft-index", "x-raft-term"].map((name) =>
      Number(headers.get(name)),
    );
    ok(index !== undefined && raftIndex !== undefined && term !== undefined);
    ok(index >= this.#watcher.lastIndex, `Index ${index}, but that of ${this.#watcher.lastIndex} was told`);
    ok(index >= (this.#indexes.at(-1) ?? 0) && raftIndex >= this.#raftIndex, "Indexes never fall");
    ok(term > this.#term, "Each start has a higher term");
    for (const writer of this.#writers) this.#inFlight[await writer.check(client)] += 1;
    await this.#askLongAgo(client);
    this.#indexes.push(index);
    this.#raftIndex = raftIndex;
    this.#term = term;
    client.close();
  }

  async #askLongAgo(client: KeysClient): Promise<void> {
    const waitIndex = this.#indexes.at(-2) ?? 0;
    if (waitIndex === 0) return;
    const fields = { wait: "true", recursive: "true", waitIndex: String(waitIndex) };
    const answer = await client.send({ method: "GET", path: "/", fields });
    ok(answer !== undefined);
    this.#oldWaits[checkOldWait(answer, waitIndex)] += 1;
  }

  #note(write: Acknowledged): void {
    this.#watcher.note(write);
    this.#occasion?.noteWrite();
  }

  async #writeUntil(davit: DavitProcess, moment: WritingMoment): Promise<void> {
    const occasion = new Occasion(moment, this.#options.dataDir);
    this.#occasion = occasion;
    let isKilled = false;
    const runs = [...this.#writers, this.#watcher].map(async (client) => {
      const connection = new KeysClient(davit.storeUrl);
      await client.run(connection);
      connection.close();
      ok(isKilled, "A connection broke before the kill");
    });
    try {
      await Promise.race([occasion.reached, Promise.all(runs)]);
      await systemClock.sleep(moment.delayMs);
    } finally {
      isKilled = true;
      await davit.stop("SIGKILL");
      occasion.close();
    }
    await Promise.all(runs);
    this.#watcher.compare();
  }

  /** Takes from a life that is over what the summary tells. */
  #learn(log: readonly JsonObject[]): void {
    const unfinished = readdirSync(this.#options.dataDir).filter((name) => name.endsWith(".snapshot.tmp"));
    // A start that is killed early leaves what it found.
    if (unfinished.some((name) => !this.#unfinished.includes(name))) this.#unfinishedSnapshots += 1;
    this.#unfinished = unfinished;
    for (const { msg, cutBytes } of log) {
      if (msg === "snapshot saved") this.#snapshots += 1;
      if (msg === "log opened") this.#cutBytes += Number(cutBytes);
    }
  }
}

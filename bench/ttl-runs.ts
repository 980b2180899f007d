/**
 * `make ttl-runs`: clients refresh keys with a ttl in time at three davits on three etcds. Meanwhile, one fault of
 * `members-fault-kinds.ts` after the other happens. It reports each key that ended earlier than its ttl after the last
 * answer, less 100 ms. `--runs N` makes N runs of a minute each. Further words select the faults whose names contain
 * one of them.
 */

import { cpus } from "node:os";
import { type DavitMembers, withDavits } from "./davit-members.ts";
import { pause } from "./fault-clients.ts";
import { type MembersFault, membersFaults } from "./members-fault-kinds.ts";
import { load, print } from "./run.ts";

const runMs = 60_000;
const keysPerDavit = 6;
const ttls = [1, 2, 4, 5];
// Between two reads of a key. A key that is lost is found by its next refresh at the latest, so more reads only cost.
const pollMs = 600;
const limitMs = 9_000;
// The store may end a key this much before its ttl after the answer.
const allowedMs = 100;

/** When the last two turns of this process's event loop began. What it handles now arrived after the first of them. */
const turnsMs: [number, number] = [0, 0];

/** What one client knows of its key. */
interface Held {
  readonly path: string;
  readonly ttlSeconds: number;
  /** The key is there until then, by `performance.now()`; 0 if it need not be there. */
  untilMs: number;
}

interface Answer {
  /** 0 without an answer. */
  readonly status: number;
  /** The answer did not arrive before. This process may have been busy, or without a processor, until `atMs`. */
  readonly notBeforeMs: number;
  readonly atMs: number;
}

class TtlClients {
  acknowledged = 0;
  unanswered = 0;
  /** Keys that ended because no refresh was answered in time. */
  ended = 0;
  readonly losses: string[] = [];
  readonly #members: DavitMembers;
  readonly #over = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(members: DavitMembers) {
    this.#members = members;
    for (const davit of members.all.keys()) {
      for (let number = 0; number < keysPerDavit; number++) {
        const ttlSeconds = ttls[number % ttls.length] ?? 1;
        const held: Held = { path: `/v2/keys/ttl/${davit}/${number}`, ttlSeconds, untilMs: 0 };
        this.#running.push(this.#hold(davit, held), this.#look(held));
      }
    }
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#running);
  }

  /** Refreshes a key three times in each ttl, at one davit, and at another one when that does not answer. */
  async #hold(davit: number, held: Held): Promise<void> {
    const { path, ttlSeconds } = held;
    const ttl = String(ttlSeconds);
    let at = davit;
    let isThere = false;
    while (!this.#over.signal.aborted) {
      const fields = isThere ? { ttl, refresh: "true", prevExist: "true" } : { ttl, value: "held" };
      const answer = await this.#ask(at, path, { method: "PUT", body: new URLSearchParams(fields) });
      if (answer.status === 200 || answer.status === 201) {
        this.acknowledged += 1;
        isThere = true;
        held.untilMs = answer.notBeforeMs + ttlSeconds * 1_000 - allowedMs;
        at = davit;
        await pause((ttlSeconds * 1_000) / 3);
        continue;
      }
      if (answer.status === 404) {
        const earlyMs = held.untilMs - answer.atMs;
        if (earlyMs > 0) this.#lost(held, earlyMs, `refresh at davit ${at}`);
        else this.ended += 1;
        isThere = false;
        continue;
      }
      this.unanswered += 1;
      at = (at + 1) % this.#members.all.length;
      await pause(50);
    }
  }

  /** Reads a key again and again, each time at the next davit. */
  async #look(held: Held): Promise<void> {
    for (let number = 0; !this.#over.signal.aborted; number++) {
      const at = number % this.#members.all.length;
      const { untilMs } = held;
      const answer = await this.#ask(at, `${held.path}?quorum=true`, {});
      if (answer.status === 404 && answer.atMs < untilMs)
        this.#lost(held, untilMs - answer.atMs, `read at davit ${at}`);
      await pause(pollMs);
    }
  }

  #lost(held: Held, earlyMs: number, who: string): void {
    held.untilMs = 0;
    this.losses.push(`${held.path} with ttl ${held.ttlSeconds} was missing ${Math.round(earlyMs)} ms early, ${who}`);
  }

  async #ask(davit: number, path: string, init: RequestInit): Promise<Answer> {
    try {
      const url = `${this.#members.all[davit]?.storeUrl}${path}`;
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(limitMs) });
      const [notBeforeMs] = turnsMs;
      const atMs = performance.now();
      await response.text();
      return { status: response.status, notBeforeMs, atMs };
    } catch {
      return { status: 0, notBeforeMs: performance.now(), atMs: performance.now() };
    }
  }
}

await main();

async function main(): Promise<void> {
  const options = process.argv.slice(2);
  const flag = options.indexOf("--runs");
  const runs = flag < 0 ? membersFaults.length : Number(options[flag + 1]);
  const words = options.filter((_, at) => flag < 0 || (at !== flag && at !== flag + 1));
  const isChosen = ({ name }: MembersFault) => words.length === 0 || words.some((word) => name.includes(word));
  // A restore discards acknowledged writes by design.
  const kinds = membersFaults.filter(({ name }) => !name.includes("restored")).filter(isChosen);
  setInterval(() => {
    turnsMs[0] = turnsMs[1];
    turnsMs[1] = performance.now();
  }, 1).unref();
  print(`${cpus().length} x ${cpus()[0]?.model}; Node ${process.version}; load average ${load()}`);
  let [losses, acknowledged] = [0, 0];
  for (let run = 0; run < runs; run++) {
    const kind = kinds[run % kinds.length];
    if (kind === undefined) throw new Error("No fault has one of these words in its name");
    const clients = await oneRun(kind);
    losses += clients.losses.length;
    acknowledged += clients.acknowledged;
    const counts = `${clients.acknowledged} acknowledged, ${clients.unanswered} not, ${clients.ended} ended in time`;
    print(`run ${run + 1}: ${kind.name}: ${counts}, ${clients.losses.length} lost early; load average ${load()}`);
    for (const loss of clients.losses) print(`  ${loss}`);
  }
  print(`${runs} runs, ${acknowledged} writes acknowledged, ${losses} keys lost early`);
  if (losses > 0) process.exitCode = 1;
}

/** A minute of one kind of fault, again and again. */
async function oneRun(kind: MembersFault): Promise<TtlClients> {
  const used: TtlClients[] = [];
  await withDavits(
    3,
    async (members) => {
      const clients = new TtlClients(members);
      used.push(clients);
      const endMs = performance.now() + runMs;
      do {
        await pause(3_000);
        await kind.run(members, () => {}).catch((error: unknown) => print(`  the fault itself failed: ${error}`));
      } while (performance.now() < endMs);
      await clients.stop();
    },
    kind.options,
  );
  const [clients] = used;
  if (clients === undefined) throw new Error("The davits did not start");
  return clients;
}

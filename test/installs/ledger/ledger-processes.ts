/** Ledgers in processes that a test kills, and the count of what they served. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { NamedGrant } from "../../../src/model/permits/permit.ts";
import type { DeskAnswer, DeskAsk } from "../../../src/model/permits/permit-desk.ts";
import { question } from "./desk.ts";

interface Line {
  readonly id?: string;
  readonly isLeading?: boolean;
  readonly number?: number;
  readonly answer?: DeskAnswer;
}

export class LedgerProcess {
  readonly #child: ChildProcess;
  readonly #answers = new Map<number, (answer: DeskAnswer) => void>();
  #number = 0;
  id = "";
  isLeading = false;
  readonly #ready = Promise.withResolvers<void>();

  /** @param place `directory` and a path, or `etcd`, a URL and the name of the member. */
  constructor(place: readonly string[]) {
    const program = join(import.meta.dirname, "ledger-process.ts");
    this.#child = spawn(process.execPath, [program, ...place], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdin?.on("error", () => {});
    this.#child.on("exit", () => this.#ready.reject(new Error("the ledger has ended")));
    this.#ready.promise.catch(() => undefined);
    if (this.#child.stdout === null) throw new Error("no output");
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#take(JSON.parse(line) as Line));
  }

  /** Resolves once the ledger answers. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Asks, and calls `answered` if the answer arrives. */
  ask(asked: DeskAsk, answered: (answer: DeskAnswer) => void): void {
    this.#number += 1;
    this.#answers.set(this.#number, answered);
    this.#child.stdin?.write(`${JSON.stringify({ number: this.#number, question: asked })}\n`);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  #take({ id, isLeading, number, answer }: Line): void {
    if (isLeading !== undefined) this.isLeading = isLeading;
    if (id !== undefined) {
      this.id = id;
      this.#ready.resolve();
    }
    if (number !== undefined && answer !== undefined) this.#answers.get(number)?.(answer);
  }
}

/** Counts installs by what machines were served. */
export class ServedInstalls {
  /** By machine and permit: the entry's claims whose script was served. */
  readonly #claims = new Map<string, Set<string>>();
  granted = 0;
  other = 0;

  /** Asks for a machine, and counts what it is served. */
  ask(ledger: LedgerProcess, machine: number, grant: NamedGrant): void {
    const digits = machine.toString(16).padStart(4, "0");
    const identities = [
      `uuid/4c4c4544-${digits}-4a10-8020-b4c04f202020`,
      `mac/52:54:00:00:${digits.slice(0, 2)}:${digits.slice(2)}`,
    ];
    ledger.ask(question({ identities, grants: [grant] }), (answer) => {
      if (answer.kind !== "granted") {
        this.other += 1;
        return;
      }
      this.granted += 1;
      const { entry } = answer;
      const permit = `machine ${machine}, generation ${entry.grant?.generation}`;
      const claims = this.#claims.get(permit) ?? new Set();
      this.#claims.set(permit, claims.add(`${entry.id}/${entry.claimedAtMs}`));
    });
  }

  /** The permits by which a machine was served more than one install. */
  get twice(): readonly string[] {
    return [...this.#claims].filter(([, claims]) => claims.size > 1).map(([permit]) => permit);
  }

  /** How many requests were answered, with a script or without one. */
  get answered(): number {
    return this.granted + this.other;
  }

  get installs(): number {
    return this.#claims.size;
  }
}

/** A grant that is open for an hour. */
export function openGrant(ledger: string, generation: number, nowMs: number): NamedGrant {
  return { key: "group/racks/web", grant: { generation, ledger, untilMs: nowMs + 3_600_000, scope: "All" } };
}

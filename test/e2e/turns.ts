/** A Group whose turns are numbered: at odd ones its machines are installed, at even ones they boot from memory. */

import { expect } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Ask } from "./boots.ts";
import type { Release } from "./release.ts";

const pool = "turns";
const group = "turns";

export class Turns {
  readonly #release: Release;
  /** The oldest turn that a machine may still get, and the newest one. */
  #settled = 0;
  #newest = 0;
  /** When the newest one began, and when a machine first got it; monotonic milliseconds. */
  #beganMs = 0;
  #firstMs = 0;

  private constructor(release: Release) {
    this.#release = release;
  }

  static async begin(release: Release): Promise<Turns> {
    const turns = new Turns(release);
    await turns.#apply([profile("turns-boot", "Boot"), profile("turns-install", "Install"), groupOf(0)]);
    return turns;
  }

  /** The machine's request for its script. An answer of a turn that is over, or of none, is wrong. */
  ask(machine: number): Ask {
    const mac = `52-54-00-e2-${(machine >> 8).toString(16).padStart(2, "0")}-${(machine & 255).toString(16).padStart(2, "0")}`;
    return {
      path: `/ipxe?mac=${mac}&pool=${pool}`,
      expect: () => {
        const least = this.#settled;
        return (text) => {
          const turn = turnOf(text);
          if (turn === this.#newest && this.#firstMs < this.#beganMs) this.#firstMs = systemClock.monotonicMs();
          return problemOf({ turn, least, most: this.#newest, installs: text.includes("turns-install") });
        };
      },
    };
  }

  /** Begins the next turn. @returns a wait until each of these pods answers by it, which ends the one before. */
  async next(pods: readonly string[]): Promise<() => Promise<Seen>> {
    this.#newest += 1;
    const turn = this.#newest;
    const fromMs = systemClock.monotonicMs();
    this.#beganMs = fromMs;
    await this.#apply([groupOf(turn)]);
    return async () => {
      for (const pod of pods) await expect.poll(() => this.#turnAt(pod)).toBe(turn);
      this.#settled = turn;
      const allMs = Math.round(systemClock.monotonicMs() - fromMs);
      return { turn, firstMs: Math.round(this.#firstMs - fromMs), allMs };
    };
  }

  /** Undefined when the pod does not answer with a script. */
  async #turnAt(pod: string): Promise<number | undefined> {
    const path = `/api/v1/namespaces/${this.#release.namespace}/pods/${pod}:8080/proxy${this.ask(0).path}`;
    // The API server waits half a minute for a pod that is gone: the next one may answer long before.
    const text = await this.#release.kubectl(["get", "--raw", path, "--request-timeout=5s"]).catch(() => "");
    return turnOf(text);
  }

  async #apply(items: readonly JsonObject[]): Promise<void> {
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    await this.#release.kubectl(["apply", "--filename=-"], { input });
  }
}

/** How long after its beginning a turn is what the first machine gets, and what all get. */
export interface Seen {
  readonly turn: number;
  readonly firstMs: number;
  readonly allMs: number;
}

function turnOf(text: string): number | undefined {
  const [, turn] = / turn=(\d+)( |$)/m.exec(text) ?? [];
  return turn === undefined ? undefined : Number(turn);
}

interface Answered {
  readonly turn: number | undefined;
  readonly least: number;
  readonly most: number;
  readonly installs: boolean;
}

function problemOf({ turn, least, most, installs }: Answered): string | undefined {
  if (turn === undefined || turn < least || turn > most) return `turn ${turn} instead of ${least} to ${most}`;
  return installs === (turn % 2 === 1) ? undefined : `turn ${turn} ${installs ? "installs" : "does not install"}`;
}

const apiVersion = "davit.dev/v1alpha1";

function profile(name: string, effect: string): JsonObject {
  const boot = { kernel: "/assets/quickstart/vmlinuz", args: [name, "turn={{turn}}"] };
  return { apiVersion, kind: "Profile", metadata: { name }, spec: { effect, boot } };
}

function groupOf(turn: number): JsonObject {
  const name = turn % 2 === 1 ? "turns-install" : "turns-boot";
  const spec = { profileRef: { name }, selector: { matchLabels: { pool } }, metadata: { turn } };
  return { apiVersion, kind: "Group", metadata: { name: group }, spec };
}

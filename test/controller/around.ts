/** What a controller under test has around it: a sink that remembers, and trials in this thread. */

import { createHash } from "node:crypto";
import { runTrials } from "../../src/controller/trials/trial.ts";
import type { TrialRunner } from "../../src/controller/trials/trial-thread.ts";
import type { MachineStatus, ObjectName, ObjectStatus, StatusSink } from "../../src/model/objects/source.ts";

export class Statuses implements StatusSink {
  readonly #byName = new Map<string, ObjectStatus>();
  writes = 0;

  write({ kind, name }: ObjectName, status: ObjectStatus): Promise<void> {
    this.writes++;
    this.#byName.set(`${kind}/${name}`, status);
    return Promise.resolve();
  }

  forget({ kind, name }: ObjectName): void {
    this.#byName.delete(`${kind}/${name}`);
  }

  groupCount(name: string): number | undefined {
    return this.#byName.get(name)?.groupCount;
  }

  /** Such as `Ready: "False ProfileNotFound"`. */
  conditions(name: string): Readonly<Record<string, string>> {
    const conditions = this.#byName.get(name)?.conditions ?? [];
    return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
  }

  /** Why it is not ready, or that it is; or what another condition says. */
  message(name: string, condition = "Ready"): string | undefined {
    return this.#byName.get(name)?.conditions.find(({ type }) => type === condition)?.message;
  }

  machine(name: string): MachineStatus | undefined {
    return this.#byName.get(name)?.machine;
  }

  ready(name: string): string | undefined {
    const ready = this.#byName.get(name)?.conditions.find(({ type }) => type === "Ready");
    return ready === undefined ? undefined : ready.reason;
  }
}

export const trials: TrialRunner = {
  run: (job) => Promise.resolve(runTrials(job, { davitUrl: "http://192.0.2.1:8080", sha256 })),
  stop: () => Promise.resolve(),
};

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

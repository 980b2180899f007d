/** A boot service with Groups that change in its store at a steady rate. */

import type { Store } from "../src/store/store.ts";
import { setCommand, startBootServer } from "./boot-server.ts";
import { answerQuestions } from "./child.ts";
import { benchDocuments, benchGroup, sharedClockMs } from "./machines.ts";

let store: Store | undefined;
let changes: Changes | undefined;

answerQuestions(async ({ kind, directory, groups, perSecond, options }) => {
  switch (kind) {
    case "start":
      return await start(String(directory), Number(groups), options);
    case "begin":
      if (store !== undefined) changes = new Changes(store, Number(groups), Number(perSecond));
      return {};
    default:
      return { changes: (await changes?.end()) ?? [] };
  }
});

async function start(directory: string, groups: number, options: unknown): Promise<object> {
  const started = await startBootServer({ directory, documents: benchDocuments(groups), options });
  store = started.store;
  return { port: started.port };
}

/** Version `n` of a Group has the name `node-n`; a change counts from when the store has answered it, on disk. */
class Changes {
  readonly #store: Store;
  readonly #groups: number;
  readonly #intervalMs: number;
  readonly #timer: NodeJS.Timeout;
  readonly #made: Promise<readonly [machine: number, version: number, atMs: number]>[] = [];
  #nextMs = sharedClockMs();

  constructor(store: Store, groups: number, perSecond: number) {
    this.#store = store;
    this.#groups = groups;
    this.#intervalMs = 1_000 / perSecond;
    this.#timer = setInterval(() => this.#makeDue(), 1);
  }

  async end() {
    clearInterval(this.#timer);
    return await Promise.all(this.#made);
  }

  #makeDue(): void {
    for (; this.#nextMs <= sharedClockMs(); this.#nextMs += this.#intervalMs) this.#made.push(this.#make());
  }

  async #make() {
    // From 1 on: as they were filled in, machines have their own number, which is taken for version 0.
    const version = this.#made.length + 1;
    const machine = version % this.#groups;
    await this.#store.submit(setCommand(benchGroup(machine, { hostname: `changed-${version}`, rack: "r" })));
    return [machine, version, sharedClockMs()] as const;
  }
}

/** The store and the boot service of one davit, with Groups that change at a steady rate by the store's own hand. */

import { randomBytes } from "node:crypto";
import { BootConfigs } from "../src/boot/boot-configs.ts";
import { BootIndex } from "../src/boot/selection/boot-index.ts";
import { accessLog } from "../src/http/boot/access-log.ts";
import { bootHandler } from "../src/http/boot/routes.ts";
import { answerError } from "../src/http/errors.ts";
import { createServer } from "../src/http/server.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/create-log.ts";
import { diskFiles } from "../src/lib/files.ts";
import { createMetrics } from "../src/lib/metrics.ts";
import { davitRoot } from "../src/model/documents.ts";
import type { SingleCommand } from "../src/store/command/command.ts";
import { storePath } from "../src/store/core/node.ts";
import { openStore } from "../src/store/open-store.ts";
import type { Store } from "../src/store/store.ts";
import { lockDirectory } from "../src/store/wal/lock.ts";
import { answerQuestions } from "./child.ts";
import { benchDocuments, benchGroup, sharedClockMs } from "./machines.ts";

let store: Store | undefined;
let changes: Changes | undefined;

answerQuestions(async ({ kind, directory, groups, perSecond }) => {
  switch (kind) {
    case "start":
      store = await fill(String(directory), Number(groups));
      return serve(store);
    case "begin":
      if (store !== undefined) changes = new Changes(store, Number(groups), Number(perSecond));
      return {};
    default:
      return { changes: (await changes?.end()) ?? [] };
  }
});

async function fill(directory: string, groups: number): Promise<Store> {
  const log = createLog({ level: "silent", format: "json" });
  const opened = await openStore({
    directory,
    files: diskFiles,
    lock: lockDirectory,
    clock: systemClock,
    random: randomBytes,
    log,
    onDamage: "refuse",
  });
  const commands = [...benchDocuments(groups)].map(set);
  await opened.submit({ kind: "batch", commands });
  return opened;
}

function set([path, value]: readonly [path: string, text: string]): SingleCommand {
  return { kind: "set", path: storePath(path), value };
}

async function serve(from: Store): Promise<object> {
  const log = createLog({ level: "info", format: "json" });
  const index = new BootIndex({ log });
  from.follow(davitRoot, index);
  index.open();
  const grub = { separator: "auto", commands: "auto" } as const;
  const configs = new BootConfigs({ index, authority: "192.0.2.1:8080", grub });
  const access = accessLog({ log, clock: systemClock, metrics: createMetrics("bench") });
  const handler = bootHandler({ configs, accessLog: access });
  const server = createServer({ log, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { port };
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
    await this.#store.submit(set(benchGroup(machine, { hostname: `changed-${version}`, rack: "r" })));
    return [machine, version, sharedClockMs()] as const;
  }
}

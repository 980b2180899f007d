/** The boot service as `davit serve` runs it, with the given number of groups; its log, metrics and history are on. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BootConfigs } from "../src/boot/boot-configs.ts";
import { BootIndex } from "../src/boot/selection/boot-index.ts";
import { History } from "../src/history/history.ts";
import { accessLog } from "../src/http/boot/access-log.ts";
import { bootHandler } from "../src/http/boot/routes.ts";
import { answerError } from "../src/http/errors.ts";
import { createServer } from "../src/http/server.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/create-log.ts";
import { createMetrics } from "../src/lib/metrics.ts";
import { labelsFromQuery } from "../src/model/labels.ts";
import { Signer } from "../src/sign/signer.ts";
import { answerQuestions, cpuMicroseconds } from "./child.ts";
import { benchDocuments, endpoints, queryOf, type Shape, shapes, targetCount } from "./machines.ts";

const log = createLog({ level: "info", format: "json" });
const index = new BootIndex({ log });
const configs = new BootConfigs({
  index,
  authority: "192.0.2.1:8080",
  grub: { separator: "auto", commands: "auto" },
});

answerQuestions(async ({ kind, groups, shape, signingKey }) => {
  switch (kind) {
    case "start":
      return start({ groups: Number(groups), shape: shapes.find((each) => each === shape), signingKey });
    case "memory":
      return memory(Number(groups));
    default:
      return { microseconds: cpuMicroseconds() };
  }
});

interface Start {
  readonly groups: number;
  readonly shape: Shape | undefined;
  readonly signingKey: unknown;
}

async function start({ groups, shape, signingKey }: Start): Promise<object> {
  const emptyBytes = heapBytes();
  const loadMs = load(groups, shape);
  const loadedBytes = heapBytes();
  index.open();
  const metrics = createMetrics("bench");
  const access = accessLog({ log, clock: systemClock, metrics, history: new History({ clock: systemClock, metrics }) });
  const signer = typeof signingKey === "string" ? await openSigner(signingKey) : undefined;
  const handler = bootHandler({ configs, signer, accessLog: access });
  const server = createServer({ log, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { port, loadMs, bytesPerGroup: (loadedBytes - emptyBytes) / groups };
}

/** Takes the documents in; what they were made of is garbage afterwards. */
function load(groups: number, shape: Shape | undefined): number {
  const documents = [...benchDocuments(groups, shape)];
  const startedAtMs = performance.now();
  index.replaced(documents);
  return performance.now() - startedAtMs;
}

/**
 * What groups take once every machine has asked for everything, beyond what they took when they were loaded. Some were
 * asked for before, when the speed was measured, and the process has all else that it needs since then.
 */
function memory(groups: number): object {
  const beforeBytes = heapBytes();
  for (let machine = 0; machine < groups; machine++) {
    const rawQuery = queryOf(machine);
    for (const name of endpoints) configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
  }
  return { bytesPerGroup: (heapBytes() - beforeBytes) / (groups - targetCount) };
}

/** Bytes that are in use, without garbage. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}

async function openSigner(keyFile: string): Promise<Signer> {
  const none = { passphraseFile: undefined, passphrase: undefined };
  return await Signer.open({ keyFile, ...none, clock: systemClock, log, metrics: createMetrics("bench") });
}

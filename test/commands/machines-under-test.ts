/** `davit machine` in this process, with an operations listener and a cluster that a test fills. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { answerError } from "../../src/http/errors.ts";
import { Guard } from "../../src/http/guard/guard.ts";
import { opsRow } from "../../src/http/guard/ops-guard.ts";
import { Previews } from "../../src/http/ops/preview.ts";
import { guardedRoutes } from "../../src/http/ops/routes.ts";
import { createOpsServer } from "../../src/http/ops/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { History } from "../../src/records/history/history.ts";
import { type Ran, runCommand } from "../helpers/command-under-test.ts";
import { silentLog } from "../helpers/test-store.ts";
import { bookOf, type FakeMachines, fakeMachines, officeOf } from "../http/fake-machines.ts";
import { seen } from "../records/history/seen-requests.ts";
import { ObjectServer } from "../sources/kubernetes/object-server.ts";

export const adminToken = "admin-token-0123456789";

export class MachinesBed {
  readonly fake: FakeMachines = fakeMachines();
  readonly cluster: ObjectServer;
  readonly folder: string;
  readonly url: string;
  readonly stop: () => Promise<void>;
  /** Ends the listener, while everything else stays. */
  readonly stopListening: () => Promise<void>;
  /** Records a request for a boot script in the history. */
  readonly record: (query: string, given?: Parameters<typeof seen>[1]) => void;

  private constructor(
    given: Pick<MachinesBed, "fake" | "cluster" | "folder" | "url" | "stop" | "stopListening" | "record">,
  ) {
    this.fake = given.fake;
    this.cluster = given.cluster;
    this.folder = given.folder;
    this.url = given.url;
    this.stop = given.stop;
    this.stopListening = given.stopListening;
    this.record = given.record;
  }

  static async start({ adminTokens = false } = {}): Promise<MachinesBed> {
    const folder = await mkdtemp(join(tmpdir(), "davit-machine-"));
    const cluster = await ObjectServer.start();
    await writeFile(join(folder, "admin-token"), `${adminToken}\n`, { mode: 0o600 });
    await writeFile(join(folder, "kubeconfig"), kubeconfigOf(cluster.url), { mode: 0o600 });
    const fake = fakeMachines();
    const { url, stop, record } = await listen(fake, adminTokens ? join(folder, "admin-token") : undefined);
    const stopAll = async () => {
      await stop();
      cluster.close();
      await rm(folder, { recursive: true });
    };
    return new MachinesBed({ fake, cluster, folder, url, stop: stopAll, stopListening: stop, record });
  }

  /** Runs any command that asks the listener. */
  async runAny(...words: readonly string[]): Promise<Ran> {
    return await runCommand([...words, "--ops-url", this.url]);
  }

  /** Runs `davit machine` against the listener, without a cluster. */
  async run(...words: readonly string[]): Promise<Ran> {
    return await runCommand(["machine", ...words, "--ops-url", this.url]);
  }

  /** The same with the cluster's kubeconfig, whose context is of the namespace `racks`. */
  async runInCluster(...words: readonly string[]): Promise<Ran> {
    return await this.run(...words, "--kubeconfig", join(this.folder, "kubeconfig"));
  }
}

/** Call it at the top of a test file: each test gets another bed. */
export function machinesBed() {
  const holder: { bed: MachinesBed | undefined } = { bed: undefined };
  beforeEach(async () => {
    holder.bed = await MachinesBed.start();
  });
  afterEach(async () => await holder.bed?.stop());
  return () => {
    if (holder.bed === undefined) throw new Error("Only a test has a bed");
    return holder.bed;
  };
}

async function listen(fake: FakeMachines, adminTokenFile: string | undefined) {
  const shared = { log: silentLog, clock: systemClock };
  const server = createOpsServer({ ...shared, answerError });
  const metrics = createMetrics("1");
  const history = new History({ clock: systemClock, metrics });
  const index = new BootIndex({ log: silentLog });
  const grub = { separator: "auto", commands: "auto" } as const;
  const authority = "192.0.2.1:8080";
  const row = opsRow({ boundTo: () => "127.0.0.1", tokenFile: undefined, adminTokenFile, metrics });
  const guard = await Guard.open(row, shared);
  await server.app.register(guardedRoutes, {
    guard,
    previews: new Previews({ index, configsOver: (view) => new BootConfigs({ index: view, authority, grub }) }),
    history: { history, bootFilesOf: () => undefined },
    machines: { book: bookOf(fake), office: officeOf(fake), log: silentLog },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--ops-address" });
  const stop = async () => {
    await server.close();
    guard.stop();
    await history.stop();
  };
  const record = (query: string, given: Parameters<typeof seen>[1] = {}) =>
    history.record({ ...seen("ipxe", given), query, startedMs: systemClock.monotonicMs() });
  return { url: `http://127.0.0.1:${port}`, stop, record };
}

function kubeconfigOf(server: string): string {
  return `apiVersion: v1
kind: Config
current-context: main
clusters: [{name: main, cluster: {server: "${server}", insecure-skip-tls-verify: true}}]
users: [{name: main, user: {token: person}}]
contexts: [{name: main, context: {cluster: main, user: main, namespace: racks}}]
`;
}

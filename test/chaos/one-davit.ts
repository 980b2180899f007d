/** A davit that follows a cluster, and another one that follows its store. */

import { join } from "node:path";
import type { Cluster } from "../../tools/cluster/cluster.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitBootProcess, startDavitBoot, storeOf } from "../../tools/davit-process.ts";
import { FaultProxy } from "../cluster/fault-proxy.ts";
import { Rack } from "../cluster/rack.ts";
import { ledgerId } from "../helpers/install-world.ts";
import { assetArgs, type Davits, storeDisturbances } from "./davits.ts";
import { Relay } from "./relay.ts";

export interface StartOptions {
  readonly cluster: Cluster;
  /** Where they keep their files. */
  readonly directory: string;
  /** Options of every `davit serve`, and of every davit. */
  readonly serveArgs: readonly string[];
  readonly commonArgs: readonly string[];
}

export async function startOneDavit(options: StartOptions): Promise<Davits> {
  const { cluster, directory, serveArgs } = options;
  const commonArgs = [...options.commonArgs, ...(await assetArgs(directory))];
  const api = await FaultProxy.start(cluster);
  const [storePort = 0] = await freePorts(1);
  const relay = await Relay.start(storePort);
  const rack = await Rack.start({
    kubeconfig: cluster.kubeconfigFor("proxied", cluster.adminToken, api.url),
    args: ["--store-address", `127.0.0.1:${storePort}`, ...serveArgs, ...commonArgs],
  });
  const startFollower = () =>
    startDavitBoot([
      ...storeOf({ storeUrl: `http://127.0.0.1:${relay.port}`, dataDir: rack.davit.dataDir }),
      ...["--copy-file", join(directory, "copy"), ...commonArgs],
    ]);
  let isServing = true;
  let follower: DavitBootProcess | undefined = await startFollower();
  return {
    ledger: await ledgerId(rack.davit),
    urls: { serve: () => (isServing ? rack.davit.bootUrl : undefined), follower: () => follower?.bootUrl },
    disturbances: {
      "API server out of reach": ({ during }) =>
        during(
          () => api.disconnect(),
          () => api.behave(),
        ),
      ...storeDisturbances(relay),
      "davit killed": async () => {
        isServing = false;
        await rack.restart();
        isServing = true;
      },
      "follower killed": async () => {
        const killed = follower;
        follower = undefined;
        await killed?.stop("SIGKILL");
        follower = await startFollower();
      },
    },
    stop: async () => {
      await follower?.stop();
      await rack.stop();
      await relay.stop();
      await api.stop();
    },
  };
}

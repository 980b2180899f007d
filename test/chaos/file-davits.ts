/** A davit with two boot threads that serves a directory, and another davit that follows its store. */

import { join } from "node:path";
import { freePorts } from "../../tools/cluster/ports.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { ledgerId } from "../helpers/install-world.ts";
import { assetArgs, type Davits, storeDisturbances } from "./davits.ts";
import { Relay } from "./relay.ts";

export interface FileDavitsOptions {
  readonly manifests: string;
  /** Where they keep their files. */
  readonly folder: string;
}

/** How long a davit may install by objects that nobody confirms any more. */
export const maxStaleMs = 4_000;

export async function startFileDavits({ manifests, folder }: FileDavitsOptions): Promise<Davits> {
  const dataDir = join(folder, "data");
  const [storePort = 0] = await freePorts(1);
  const relay = await Relay.start(storePort);
  const common = ["--install-max-source-age", `${maxStaleMs}ms`, ...(await assetArgs(folder))];
  const args = ["--store-address", `127.0.0.1:${storePort}`, "--tombstone-ttl", "5s", "--boot-threads", "2", ...common];
  const serve = () => startDavit({ manifests, dataDir, args });
  const storeUrl = `http://127.0.0.1:${relay.port}`;
  const copy = ["--copy-file", join(folder, "copy"), ...common];
  const follow = () => startDavitBoot([...storeOf({ storeUrl, dataDir }), ...copy]);
  const first = await serve();
  let davit: DavitProcess | undefined = first;
  let follower: DavitBootProcess | undefined = await follow();
  const restart = async (signal: "SIGTERM" | "SIGKILL") => {
    const ended = davit;
    davit = undefined;
    await ended?.stop(signal);
    davit = await serve();
  };
  return {
    urls: { serve: () => davit?.bootUrl, follower: () => follower?.bootUrl },
    ledger: await ledgerId(first),
    disturbances: {
      "davit killed": () => restart("SIGKILL"),
      "davit restarted": () => restart("SIGTERM"),
      "follower killed": async () => {
        const killed = follower;
        follower = undefined;
        await killed?.stop("SIGKILL");
        follower = await follow();
      },
      ...storeDisturbances(relay),
    },
    stop: async () => {
      await follower?.stop();
      await davit?.stop();
      await relay.stop();
    },
  };
}

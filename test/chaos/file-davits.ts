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
import { assetArgs, type Davits } from "./davits.ts";
import { Relay } from "./relay.ts";

export interface FileDavitsOptions {
  readonly manifests: string;
  /** Where they keep their files. */
  readonly folder: string;
  /** The file that is run; davit's own unless given. */
  readonly program?: string | undefined;
}

export async function startFileDavits({ manifests, folder, program }: FileDavitsOptions): Promise<Davits> {
  const dataDir = join(folder, "data");
  const [storePort = 0] = await freePorts(1);
  const relay = await Relay.start(storePort);
  const how = program === undefined ? {} : { program };
  const assets = await assetArgs(folder);
  const args = ["--store-address", `127.0.0.1:${storePort}`, "--tombstone-ttl", "5s", "--boot-threads", "2", ...assets];
  const serve = () => startDavit({ manifests, dataDir, args, ...how });
  const storeUrl = `http://127.0.0.1:${relay.port}`;
  const copy = ["--copy-file", join(folder, "copy"), ...assets];
  const follow = () => startDavitBoot([...storeOf({ storeUrl, dataDir }), ...copy], how);
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
      "store out of reach": ({ during }) =>
        during(
          () => relay.cut(),
          () => relay.heal(),
        ),
      "store silent": ({ during }) =>
        during(
          () => relay.freeze(),
          () => relay.heal(),
        ),
    },
    stop: async () => {
      await follower?.stop();
      await davit?.stop();
      await relay.stop();
    },
  };
}

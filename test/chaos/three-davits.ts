/** Three davits that follow a cluster in turn and share a store on three etcds, and another one that follows it. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startDavitBoot } from "../../tools/davit-process.ts";
import { type ClusterMember, ClusterMembers } from "../cluster/members.ts";
import { ledgerId } from "../helpers/install-world.ts";
import { assetArgs, type Davits, type Disturbing } from "./davits.ts";
import type { StartOptions } from "./one-davit.ts";

export async function startThreeDavits(options: StartOptions): Promise<Davits> {
  const { cluster, directory, serveArgs } = options;
  const commonArgs = [...options.commonArgs, ...(await assetArgs(directory))];
  const tokens = ["--store-token-file", join(directory, "tokens")];
  await writeFile(join(directory, "tokens"), "token-of-followers\n", { mode: 0o600 });
  const members = await ClusterMembers.start({ cluster, args: [...tokens, ...serveArgs, ...commonArgs] });
  const { all, etcd } = members;
  const stores = all.map(({ storeUrl }) => storeUrl).join(",");
  const copy = ["--copy-file", join(directory, "copy")];
  const follower = await startDavitBoot(["--store", stores, ...tokens, ...copy, ...commonArgs]);
  const one = <Value>(values: readonly Value[], { pick }: Disturbing) => values.slice(pick(values.length))[0];
  // The leader as often as the two others.
  const oneMember = (how: Disturbing): ClusterMember | undefined =>
    how.pick(2) === 0 ? (members.leader ?? all[0]) : one(all, how);
  return {
    ledger: await ledgerId({ opsUrl: all[0]?.opsUrl ?? "" }),
    urls: {
      ...Object.fromEntries(all.map((member) => [member.name, () => member.bootUrl])),
      follower: () => follower.bootUrl,
    },
    disturbances: {
      "member killed": (how) => {
        const member = oneMember(how);
        return how.during(
          () => member?.kill(),
          () => member?.start(),
        );
      },
      "member paused": (how) => {
        const member = oneMember(how);
        return how.during(
          () => member?.pause(),
          () => member?.resume(),
        );
      },
      "leader cut off from the API server": ({ during }) => {
        const { leader } = members;
        return during(
          () => leader?.api.disconnect(),
          () => leader?.api.behave(),
        );
      },
      "member cut off from etcd": (how) => {
        const ways = oneMember(how)?.etcd ?? [];
        return how.during(
          () => {
            for (const way of ways) way.pause();
          },
          () => {
            for (const way of ways) way.resume();
          },
        );
      },
      "etcd killed": (how) => {
        const lost = one(etcd.all, how);
        return how.during(
          () => lost?.kill(),
          () => lost?.start(),
        );
      },
      "etcd paused": (how) => {
        const lost = one(etcd.all, how);
        return how.during(
          () => lost?.pause(),
          () => lost?.resume(),
        );
      },
      "quorum lost": (how) => {
        const kept = one(etcd.all, how);
        const lost = etcd.all.filter((each) => each !== kept);
        return how.during(
          async () => void (await Promise.all(lost.map((each) => each.kill()))),
          async () => void (await Promise.all(lost.map((each) => each.start()))),
        );
      },
    },
    stop: async () => {
      await follower.stop();
      await members.stop();
    },
  };
}

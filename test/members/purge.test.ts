/** A purge of several members: in their log, which is in etcd, and in the history of each. */

import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SecretKeys } from "../../src/app/core/secret-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { secretPath } from "../../src/model/objects/documents.ts";
import { storePath } from "../../src/store/core/node.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { keyLine } from "../helpers/text-keys.ts";
import { leaderOf, membersOnOneEtcd, set, settled } from "./members.ts";

const soon = { timeout: 30_000, interval: 50 };
const text = "join-token-4711";
const path = secretPath("lab", "web", "0".repeat(64));

describe.skipIf(missing("etcd", "etcdctl"))("a purge of two stores on one etcd", () => {
  const members = membersOnOneEtcd();
  let folder: string;
  let keys: SecretKeys;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-purge-"));
    await writeFile(join(folder, "keys"), keyLine(1), { mode: 0o600 });
    keys = new SecretKeys({ path: join(folder, "keys"), clock: systemClock, log: silentLog });
    await keys.start();
  });

  afterEach(async () => {
    keys.stop();
    await rm(folder, { recursive: true });
  });

  /** Everything of the store in etcd, now or at an earlier revision; empty if etcd has dropped this revision. */
  function dump(...args: readonly string[]): string {
    const endpoints = members.endpoints.map(({ origin }) => origin).join();
    const env = { ...process.env, ETCDCTL_API: "3" };
    const command = ["--endpoints", endpoints, "get", members.prefix, "--prefix", ...args];
    return spawnSync("etcdctl", command, { env, encoding: "utf8" }).stdout;
  }

  const revision = (): number => JSON.parse(dump("--write-out=json", "--limit=1")).header.revision;

  /** True if etcd still shows the text, now or at a revision from `first`. */
  function isShown(first: number): boolean {
    const revisions = Array.from({ length: revision() - first + 1 }, (_, at) => first + at);
    return revisions.some((each) => dump(`--rev=${each}`).includes(text));
  }

  it("is made up for by the next leader if the leader that removed the text stops before it purges", async () => {
    const pair = [await members.open("m0"), await members.open("m1")];
    const leader = await leaderOf(pair);
    const other = pair.find((member) => member !== leader) ?? leader;
    const purge = vi.spyOn(other.store, "purge");
    keys.followAndPurge(other.store);
    await leader.store.submit(set(path, text));
    await leader.store.submit({ kind: "delete", path: storePath(path) });
    await settled(pair);
    const first = revision();
    expect([isShown(first), JSON.stringify(leader.store.events).includes(text)]).toEqual([true, true]);
    expect(other.store.events).toEqual([]);
    members.all = [other];
    await leader.stop();
    // The first one was that of a member which does not lead.
    await expect
      .poll(() => purge.mock.settledResults.map(({ type }) => type), soon)
      .toEqual(["fulfilled", "fulfilled"]);
    expect(isShown(first)).toBe(false);
    expect(dump()).toContain("snap/current");
  });
});

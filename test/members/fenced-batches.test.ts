/**
 * The controller writes in batches. That of a former leader may have planned one before another member took over: it
 * must never reach the log, because it would bring older documents back.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { leaderOf, openStoreMember, type StoreMember } from "./members.ts";

const path = storePath("/davit/profiles/default/disk");

function writeDocument(store: Store, value: string) {
  return store.submit({ kind: "batch", commands: [{ kind: "set", path, value }] });
}

describe.skipIf(missing("etcd"))("a batch", () => {
  let etcd: EtcdMembers;
  let members: StoreMember[] = [];

  beforeAll(async () => {
    etcd = await startEtcdV3();
    members = await Promise.all(
      ["a", "b"].map((name) => openStoreMember(name, { endpoints: etcd.urls, prefix: "/davit/" })),
    );
  });

  afterAll(async () => {
    await Promise.all(members.map((member) => member.stop()));
    await etcd.stop();
  });

  it("is taken from the leader, and from no other member, whatever that one believes", async () => {
    const leader = await leaderOf(members);
    const other = members.find((member) => member !== leader);
    if (other === undefined) throw new Error("no other member");
    await writeDocument(leader.store, "new");
    await expect(writeDocument(other.store, "old")).rejects.toMatchObject({ refusal: "logFailed" });
    // A batch that its own conditions protect is taken from any member, once.
    const once = { kind: "create", path: storePath("/davit/once"), value: "1" } as const;
    const byAny = (store: Store) => store.submit({ kind: "batch", commands: [once] }, { fenced: false });
    const outcomes = await Promise.allSettled([byAny(other.store), byAny(leader.store), byAny(other.store)]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
    // Clients' keys are taken from any member.
    await other.store.submit({ kind: "set", path: storePath("/key"), value: "1" });
    await leader.store.catchUp();
    expect(leader.store.getFile(path)?.value).toBe("new");
    expect(leader.store.getFile(storePath("/key"))?.value).toBe("1");
    await leader.stop();
    members = [other];
    await leaderOf(members);
    await writeDocument(other.store, "newer");
    expect(other.store.getFile(path)?.value).toBe("newer");
  });
});

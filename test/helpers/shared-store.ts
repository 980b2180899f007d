/** A store on a disk in memory that believes to be one of several members, for tests of what members change. */

import type { LogMembership, LogPort, MembershipListener, Snapshot } from "../../src/store/core/log-port.ts";
import { Store } from "../../src/store/store.ts";
import { FakeClock } from "./fake-clock.ts";
import { memoryFiles, openLog } from "./test-store.ts";

export interface SharedStore {
  readonly store: Store;
  /** What the store knows of its members. */
  readonly membership: FakeMembership;
  /** Replaces the state, as if this member had been left behind. */
  leaveBehind(snapshot: Snapshot): Promise<void>;
}

/** What a test says about the members. The first member is the store's own. */
export type FakeMembership = { -readonly [Field in keyof LogMembership]: LogMembership[Field] };

/** Opens the store of member "2", beside the leader "10" and member "a". */
export async function openSharedStore(): Promise<SharedStore> {
  const log: LogPort = await openLog(memoryFiles());
  const member = (id: string) => ({ id, name: `davit-${id}`, clientUrls: [`http://davit-${id}.example:2379`] });
  const membership: FakeMembership = {
    ...log.membership,
    leaderId: "10",
    members: [member("2"), member("10"), member("a")],
  };
  Object.defineProperty(log, "membership", { value: membership });
  Object.defineProperty(log, "identity", { get: () => ({ clusterId: "c", memberId: "2", term: 7, run: "f" }) });
  let listener: MembershipListener | undefined;
  const replay = log.onCommitted.bind(log);
  log.onCommitted = (committed, members) => {
    listener = members;
    return replay(committed, members);
  };
  const store = await Store.open({ log, clock: new FakeClock() });
  // It has a run, because it led at its start.
  membership.isLeader = false;
  return { store, membership, leaveBehind: async (snapshot) => await listener?.leftBehind(snapshot) };
}

/** The members of a store, in the form that clients get. */

import type { LogMember } from "../../store/core/log-port.ts";
import type { Store } from "../../store/store.ts";
import type { Member, MemberView } from "./members.ts";

const soleMemberName = "davit";

/** @param advertiseUrl where clients reach a store with only this member. A log with several members has their URLs. */
export function memberViewOf(
  { identity, membership }: Pick<Store, "identity" | "membership">,
  advertiseUrl: string,
): MemberView {
  const sole: Member = { id: identity.memberId, name: soleMemberName, peerURLs: [], clientURLs: [advertiseUrl] };
  if (membership.members.length === 0) return { self: sole, all: [sole], leader: sole };
  const all = membership.members.map(memberOf).toSorted((a, b) => (BigInt(`0x${a.id}`) < BigInt(`0x${b.id}`) ? -1 : 1));
  const withId = (id: string | undefined) => all.find((member) => member.id === id);
  return { self: withId(identity.memberId) ?? sole, all, leader: withId(membership.leaderId) };
}

function memberOf({ id, name, clientUrls }: LogMember): Member {
  return { id, name, peerURLs: [], clientURLs: clientUrls };
}

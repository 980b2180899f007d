/**
 * Answers `/v2/members`, from which clients learn where to reach the store. It lists the members, and refuses every
 * change of them. Before a refusal, it checks the form of the request as etcd does. Pure.
 */

import { isJsonObject } from "../../model/json.ts";
import type { LogMember } from "../../store/core/log-port.ts";
import type { Store } from "../../store/store.ts";
import { textJson } from "./json.ts";

/** In the order in which clients get the fields. */
export interface Member {
  readonly id: string;
  readonly name: string;
  /** For other members. The list is empty, because members send each other nothing. */
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
}

/** The members of the store as clients see them. */
export interface MemberView {
  /** The member that answers. */
  readonly self: Member;
  /** Every member that is known to run, ordered by id as a number. */
  readonly all: readonly Member[];
  /** Undefined while there is none, or while it is not known where clients reach it. */
  readonly leader: Member | undefined;
}

export const membersMethods = ["GET", "POST", "DELETE", "PUT"] as const;

export interface MembersRequest {
  readonly method: (typeof membersMethods)[number];
  /** The path after `/v2/members/`. */
  readonly rest: string;
  readonly contentType: string | undefined;
  readonly body: string;
}

/** `notAllowed`: the method needs an id in the path. */
export type MembersAnswer =
  | { readonly kind: "json"; readonly status: number; readonly body: string }
  | { readonly kind: "notAllowed" };

/** Answers as etcd does (etcd v3.4.23 v2http/client.go, membersHandler). */
export function answerMembers(view: MemberView, request: MembersRequest): MembersAnswer {
  switch (request.method) {
    case "GET":
      return show(view, request.rest);
    case "POST":
      return problemOf(request) ?? cannot;
    case "PUT":
      return problemOfId(request.rest) ?? problemOf(request) ?? problemOfUnknown(view, request.rest) ?? cannot;
    case "DELETE":
      return problemOfId(request.rest) ?? problemOfUnknown(view, request.rest) ?? cannot;
  }
}

// Answers every well-formed change. A member of a store in etcd joins when it starts and leaves when it stops. A store
// in files has only one. etcd answers 204 to new peer URLs: here a 204 would claim a change that was not made.
const cannot = problem(500, "Internal Server Error");

function show({ all, leader }: MemberView, rest: string): MembersAnswer {
  if (rest === "") return { kind: "json", status: 200, body: `${JSON.stringify({ members: all })}\n` };
  if (rest !== "leader") return problem(404, "Not found");
  if (leader === undefined) return problem(503, "During election");
  return { kind: "json", status: 200, body: `${JSON.stringify(leader)}\n` };
}

function problemOfId(rest: string): MembersAnswer | undefined {
  if (rest === "") return { kind: "notAllowed" };
  return memberId(rest) === undefined ? problem(404, `No such member: ${rest}`) : undefined;
}

function problemOfUnknown({ all }: MemberView, rest: string): MembersAnswer | undefined {
  const asked = memberId(rest);
  return all.some(({ id }) => id === asked) ? undefined : problem(404, `No such member: ${asked}`);
}

/** Returns an id in the form that the store writes; undefined for any other text. */
function memberId(text: string): string | undefined {
  if (!/^[0-9a-f]+$/i.test(text)) return undefined;
  const id = BigInt(`0x${text}`);
  return id < 2n ** 64n ? id.toString(16) : undefined;
}

function problemOf({ contentType = "", body }: MembersRequest): MembersAnswer | undefined {
  const semicolon = contentType.indexOf(";");
  const type = semicolon < 0 ? contentType : contentType.slice(0, semicolon).toLowerCase().trim();
  if (type !== "application/json") return problem(415, `Bad Content-Type ${type}, accept application/json`);
  const urls = peerUrlsIn(body);
  if (urls === undefined) return problem(400, 'body is not JSON of the form {"peerURLs":["http://host:port"]}');
  if (urls.length === 0) return problem(400, "no valid URLs given");
  const wrong = urls.map((url) => problemOfUrl(url.trim())).find((found) => found !== undefined);
  return wrong === undefined ? undefined : problem(400, wrong);
}

/**
 * Returns the peer URLs of a body: an empty list if they are missing or null, undefined if the body has another shape.
 */
function peerUrlsIn(body: string): readonly string[] | undefined {
  const parsed = parseJson(body);
  if (parsed === null) return [];
  if (!isJsonObject(parsed)) return undefined;
  const urls: unknown = parsed.peerURLs ?? [];
  if (!Array.isArray(urls)) return undefined;
  const texts = urls.filter((url) => typeof url === "string");
  return texts.length === urls.length ? texts : undefined;
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    // The parser's error is not used, because its message quotes the body.
    return undefined;
  }
}

const knownSchemes = /^(?:http|https|unix|unixs)$/i;

function problemOfUrl(url: string): string | undefined {
  const [, scheme = "", authority = "", path = ""] = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)/i.exec(url) ?? [];
  if (!knownSchemes.test(scheme)) return `URL scheme must be http, https, unix, or unixs: ${url}`;
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  if (!/^(?:\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(host))
    return `URL address does not have the form "host:port": ${url}`;
  return path === "" ? undefined : `URL must not contain a path: ${url}`;
}

function problem(status: number, message: string): MembersAnswer {
  return { kind: "json", status, body: `{"message":${textJson(message)}}` };
}

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

import { describe, expect, it } from "vitest";
import { answerMembers, type Member, type MembersRequest, type MemberView } from "../../src/http/keys/members.ts";

const member: Member = { id: "abc", name: "davit", peerURLs: [], clientURLs: ["http://127.0.0.1:2379"] };
const json = JSON.stringify(member);
const urls = '{"peerURLs":["http://127.0.0.1:2380"]}';

const other: Member = { id: "10ff", name: "other", peerURLs: [], clientURLs: ["http://127.0.0.1:2389"] };
const alone: MemberView = { self: member, all: [member], leader: member };
const answer = (request: Partial<MembersRequest>, view = alone) =>
  answerMembers(view, { method: "GET", rest: "", contentType: "application/json", body: "", ...request });
const problem = (status: number, message: string) => ({ kind: "json", status, body: JSON.stringify({ message }) });

it("the only member is listed, and leads", () => {
  expect(answer({})).toEqual({ kind: "json", status: 200, body: `{"members":[${json}]}\n` });
  expect(answer({ rest: "leader" })).toEqual({ kind: "json", status: 200, body: `${json}\n` });
  expect(answer({ rest: "abc" })).toEqual(problem(404, "Not found"));
});

it("of several members each is listed, and the leader is shown", () => {
  const view = { self: member, all: [member, other], leader: other };
  expect(answer({}, view)).toMatchObject({ body: `${JSON.stringify({ members: [member, other] })}\n` });
  expect(answer({ rest: "leader" }, view)).toMatchObject({ status: 200, body: `${JSON.stringify(other)}\n` });
});

it("there is no leader to show during an election", () => {
  const view = { self: member, all: [member, other], leader: undefined };
  expect(answer({ rest: "leader" }, view)).toEqual(problem(503, "During election"));
});

it("no member can be changed, whichever it is", () => {
  const view = { self: member, all: [member, other], leader: other };
  expect(answer({ method: "DELETE", rest: "10ff" }, view)).toEqual(problem(500, "Internal Server Error"));
  expect(answer({ method: "PUT", rest: "10FF", body: urls }, view)).toEqual(problem(500, "Internal Server Error"));
  expect(answer({ method: "DELETE", rest: "11" }, view)).toEqual(problem(404, "No such member: 11"));
});

describe("a change of members", () => {
  it.each<Partial<MembersRequest>>([
    { method: "POST", body: urls },
    { method: "PUT", rest: "ABC", body: urls },
    { method: "DELETE", rest: "0abc" },
  ])("that is well formed cannot be done: $method $rest", (request) => {
    expect(answer(request)).toEqual(problem(500, "Internal Server Error"));
  });

  it.each<Partial<MembersRequest>>([{ method: "PUT", body: urls }, { method: "DELETE" }])(
    "needs an id: $method",
    (request) => {
      expect(answer(request)).toEqual({ kind: "notAllowed" });
    },
  );

  it.each(["abd", "x", "abc/", "10000000000000000", ""])("has no member %j", (rest) => {
    const expected = rest === "" ? { kind: "notAllowed" } : problem(404, `No such member: ${rest}`);
    expect(answer({ method: "DELETE", rest })).toEqual(expected);
    expect(answer({ method: "PUT", rest, body: urls })).toEqual(expected);
  });

  it.each(["secret{", "[]", "1", '{"peerURLs":1}', '{"peerURLs":["http://a:1",2]}', ""])(
    "with the body %j is refused without a quote of it",
    (body) => {
      const text = 'body is not JSON of the form {"peerURLs":["http://host:port"]}';
      expect(answer({ method: "POST", body })).toEqual(problem(400, text));
    },
  );

  it.each([
    { url: "127.0.0.1:2380", message: "URL scheme must be http, https, unix, or unixs: 127.0.0.1:2380" },
    { url: "http://a", message: 'URL address does not have the form "host:port": http://a' },
    { url: "http://a:1/", message: "URL must not contain a path: http://a:1/" },
  ])("with $url is refused", ({ url, message }) => {
    expect(answer({ method: "POST", body: JSON.stringify({ peerURLs: [url] }) })).toEqual(problem(400, message));
  });
});

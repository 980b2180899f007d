import { describe, expect, it } from "vitest";
import { answerMembers, type Member, type MembersRequest } from "../../src/http/keys/members.ts";

const member: Member = { id: "abc", name: "davit", peerURLs: [], clientURLs: ["http://127.0.0.1:2379"] };
const json = JSON.stringify(member);
const urls = '{"peerURLs":["http://127.0.0.1:2380"]}';

const answer = (request: Partial<MembersRequest>) =>
  answerMembers(member, { method: "GET", rest: "", contentType: "application/json", body: "", ...request });
const problem = (status: number, message: string) => ({ kind: "json", status, body: JSON.stringify({ message }) });

it("the only member is listed, and leads", () => {
  expect(answer({})).toEqual({ kind: "json", status: 200, body: `{"members":[${json}]}\n` });
  expect(answer({ rest: "leader" })).toEqual({ kind: "json", status: 200, body: `${json}\n` });
  expect(answer({ rest: "abc" })).toEqual(problem(404, "Not found"));
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

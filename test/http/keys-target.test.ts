import { describe, expect, it } from "vitest";
import { keyOf, parseTarget } from "../../src/http/keys/routes.ts";

describe("`parseTarget`", () => {
  it.each([
    { raw: "/v2/keys/a?b=c?d", path: "/v2/keys/a", query: "b=c?d" },
    { raw: "/v2/keys/%FFa", path: "/v2/keys/\ufffda", query: "" },
    { raw: "/v2/keys/a+b%20c%2Fd", path: "/v2/keys/a+b c/d", query: "" },
    { raw: "http://host:1/v2/keys/a", path: "/v2/keys/a", query: "" },
    { raw: "/v2/keys/a?x=%zz", path: "/v2/keys/a", query: "x=%zz" },
  ])("reads $raw", ({ raw, path, query }) => {
    expect(parseTarget(raw)).toEqual({ kind: "path", path, query });
  });

  it.each([
    { raw: "/a//b", location: "/a/b" },
    { raw: "/a/%2e%2E/b?c=d", location: "/b?c=d" },
    { raw: "/v2/keys/..", location: "/v2" },
    { raw: "/../../a/./", location: "/a/" },
    { raw: "/a%2F%2Fb", location: "/a/b" },
    { raw: "http://host", location: "/" },
  ])("redirects $raw to $location", ({ raw, location }) => {
    expect(parseTarget(raw)).toEqual({ kind: "redirect", location });
  });

  it.each(["/%zz", "/a%", "/a%4", "/\u00e9", "/a?\u00e9", "/a b"])("refuses %j", (raw) => {
    expect(parseTarget(raw)).toEqual({ kind: "malformed" });
  });
});

it.each([
  { path: "/v2/keys", key: "/" },
  { path: "/v2/keys/", key: "/" },
  { path: "/v2/keys/a/b/", key: "/a/b" },
  { path: "/v2/keysa", key: undefined },
  { path: "/v2", key: undefined },
])("the key of $path is $key", ({ path, key }) => {
  expect(keyOf(path)).toBe(key);
});

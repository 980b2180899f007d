import { describe, expect, it } from "vitest";
import { type KeysMethod, parseKeysRequest } from "../../src/http/keys/request.ts";
import { storePath } from "../../src/store/core/node.ts";

const path = storePath("/k");
const parse = (method: KeysMethod, query: string, form?: string) =>
  parseKeysRequest({ method, path, query, ...(form !== undefined && { form }) });

describe("the operation of a PUT", () => {
  it.each([
    { query: "value=v", command: { kind: "set", path, value: "v", dir: false } },
    { query: "dir=true", command: { kind: "set", path, value: "", dir: true } },
    { query: "prevIndex=0", command: { kind: "set", path, value: "", dir: false } },
    { query: "prevExist=true", command: { kind: "update", path, value: "" } },
    { query: "prevExist=true&prevIndex=0", command: { kind: "update", path, value: "" } },
    { query: "prevExist=false&prevValue=x", command: { kind: "create", path, value: "", dir: false } },
    {
      query: "prevValue=x&value=v",
      command: { kind: "compareAndSwap", path, value: "v", expected: { value: "x" } },
    },
    {
      query: "prevValue=x&prevIndex=0&prevExist=true",
      command: { kind: "compareAndSwap", path, value: "", expected: { value: "x" } },
    },
    {
      query: "prevIndex=18446744073709551615",
      command: { kind: "compareAndSwap", path, value: "", expected: { index: 18446744073709551615n } },
    },
  ])("with $query is $command.kind", ({ query, command }) => {
    expect(parse("PUT", query)).toEqual({ kind: "write", command, hidesNode: false });
  });
});

it("a DELETE compares when a value or an index above 0 is given", () => {
  expect(parse("DELETE", "dir=1&prevIndex=0")).toMatchObject({
    command: { kind: "delete", path, dir: true, recursive: false },
  });
  expect(parse("DELETE", "prevIndex=3&recursive=true")).toMatchObject({
    command: { kind: "compareAndDelete", path, expected: { index: 3n } },
  });
});

it("a GET watches with wait=true, unless it is a quorum read", () => {
  const read = { kind: "read", path, recursive: true, sorted: false, quorum: false };
  expect(parse("GET", "recursive=true&waitIndex=7")).toEqual(read);
  expect(parse("GET", "recursive=true&wait=true&quorum=true")).toEqual({ ...read, quorum: true });
  expect(parse("GET", "wait=1&waitIndex=007&stream=T")).toEqual({
    kind: "watch",
    path,
    recursive: false,
    stream: true,
    waitIndex: 7,
  });
});

it("a HEAD is no quorum read", () => {
  expect(parse("HEAD", "quorum=true")).toMatchObject({ kind: "read", quorum: false });
});

it("the form comes before the query, and an empty field of it counts", () => {
  expect(parse("PUT", "value=query&prevExist=true", "value=")).toMatchObject({
    command: { kind: "update", value: "" },
  });
});

it.each(["1", "t", "T", "TRUE", "true", "True"])("dir=%s is true", (text) => {
  expect(parse("PUT", `dir=${text}`)).toMatchObject({ command: { dir: true } });
});

it.each(["0", "f", "F", "FALSE", "false", "False"])("dir=%s is false", (text) => {
  expect(parse("PUT", `dir=${text}`)).toMatchObject({ command: { dir: false } });
});

it.each(["yes", "tRUE", "", "+true", "01"])("dir=%s is refused", (text) => {
  expect(() => parse("PUT", `dir=${text}`)).toThrowError(expect.objectContaining({ refusal: "invalidField" }));
});

it.each(["", "-1", "+1", "1.0", "1e3", "0x1", "1_0", "18446744073709551616", "99999999999999999999999"])(
  "prevIndex=%s is refused",
  (text) => {
    expect(() => parse("PUT", `prevIndex=${encodeURIComponent(text)}`)).toThrowError(
      expect.objectContaining({ refusal: "indexNotNumber" }),
    );
  },
);

describe("a ttl", () => {
  it.each([
    { query: "ttl=5", command: { kind: "set", path, value: "", ttlSeconds: 5, dir: false } },
    { query: "ttl=0", command: { kind: "set", path, value: "", ttlSeconds: 0, dir: false } },
    { query: "ttl=", command: { kind: "set", path, value: "", dir: false } },
    { query: "ttl=005&prevExist=true", command: { kind: "update", path, value: "", ttlSeconds: 5 } },
    {
      query: "ttl=18446744073709551615&prevValue=x",
      command: { kind: "compareAndSwap", path, value: "", ttlSeconds: 2 ** 64, expected: { value: "x" } },
    },
    {
      query: "ttl=5&refresh=true",
      command: { kind: "set", path, value: "", ttlSeconds: 5, dir: false, refresh: true },
    },
    {
      query: "ttl=5&refresh=1&prevExist=true",
      command: { kind: "update", path, value: "", ttlSeconds: 5, refresh: true },
    },
    {
      query: "ttl=5&refresh=1&prevExist=false",
      command: { kind: "create", path, value: "", ttlSeconds: 5, dir: false },
    },
  ])("of $query", ({ query, command }) => {
    expect(parse("PUT", query)).toEqual({ kind: "write", command, hidesNode: false });
  });

  it("of a POST is that of the child, which has nothing to refresh", () => {
    expect(parse("POST", "ttl=5&refresh=true")).toMatchObject({
      command: { kind: "createInOrder", path, value: "", ttlSeconds: 5, dir: false },
    });
  });

  it("that is empty in the form counts before the query's", () => {
    expect(parse("PUT", "ttl=5&prevExist=true", "ttl=")).toEqual({
      kind: "write",
      command: { kind: "update", path, value: "" },
      hidesNode: false,
    });
  });

  it.each(["-1", "x", "1.5", "1e3", " 5", "18446744073709551616"])("of %j is refused", (ttl) => {
    expect(() => parse("PUT", `ttl=${encodeURIComponent(ttl)}`)).toThrowError(
      expect.objectContaining({ refusal: "ttlNotNumber", causeText: 'invalid value for "ttl"' }),
    );
  });
});

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Command } from "../../src/store/command/command.ts";
import { decodeRecord, encodeRecord } from "../../src/store/command/command-codec.ts";
import { storePath } from "../../src/store/core/node.ts";
import { anyCommand } from "../helpers/any-command.ts";

it("every command comes back as it was", () => {
  fc.assert(
    fc.property(fc.nat(), anyCommand, (atMs, command) => {
      expect(decodeRecord(encodeRecord({ atMs, command }))).toEqual({ atMs, command });
    }),
  );
});

it("no command holds the byte FF, on which the log relies", () => {
  fc.assert(fc.property(anyCommand, (command) => !encodeRecord({ atMs: 0, command }).includes(0xff)));
});

it.each<{ command: Command; json: string }>([
  {
    command: { kind: "compareAndSwap", path: storePath("/a"), value: "b", expected: { index: 7n }, refresh: true },
    json: '{"kind":"compareAndSwap","path":"/a","value":"b","expected":{"index":"7"},"refresh":true}',
  },
  {
    command: { kind: "set", path: storePath("/a"), value: "b", ttlSeconds: 5 },
    json: '{"kind":"set","path":"/a","value":"b","ttlSeconds":5}',
  },
  {
    command: { kind: "batch", commands: [{ kind: "expire", path: storePath("/a"), expiresAtMs: 9 }] },
    json: '{"kind":"batch","commands":[{"kind":"expire","path":"/a","expiresAtMs":9}]}',
  },
])("the format of version 1 is what it was: $json", ({ command, json }) => {
  expect(new TextDecoder().decode(encodeRecord({ atMs: 5, command }))).toBe(`{"v":1,"atMs":5,"command":${json}}`);
});

it("only an `extend` has version 2, which an older davit refuses", () => {
  const command: Command = { kind: "extend", path: storePath("/a"), modifiedIndex: 3, leftMs: 5_000 };
  const json = '{"kind":"extend","path":"/a","modifiedIndex":3,"leftMs":5000}';
  expect(new TextDecoder().decode(encodeRecord({ atMs: 5, command }))).toBe(`{"v":2,"atMs":5,"command":${json}}`);
});

it.each([
  { name: "a later version", text: '{"v":3}', reason: "newerFormat" },
  { name: "no JSON", text: "secret", reason: "damaged" },
  { name: "another kind", text: '{"v":1,"atMs":1,"command":{"kind":"x","path":"/a"}}', reason: "damaged" },
  { name: "a bad path", text: '{"v":1,"atMs":1,"command":{"kind":"delete","path":"/a/../b"}}', reason: "damaged" },
  { name: "no value", text: '{"v":1,"atMs":1,"command":{"kind":"set","path":"/a"}}', reason: "damaged" },
  {
    name: "an expire without a time",
    text: '{"v":1,"atMs":1,"command":{"kind":"expire","path":"/a"}}',
    reason: "damaged",
  },
  { name: "no commands", text: '{"v":1,"atMs":1,"command":{"kind":"batch"}}', reason: "damaged" },
])("$name is refused without a quote of it", ({ text, reason }) => {
  const decode = () => decodeRecord(new TextEncoder().encode(text));
  expect(decode).toThrowError(expect.objectContaining({ reason }));
  expect(decode).not.toThrowError(/secret/);
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorBody, eventBody, readBody, readPieces } from "../../src/http/keys/json.ts";
import { type NodeRecord, storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import type { ListingStep } from "../../src/store/tree/listing.ts";

const file = (path: string, value: string): NodeRecord => ({
  path: storePath(path),
  isDirectory: false,
  value,
  createdIndex: 1,
  modifiedIndex: 2,
});

describe("texts", () => {
  it.each([
    { value: "<>&", json: "\\u003c\\u003e\\u0026" },
    { value: "\u2028\u2029", json: "\\u2028\\u2029" },
    { value: "\n\r\t\b\f\u0001", json: "\\n\\r\\t\\u0008\\u000c\\u0001" },
    { value: 'a"b\\c/', json: 'a\\"b\\\\c/' },
    { value: "\\b\\f<", json: "\\\\b\\\\f\\u003c" },
    { value: "\u007f\u0080é😀", json: "\u007f\u0080é😀" },
  ])("$json", ({ value, json }) => {
    const body = `{"action":"get","node":{"key":"/a","value":"${json}","modifiedIndex":2,"createdIndex":1}}\n`;
    expect(readBody(file("/a", value))).toBe(body);
  });

  it("come back from any JSON parser as they were", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(JSON.parse(readBody(file("/a", text.toWellFormed()))).node.value).toBe(text.toWellFormed());
      }),
    );
  });
});

it("the root has neither key nor indexes", () => {
  const root = { path: storePath("/"), isDirectory: true, createdIndex: 0, modifiedIndex: 0 };
  expect(readBody(root)).toBe('{"action":"get","node":{"dir":true}}\n');
  const steps: ListingStep[] = [
    { kind: "open", node: root },
    { kind: "leaf", node: file("/a", "") },
    { kind: "close", node: root },
  ];
  expect(readPieces(steps, 1_000).next().value).toBe(
    '{"action":"get","node":{"dir":true,"nodes":[{"key":"/a","value":"","modifiedIndex":2,"createdIndex":1}]}}\n',
  );
});

it("the node of a delete has no value", () => {
  const { value, ...gone } = file("/a", "x");
  expect(eventBody({ action: "delete", node: gone, prevNode: { ...gone, value: value ?? "" } })).toBe(
    '{"action":"delete","node":{"key":"/a","modifiedIndex":2,"createdIndex":1},' +
      '"prevNode":{"key":"/a","value":"x","modifiedIndex":2,"createdIndex":1}}\n',
  );
});

describe("the end of a node", () => {
  const at = (second: number, ms: number) => ({ expiresAtMs: Date.UTC(2026, 0, 2, 3, 4, second, ms) });
  it.each([
    { end: { ...at(5, 678), ttlSeconds: 7 }, json: ',"expiration":"2026-01-02T03:04:05.678Z","ttl":7' },
    { end: at(5, 600), json: ',"expiration":"2026-01-02T03:04:05.6Z"' },
    { end: at(0, 0), json: ',"expiration":"2026-01-02T03:04:00Z"' },
    { end: at(10, 10), json: ',"expiration":"2026-01-02T03:04:10.01Z"' },
  ])("$json stands behind what the node is", ({ end, json }) => {
    const indexes = ',"modifiedIndex":2,"createdIndex":1}}\n';
    expect(readBody({ ...file("/a", "x"), ...end })).toBe(
      `{"action":"get","node":{"key":"/a","value":"x"${json}${indexes}`,
    );
    const directory = { path: storePath("/d"), isDirectory: true, createdIndex: 1, modifiedIndex: 2, ...end };
    expect(readBody(directory)).toBe(`{"action":"get","node":{"key":"/d","dir":true${json}${indexes}`);
  });
});

it("an empty cause is left out", () => {
  expect(errorBody(new StoreError("notFile", "", 7))).toBe('{"errorCode":102,"message":"Not a file","index":7}\n');
});

describe("a listing in pieces", () => {
  const directory = { path: storePath("/d"), isDirectory: true, createdIndex: 1, modifiedIndex: 2 };
  const indexes = '"modifiedIndex":2,"createdIndex":1}';
  const steps: readonly (ListingStep | undefined)[] = [
    undefined,
    { kind: "open", node: directory },
    { kind: "open", node: { ...directory, path: storePath("/d/e") } },
    { kind: "leaf", node: file("/d/e/f", "x") },
    { kind: "close", node: { ...directory, path: storePath("/d/e") } },
    undefined,
    { kind: "leaf", node: file("/d/g", "y") },
    { kind: "close", node: directory },
  ];
  const body =
    '{"action":"get","node":{"key":"/d","dir":true,"nodes":[' +
    `{"key":"/d/e","dir":true,"nodes":[{"key":"/d/e/f","value":"x",${indexes}],${indexes},` +
    `{"key":"/d/g","value":"y",${indexes}],${indexes}}\n`;

  it("is the same, however long they are", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), (pieceLength) => {
        const pieces = readPieces(steps, pieceLength);
        let [text, piece] = ["", pieces.next()];
        for (; piece.done !== true; piece = pieces.next()) text += piece.value;
        expect(text + piece.value).toBe(body);
      }),
    );
  });

  it("has empty ones while nothing is found, so that none takes long", () => {
    const pieces = readPieces(new Array<undefined>(100).fill(undefined), 500);
    expect(Array.from(pieces, ({ length }) => length)).toEqual([23, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });
});

import { describe, expect, it } from "vitest";
import {
  childPath,
  isAtOrBelow,
  isBelow,
  isHiddenBelow,
  parsePath,
  rootPath,
  storePath,
} from "../../src/store/core/node.ts";

describe("`parsePath`", () => {
  it.each(["/", "/a", "/a/b", "/...", "/..a/b c", "/ü/\u0000", "/__proto__"])("reads %j", (text) => {
    expect(parsePath(text)).toBe(text);
  });

  it.each(["", "a", "a/b", "//", "/a/", "/a//b", "/.", "/a/../b", "/a/./b"])("refuses %j", (text) => {
    expect(parsePath(text)).toBeUndefined();
  });
});

it.each([
  { path: "/a/b", ancestor: "/a", below: true },
  { path: "/ab", ancestor: "/a", below: false },
  { path: "/a", ancestor: "/a", below: false },
  { path: "/a", ancestor: "/", below: true },
  { path: "/", ancestor: "/", below: false },
  { path: "/", ancestor: "/a", below: false },
])("$path is below $ancestor: $below", ({ path, ancestor, below }) => {
  expect(isBelow(storePath(path), storePath(ancestor))).toBe(below);
  expect(isAtOrBelow(storePath(path), storePath(ancestor))).toBe(below || path === ancestor);
});

it.each([
  { path: "/a/_b", ancestor: "/a", hidden: true },
  { path: "/a/_b/c", ancestor: "/a", hidden: true },
  { path: "/_a/b", ancestor: "/_a", hidden: false },
  { path: "/_a/b", ancestor: "/", hidden: true },
  { path: "/a/b_c", ancestor: "/", hidden: false },
])("$path is hidden from $ancestor: $hidden", ({ path, ancestor, hidden }) => {
  expect(isHiddenBelow(storePath(path), storePath(ancestor))).toBe(hidden);
});

it("children of the root have one slash", () => {
  expect(childPath(rootPath, "a")).toBe("/a");
  expect(childPath(storePath("/a"), "b")).toBe("/a/b");
});

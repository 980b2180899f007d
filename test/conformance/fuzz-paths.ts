/** Random keys, and the ways to write them in a target. */

import type { Random } from "./fuzz-random.ts";

/** Names at the top whose listing does not show them. */
export const hiddenTops = ["_h", "_top"] as const;

// Mostly of directories, and mostly of keys: but each may be either, so that they get into each other's way.
const directoryNames = ["a", "b", "ab"] as const;
const keyNames = ["x", "y", "z", "ax"] as const;

// As they stand in a target.
const oddNames = [
  ...["__proto__", "constructor", "toString", "%20", "+", "%C3%A9", "e%CC%81", "%F0%9F%98%80", "a;b", "a=b", "a&b"],
  ...[
    ":",
    "@",
    "...",
    "..a",
    "%00",
    "%3F",
    "%23",
    "%25",
    "%22",
    "%3C%3E",
    "%E2%80%A8",
    "%7F",
    "%0A",
    "*",
    "(",
    "'",
    "!",
  ],
  ...["~", "A", "%5Fescaped", "00000000000000000001", "%5C", ",", "$", "hasOwnProperty"],
] as const;

/** A key as it stands in a target, or the placeholder for one that was made in order. */
export function anyPath(random: Random): string {
  if (random.chance(2)) return "/";
  if (random.chance(4)) return "{child}";
  const top = random.weighted([
    [12, "t"],
    [2, "u"],
    [1, random.of(hiddenTops)],
  ]);
  const depth = random.weighted([
    [1, 0],
    [6, 1],
    [5, 2],
    [3, 3],
    [1, 4],
  ]);
  const names = Array.from({ length: depth }, (_, at) => anyName(random, at === depth - 1));
  return `/${[top, ...names].join("/")}`;
}

function anyName(random: Random, isLast: boolean): string {
  const isKey = random.chance(isLast ? 85 : 4);
  return random.weighted([
    [22, random.of(isKey ? keyNames : directoryNames)],
    [3, isKey ? "_k" : "_h"],
    [1, random.of([oddNames[0], ...oddNames])],
  ]);
}

/** The target of a key, without a query. */
export function keyTarget(random: Random, path: string): string {
  if (path === "/") return random.of(["/v2/keys", "/v2/keys/"]);
  if (random.chance(97)) return `/v2/keys${path}`;
  const escaped = `/v2/keys/${path.slice(1).replaceAll("/", "%2F")}`;
  return random.of([`/v2/keys${path}/`, escaped, `/v2/keys${path}`.replaceAll("a", "%61")]);
}

/** The key that a path of a target names. */
export function keyOfPath(path: string): string {
  return Buffer.from(
    path.replaceAll(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  ).toString();
}

/** How a key is written in a target. */
export function pathOfKey(key: string): string {
  return key.split("/").map(encodeURIComponent).join("/");
}

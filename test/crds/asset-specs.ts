/** `spec.assets` of Profiles that the CRD admits, and that it refuses. */

import type { JsonObject } from "../../src/model/json.ts";
import type { KindSpec } from "./expression-specs.ts";

const good = { name: "debian/12/vmlinuz", url: "https://mirror.example/vmlinuz", sha256: "0f".repeat(32) };

export function assets(...list: readonly JsonObject[]): KindSpec {
  return { kind: "Profile", spec: { boot: { local: "exit" }, assets: list.map((asset) => ({ ...good, ...asset })) } };
}

export const admittedAssets: readonly KindSpec[] = [
  assets(),
  assets(
    {},
    { name: "_a/b~1+2-3.x", url: "http://192.0.2.7:8080/a/get?file=vmlinuz" },
    { name: "c", url: "http://[2001:db8::1]/a%20b?signature=a/b/" },
    { name: "n".repeat(240), url: `https://m.example/${"u".repeat(2030)}` },
  ),
];

export const assetsRefusedByRules: readonly (KindSpec & { readonly message: string })[] = [
  ...["/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "ä", "a?b", "a#b", "a\\b"].map((name) => ({
    ...assets({ name }),
    message:
      "the name of an asset is a path below /assets, such as debian/12.7/vmlinuz: write letters, digits and -._~+, " +
      "with / between parts that begin with a letter, a digit or _",
  })),
  ...["ftp://a/b", "oci://a/b", "/vmlinuz", "HTTP://a/b", "file:///etc/passwd", ""].map((url) => ({
    ...assets({ url }),
    message: "url begins with http:// or https://: davit fetches by these only",
  })),
  ...["http:///b", "http://a:b@c/d", "http://a/b#c", "http://a/b c", "http://a\\b/c", "http://a:123456/b"].map(
    (url) => ({
      ...assets({ url }),
      message:
        "url is http://HOST/PATH without a password, a fragment or blanks: escape other characters by % and two " +
        "hexadecimal digits",
    }),
  ),
  ...["http://a", "http://a/", "https://a/b/", "http://a/b/?c=d", "http://a?b"].map((url) => ({
    ...assets({ url }),
    message: "url is a directory: name the file in it",
  })),
  ...["", "0f".repeat(31), `${"0f".repeat(32)}0`, "0F".repeat(32), `${"0f".repeat(31)}0g`].map((sha256) => ({
    ...assets({ sha256 }),
    message: "sha256 is 64 hexadecimal digits in lower case, as sha256sum prints them: correct it",
  })),
];

export const assetBounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
  [
    "assets",
    "Profile",
    assets(...Array.from({ length: 32 }, (_, at) => ({ name: `a${at}` }))).spec,
    assets(...Array.from({ length: 33 }, (_, at) => ({ name: `a${at}` }))).spec,
  ],
  ["the name of an asset", "Profile", assets({ name: "n".repeat(240) }).spec, assets({ name: "n".repeat(241) }).spec],
  ["assets by name", "Profile", assets({}, { name: "other" }).spec, assets({}, {}).spec],
];

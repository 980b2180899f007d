/**
 * Reads lists of assets to download: YAML or JSON, a sequence of `{url, sha256, path}`. Without `path`, the last name
 * in the URL counts. If a list has mistakes, davit fetches nothing. It reports the first YAML error, or else the
 * mistakes of every entry. It checks a path only if the url and sha256 of its entry are right.
 */

import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from "yaml";

/** A file that the assets directory must have. */
export interface ListedAsset {
  /** `http:` or `https:`, without a password. */
  readonly url: URL;
  /** 64 hexadecimal digits in lower case. */
  readonly sha256: string;
  /** Below the assets directory, with `/` between names. */
  readonly path: string;
}

/** The mistakes in a list. Each problem begins with the number of its line. */
export class AssetListError extends Error {
  override readonly name = "AssetListError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** Records a mistake, with the line of a node. */
type Complain = (node: Node | null | undefined, problem: string) => undefined;

const fields = ["url", "sha256", "path"];
/** Nobody writes a longer list by hand. */
const maxAssets = 1_000;
/** Less than Linux allows (NAME_MAX, 255), because an unfinished download has a longer name than the finished file. */
const maxNameBytes = 240;
const pathRule =
  `must be names with / between, each of 1 to ${maxNameBytes} bytes, ` +
  "without a dot at its begin, a backslash or a control character";

/**
 * Reads a list.
 * @throws {AssetListError} with the mistakes that the head of this file names.
 */
export function readAssetList(text: string): readonly ListedAsset[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    throw new AssetListError([`line ${lines.linePos(error.pos[0]).line}: it is not YAML (${error.code})`]);
  }
  const problems: string[] = [];
  const complain: Complain = (node, problem) => {
    problems.push(`line ${lines.linePos(node?.range?.[0] ?? 0).line}: ${problem}`);
    return undefined;
  };
  const { contents } = document;
  const items = isSeq<Node>(contents) ? contents.items : [];
  if (!isSeq(contents)) complain(contents, "the list must be a sequence of {url, sha256, path}");
  if (items.length > maxAssets) complain(contents, `more than ${maxAssets} assets`);
  const taken = new Set<string>();
  const assets = items.flatMap((item) => {
    const asset = readAsset(item, complain);
    if (asset === undefined) return [];
    if (taken.has(asset.path)) complain(item, `path "${asset.path}" is there twice`);
    taken.add(asset.path);
    return [asset];
  });
  if (problems.length > 0) throw new AssetListError(problems);
  return assets;
}

function readAsset(item: Node, complain: Complain): ListedAsset | undefined {
  if (!isMap<Node, Node>(item)) return complain(item, "it must have url and sha256");
  const texts = readTexts(item, complain);
  const url = readUrl(texts.get("url"), item, complain);
  const sha256 = readDigest(texts.get("sha256"), item, complain);
  const given = texts.get("path");
  if (url === undefined || sha256 === undefined || given === null) return undefined;
  const { node, text: path } = given ?? { node: item, text: lastName(url) };
  if (isAssetPath(path)) return { url, sha256, path };
  return complain(node, `path "${path}" ${pathRule}`);
}

function readTexts(map: YAMLMap<Node, Node>, complain: Complain): ReadonlyMap<string, FieldText | null> {
  const texts = new Map<string, FieldText | null>();
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : "";
    if (!fields.includes(name)) complain(key, `unknown field "${name}", there are ${fields.join(", ")}`);
    else if (isScalar(value) && typeof value.value === "string") texts.set(name, { node: value, text: value.value });
    else texts.set(name, complain(key, `${name} must be text: quote it`) ?? null);
  }
  return texts;
}

interface FieldText {
  readonly node: Node;
  readonly text: string;
}

/** The text of a field: null if the value is no text, which is already reported; undefined if the field is missing. */
type Given = FieldText | null | undefined;

function readUrl(given: Given, item: Node, complain: Complain): URL | undefined {
  if (given === null) return undefined;
  if (given === undefined) return complain(item, "it has no url");
  const url = URL.canParse(given.text) ? new URL(given.text) : undefined;
  // The message does not quote the URL: a password may be in it.
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return complain(given.node, "url must be http:// or https://");
  if (`${url.username}${url.password}` !== "") return complain(given.node, "url must not hold a user name or password");
  return url;
}

function readDigest(given: Given, item: Node, complain: Complain): string | undefined {
  if (given === null) return undefined;
  if (given === undefined) return complain(item, "it has no sha256: take it from the publisher of the file");
  if (!/^[0-9a-f]{64}$/i.test(given.text)) return complain(given.node, "sha256 must be 64 hexadecimal digits");
  return given.text.toLowerCase();
}

function lastName({ pathname }: URL): string {
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/**
 * True for a path that the boot service can serve below `/assets/`. It has no control characters, because logs show it.
 */
function isAssetPath(path: string): boolean {
  return path
    .split("/")
    .every((name) => /^[^.\\\p{Cc}][^\\\p{Cc}]*$/u.test(name) && Buffer.byteLength(name) <= maxNameBytes);
}

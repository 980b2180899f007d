/**
 * The conformance files: what is sent to a key API, and what must come back. Each file is one story, told from an empty
 * store; its first line says on which servers it holds.
 *
 *   # both: Creating a key answers 201
 *   > PUT /v2/keys/a            a request; further `> Name: value` lines are its headers
 *   | value=x                   its body, a form unless a Content-Type is given
 *   < 201 {"action":"set",...}  status and body, without newlines at its end
 *   < X-Etcd-Index: @1          a header; `-` for one that must be absent
 *
 * In a body `{time}` stands for any time in RFC 3339, `{stamp}` for one with milliseconds, `{id}` for an id in hex,
 * `{number}`, `{name}`, `{url}` and `{duration}` for one of those, `{urls}` and `{places}` for any number of quoted and
 * of bare URLs. Newlines at the end of a body are not looked at, unless `{newline}` or `{end}` says that there is one or
 * none.
 *
 * `@1` is the first index that the story takes, `@0` the one before it, `@@1` that index with 20 digits. A request that
 * begins with `&>` stays open, and a later `&<` awaits its answer: so a story can watch.
 */

export interface Story {
  readonly servers: "both" | "davit" | "etcd";
  readonly title: string;
  readonly steps: readonly Step[];
}

export type Step =
  | { readonly kind: "exchange"; readonly request: StoryRequest; readonly answer: StoryAnswer }
  | { readonly kind: "begin"; readonly request: StoryRequest }
  | { readonly kind: "await"; readonly answer: StoryAnswer };

export interface StoryRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface StoryAnswer {
  readonly status: number;
  readonly body: string;
  /** In lower case; undefined for one that must be absent. */
  readonly headers: ReadonlyMap<string, string | undefined>;
}

/** Reads a story, with its indexes counted from `base`, the store's index before it. */
export function parseStory(text: string, base: number): Story {
  const [first = "", ...lines] = text.split("\n");
  const [, servers, title = ""] = /^# (both|davit|etcd): (.*)$/.exec(first) ?? [];
  if (servers !== "both" && servers !== "davit" && servers !== "etcd") throw new Error(`Bad first line "${first}"`);
  const paragraphs = lines
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.split("\n").filter((line) => line !== ""))
    .filter((paragraph) => paragraph.length > 0);
  return {
    servers,
    title,
    steps: paragraphs.map((paragraph) => parseStep(paragraph.map((line) => fillIndexes(line, base)))),
  };
}

/** Replaces `@1` and `@@1` by the indexes that they stand for, where the story's first one follows `base`. */
export function fillIndexes(line: string, base: number): string {
  return line
    .replaceAll(/@@(\d+)/g, (_, offset) => String(base + Number(offset)).padStart(20, "0"))
    .replaceAll(/@(\d+)/g, (_, offset) => String(base + Number(offset)));
}

function parseStep(lines: readonly string[]): Step {
  const isOpen = lines[0]?.startsWith("&") === true;
  const plain = lines.map((line) => line.replace(/^&/, ""));
  const sent = plain.filter((line) => line.startsWith("> ")).map((line) => line.slice(2));
  const body = plain.filter((line) => line.startsWith("| ")).map((line) => line.slice(2));
  const expected = plain.filter((line) => line.startsWith("<")).map((line) => line.slice(2));
  if (sent.length + body.length + expected.length !== lines.length) throw new Error(`Bad lines:\n${lines.join("\n")}`);
  if (!isOpen) return { kind: "exchange", request: parseRequest(sent, body), answer: parseAnswer(expected) };
  if (sent.length > 0) return { kind: "begin", request: parseRequest(sent, body) };
  return { kind: "await", answer: parseAnswer(expected) };
}

function parseRequest([first = "", ...headers]: readonly string[], body: readonly string[]): StoryRequest {
  const space = first.indexOf(" ");
  const form = body.length > 0 ? { "content-type": "application/x-www-form-urlencoded" } : {};
  return {
    method: first.slice(0, space),
    target: first.slice(space + 1),
    headers: { ...form, ...Object.fromEntries(headers.map(splitHeader)) },
    body: body.length > 0 ? body.join("\n") : undefined,
  };
}

function parseAnswer([first = "", ...headers]: readonly string[]): StoryAnswer {
  const [, status, body = ""] = /^(\d{3})(?: (.*))?$/.exec(first) ?? [];
  if (status === undefined) throw new Error(`Bad answer "${first}"`);
  const pairs = headers.map(splitHeader).map(([name, value]) => [name, value === "-" ? undefined : value] as const);
  return { status: Number(status), body, headers: new Map(pairs) };
}

function splitHeader(line: string): readonly [string, string] {
  const colon = line.indexOf(": ");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 2)];
}

const placeholders: Readonly<Record<string, string>> = {
  time: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{0,8}[1-9])?Z",
  stamp: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z",
  id: "[1-9a-f][0-9a-f]{0,15}",
  number: "[0-9]+",
  name: '[^"]+',
  urls: '(?:"http://[^"]+"(?:,"http://[^"]+")*)?',
  url: 'http://[^", ]+:[0-9]+',
  places: "(?:http://[^, ]+(?:,http://[^, ]+)*)?",
  duration: "(?:[0-9]+h)?(?:[0-9]+m)?[0-9]+(?:\\.[0-9]*[1-9])?(?:s|ms|µs|ns)",
};

const placeholder = new RegExp(`\\{(${Object.keys(placeholders).join("|")})\\}`);

/** True when a body is the expected one, with anything that fits in the place of a placeholder. */
export function isBody(expected: string, body: string): boolean {
  const isExact = /\{(newline|end)\}$/.test(expected);
  const text = isExact ? body : body.replace(/\n*$/, "");
  const parts = expected.replace("{newline}", "\n").replace("{end}", "").split(placeholder);
  const pattern = parts.map((part, at) =>
    at % 2 === 1 ? placeholders[part] : part.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&"),
  );
  return new RegExp(`^${pattern.join("")}$`, "s").test(text);
}

/**
 * A grammar of requests that send a form of the console: who sends it, what proves that the console's own page made it,
 * and its fields. Some parts are odd, and some bodies are mutants.
 */

import type { Pick } from "../helpers/fault-files.ts";
import { mutate } from "./mutate.ts";

export interface FormSender {
  readonly name: string;
  /** Header lines that say who sends it. */
  readonly headers: readonly string[];
  /** What the console's pages give this sender. Empty for a stranger. */
  readonly formToken: string;
  /** The actions that this sender may do. */
  readonly actions: readonly string[];
}

export interface FormWorld {
  /** The listener's address. */
  readonly host: string;
  readonly senders: readonly FormSender[];
  /** The forms to send. */
  readonly paths: readonly string[];
  /** Tokens to sign in with. */
  readonly tokens: readonly string[];
  /** Values by which forms name machines. */
  readonly machines: readonly string[];
  readonly manifests: readonly string[];
}

export interface SentForm {
  readonly bytes: Buffer;
  readonly path: string;
  readonly sender: FormSender;
  /** What the grammar made odd. A form without flaws is the console's own. */
  readonly flaws: readonly string[];
  /** True if the form may change machines. */
  readonly mayChange: boolean;
  readonly isMutant: boolean;
}

type Field = readonly [name: string, value: string];

const formType = "application/x-www-form-urlencoded";
const actions = ["adopt", "forget", "approve", "hold", "release"];
const oddActions = ["", "__proto__", "constructor", "toString", "Adopt", "adopt ", "install"];
const oddTexts = ["\0", "\r\nset-cookie: a=b", "<script>alert(1)</script>", "\u202e", "%", "é".repeat(300), "/"];
const words = ["&form=", "&action=forget", "&machine=", "%00", "+", "=", "&", "%E0%A4", "__proto__", "[]"];

/** Returns the next request. */
export function sentForm(pick: Pick, world: FormWorld): SentForm {
  const flaws: string[] = [];
  const anyOf = <T>(list: readonly T[]): T => list[pick(list.length)] as T;
  /** Returns the right part, or at times an odd one. */
  const part = <T>(name: string, right: T, odd: readonly T[]): T => {
    if (pick(12) !== 0) return right;
    flaws.push(name);
    return anyOf(odd);
  };
  const sender = anyOf(world.senders);
  const others = world.senders.map(({ formToken }) => formToken).filter((each) => each !== sender.formToken);
  const path = anyOf(world.paths);
  const { host } = world;
  const method = part("method", "POST", ["PUT", "PATCH", "DELETE", "post", "QUERY"]);
  const origin = part("origin", [`Origin: http://${host}`], wrongOrigins(host));
  const type = part("type", [`Content-Type: ${formType}`], wrongTypes);
  const wrongTokens = [...others, "", "x", sender.formToken.slice(1), `${sender.formToken}x`].map((each) => [each]);
  const tokens = part("token", [sender.formToken], [...wrongTokens, [], ["", sender.formToken]]);
  const more = pick(6) === 0 ? [["form", anyOf(others)] as const] : [];
  const fields = [...tokens.map((token) => ["form", token] as const), ...fieldsOf(path, sender, world, pick), ...more];
  const plain = encode(fields);
  const isMutant = pick(4) === 0;
  const body = isMutant ? mutate(plain, pick, words, [plain]) : part("body", plain, oddBodies(plain));
  const isRightToken = new URLSearchParams(body.toString()).get("form") === sender.formToken;
  if (path !== "/console/sign-in" && sender.formToken === "") flaws.push("stranger");
  if (isMutant && path !== "/console/sign-in" && !isRightToken) flaws.push("token");
  const action = new URLSearchParams(body.toString()).get("action") ?? "";
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close", ...sender.headers];
  const sent = [...lines, ...origin, ...type, `Content-Length: ${body.length}`, "", ""].join("\r\n");
  return {
    bytes: Buffer.concat([Buffer.from(sent), body]),
    path,
    sender,
    flaws: path === "/console/sign-in" ? flaws.filter((flaw) => flaw !== "token") : flaws,
    mayChange: flaws.length === 0 && path === "/console/actions" && sender.actions.includes(action),
    isMutant,
  };
}

function fieldsOf(path: string, sender: FormSender, world: FormWorld, pick: Pick): readonly Field[] {
  const anyOf = <T>(list: readonly T[]): T => list[pick(list.length)] as T;
  const odd = (right: string) => (pick(10) === 0 ? anyOf([...oddTexts, ...oddActions]) : right);
  switch (path) {
    case "/console/actions": {
      const known = sender.actions.length > 0 ? sender.actions : actions;
      const chosen = Array.from({ length: pick(20) === 0 ? 500 : 1 + pick(3) }, () => odd(anyOf(world.machines)));
      const fields = [
        ["back", odd("/console/")] as const,
        ["action", odd(anyOf(pick(3) === 0 ? actions : known))] as const,
      ];
      return [...fields, ...chosen.map((each) => ["machine", each] as const)];
    }
    case "/console/try":
      return [
        ["labels", odd(`mac=${anyOf(world.machines)}`)],
        ["manifest", odd(anyOf(world.manifests))],
      ];
    case "/console/sign-in":
      return [["token", odd(anyOf(world.tokens))]];
    default:
      return [];
  }
}

function encode(fields: readonly Field[]): Buffer {
  const form = new URLSearchParams();
  for (const [name, value] of fields) form.append(name, value);
  return Buffer.from(form.toString());
}

const wrongTypes: readonly (readonly string[])[] = [
  [],
  ["Content-Type: text/plain"],
  ["Content-Type: application/json"],
  ["Content-Type: multipart/form-data; boundary=x"],
  [`Content-Type: ${formType}x`],
  ["Content-Type: text/plain", `Content-Type: ${formType}`],
  [`Content-Type: text/plain; ${formType}`],
];

const wrongOrigins = (host: string): readonly (readonly string[])[] => [
  [],
  ["Origin: null"],
  ["Origin: "],
  ["Origin: http://evil.example"],
  [`Origin: http://${host}.evil.example`],
  [`Origin: http://evil.example/@${host}`],
  [`Origin: http://evil.example#${host}`],
  [`Origin: ${host}`],
  [`Origin: http://${host}`, "Origin: http://evil.example"],
  ["Origin: http://evil.example", `Origin: http://${host}`],
  [`Referer: http://${host}/console/`],
];

/** The same fields in bodies that davit must not accept as the form. */
function oddBodies(plain: Buffer): readonly Buffer[] {
  const text = plain.toString();
  return [
    Buffer.alloc(0),
    Buffer.from(text, "utf16le"),
    Buffer.from(JSON.stringify(Object.fromEntries(new URLSearchParams(text)))),
    Buffer.from(`\ufeff${text}`),
    Buffer.concat([Buffer.from(`pad=${"x".repeat(4 * 2 ** 20)}&`), plain]),
    Buffer.from(text.replaceAll("&", ";").replaceAll("form=", "form[]=")),
  ];
}

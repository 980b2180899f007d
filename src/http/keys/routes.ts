/**
 * The handler of the key API: `/v2/keys`, the endpoints beside it, and unknown paths. It reads targets and bodies by
 * the rules of the protocol.
 */

import type { Clock } from "../../lib/clock.ts";
import { unreachable } from "../../lib/errors.ts";
import { type StorePath, storePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { Clients } from "../client-shares.ts";
import { type Answer, type Exchange, type Handled, pathEnd } from "../exchange.ts";
import { RouteTable } from "../route-table.ts";
import type { Handler } from "../server.ts";
import { UnsentAnswers } from "../unsent-answers.ts";
import { beginRead, corsHeaders, isSecret, readFile, refusalAnswer, refuseLongKey, write } from "./answers.ts";
import { BodyReader } from "./body.ts";
import { endpointsOf, type KeysEndpoint, uptimeSince } from "./endpoints.ts";
import { decodeEscapes, hasBadEscape } from "./form.ts";
import { OpenListings } from "./listing.ts";
import { memberViewOf } from "./members.ts";
import { notAllowedAnswer, outsideAnswer, plainAnswer } from "./reply.ts";
import { type KeysMethod, keysMethods, parseKeysRequest } from "./request.ts";
import { OpenWatches } from "./watches.ts";

interface KeysHandlerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** The longest value that a client may write. */
  readonly maxValueBytes: number;
  /** Names the client of a request, for limits by client. */
  readonly clients?: Clients;
  /** Counts the unread answers of the listener. */
  readonly unsent?: UnsentAnswers;
  /** The URL that the members list and `/v2/machines` give to clients; called for each answer. */
  readonly advertiseUrl: () => string;
}

/**
 * Limits of the listener. The target has room for a key of 32 KiB with every byte escaped, and for a query of 16 KiB. A
 * long poll may be silent for ever, so no stall ends it.
 */
export const keysLimits = { maxTargetBytes: 112 * 1024, maxHeaderBytes: 128 * 1024, stallTimeoutMs: 0 } as const;

interface Context {
  readonly store: Store;
  readonly watches: OpenWatches;
  readonly listings: OpenListings;
  readonly bodies: BodyReader;
  readonly maxValueBytes: number;
}

/** Makes the handler of a listener for keys. */
export function keysHandler(options: KeysHandlerOptions): Handler<undefined> {
  const { store, maxValueBytes, clients = new Clients(), unsent = new UnsentAnswers({ clients }) } = options;
  const bodies = new BodyReader(clients);
  const listings = new OpenListings({ clock: options.clock, clients });
  const watches = new OpenWatches(store, unsent);
  const context: Context = { store, maxValueBytes, watches, listings, bodies };
  const uptime = uptimeSince(options.clock);
  const members = () => memberViewOf(store, options.advertiseUrl());
  const table = new RouteTable(endpointsOf({ store, bodies, members, uptime }));
  return {
    begin: () => undefined,
    handle: (exchange) => {
      const { method, headers } = exchange.request;
      // Node decodes `chunked`. Bytes of any other coding would reach the handler undecoded.
      const coding = headers["transfer-encoding"];
      if (coding !== undefined && coding.toLowerCase() !== "chunked")
        return plainAnswer(501, "Unsupported transfer encoding");
      if (method === "OPTIONS") return outsideAnswer(method);
      return answerTarget(context, table, exchange);
    },
    end: () => watches.endAll(),
  };
}

/** Answers a redirect, a key, an endpoint, or an unknown path. */
function answerTarget(context: Context, table: RouteTable<KeysEndpoint>, exchange: Exchange): Handled {
  const { request } = exchange;
  const target = parseTarget(request.url ?? "");
  if (target.kind === "malformed") return plainAnswer(400, "400 Bad Request");
  if (target.kind === "redirect") return redirectAnswer(request.method, target.location);
  const path = keyOf(target.path);
  if (path !== undefined) return answerMethod(context, exchange, path, target.query);
  const found = table.find(target.path);
  if (found === undefined) return outsideAnswer(request.method);
  const { methods, answer } = found.route;
  return methods.includes(request.method ?? "") ? answer(exchange, found.rest) : notAllowedAnswer(methods);
}

/** Answers a key. Most reads are answered without a promise, which would cost more than the read. */
function answerMethod(context: Context, exchange: Exchange, path: StorePath, query: string): Handled {
  const method = keysMethods.find((each) => each === exchange.request.method);
  if (method === undefined) return notAllowedAnswer(keysMethods);
  const known = method === "GET" && query === "" ? readFile(context.store, path) : undefined;
  return known ?? answerKey(context, exchange, { method, path, query });
}

interface KeyRequest {
  readonly method: KeysMethod;
  readonly path: StorePath;
  readonly query: string;
}

async function answerKey(context: Context, exchange: Exchange, asked: KeyRequest): Promise<Answer | undefined> {
  const { bodies, listings, store, watches, maxValueBytes } = context;
  try {
    const hasForm = asked.method === "PUT" || asked.method === "POST";
    const form = hasForm ? await bodies.form(exchange.request) : undefined;
    refuseLongKey(asked.path);
    const parsed = parseKeysRequest({ ...asked, ...(form !== undefined && { form }) });
    switch (parsed.kind) {
      case "read":
        if (parsed.quorum) await store.catchUp();
        return readFile(store, parsed.path) ?? (await listings.answer(exchange, () => beginRead(store, parsed)));
      case "watch":
        watches.answer(exchange, { ...parsed, accepts: ({ node }) => !isSecret(node.path) });
        return undefined;
      case "write":
        return await write(store, parsed, maxValueBytes);
      default:
        return unreachable(parsed);
    }
  } catch (error) {
    if (error instanceof StoreError) return refusalAnswer(store, error);
    throw error;
  }
}

// Redirects as Go's http.Redirect does: for GET and HEAD, the body is a link for people.
function redirectAnswer(method: string | undefined, location: string): Answer {
  const headers = [...corsHeaders, "Location", location];
  if (method !== "GET" && method !== "HEAD") return { status: 301, headers, body: "" };
  const link = location.replaceAll(/[&<>"']/g, (mark) => markup[mark] ?? mark);
  const body = `<a href="${link}">Moved Permanently</a>.\n\n`;
  return { status: 301, headers: ["Content-Type", "text/html; charset=utf-8", ...headers], body };
}

// The link repeats the target's query, which must not become markup. The escapes are those of Go's net/http.
const markup: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };

type Target =
  /** `path` is decoded and clean. */
  | { readonly kind: "path"; readonly path: string; readonly query: string }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "malformed" };

const keysPrefix = "/v2/keys";

// Matches nearly every target: it has no escapes, no empty names, and no name `.` or `..`.
const plainTarget = /^(?:\/(?!\.{1,2}(?:[/?]|$))[\w.~!$'()*,:@+=&-]+)+(?:\?[\x21-\x7e]*)?$/;

/**
 * Parses a request's target as it was sent, in origin or absolute form. URL libraries resolve `..`, `%2e` and `//`
 * silently. The protocol answers them with a redirect, so this reads the raw text. Bytes above ASCII must be escaped.
 */
export function parseTarget(raw: string): Target {
  if (plainTarget.test(raw)) {
    const end = pathEnd(raw);
    return { kind: "path", path: raw.slice(0, end), query: raw.slice(end + 1) };
  }
  const target = raw.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, "");
  const end = pathEnd(target);
  const rawPath = target.slice(0, end);
  if (!/^[\x21-\x7e]*$/.test(target) || hasBadEscape(rawPath)) return { kind: "malformed" };
  const path = decodeEscapes(rawPath);
  const clean = cleanPath(path);
  const query = target.slice(end + 1);
  if (clean === path) return { kind: "path", path, query };
  return { kind: "redirect", location: encodePath(clean) + (query === "" ? "" : `?${query}`) };
}

/** Returns the key that a path names; undefined for a path outside `/v2/keys`. */
export function keyOf(path: string): StorePath | undefined {
  if (path !== keysPrefix && !path.startsWith(`${keysPrefix}/`)) return undefined;
  const key = path.slice(keysPrefix.length);
  return storePath(key.replace(/\/$/, "") || "/");
}

// Cleans a path like Go's net/http (cleanPath of ServeMux): resolves `.` and `..`, and removes empty names. One
// trailing slash stays.
function cleanPath(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const clean = `/${segments.join("/")}`;
  return path.endsWith("/") && clean !== "/" ? `${clean}/` : clean;
}

// Escapes a path like Go's net/url, which escapes fewer characters than encodeURIComponent, and also `!*'()`.
function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replaceAll(/[!*'()]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll(/%(?:24|26|2B|2C|2F|3A|3B|3D|40)/g, (found) =>
      String.fromCharCode(Number.parseInt(found.slice(1), 16)),
    );
}

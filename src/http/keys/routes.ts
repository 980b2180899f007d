/**
 * The handler of the key API: `/v2/keys`, the endpoints beside it, and unknown paths. It reads targets and bodies by
 * the rules of the protocol.
 */

import type { Clock } from "../../lib/clock.ts";
import { unreachable } from "../../lib/errors.ts";
import type { StorePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { Clients } from "../client-shares.ts";
import type { Answer, Exchange, Handled } from "../exchange.ts";
import { RouteTable } from "../route-table.ts";
import type { Handler } from "../server.ts";
import { UnsentAnswers } from "../unsent-answers.ts";
import { beginRead, corsHeaders, isSecret, readFile, refusalAnswer, refuseLongKey, write } from "./answers.ts";
import { BodyReader } from "./body.ts";
import { endpointsOf, type KeysEndpoint, uptimeSince } from "./endpoints.ts";
import { OpenListings } from "./listing.ts";
import { memberViewOf } from "./members.ts";
import { notAllowedAnswer, outsideAnswer, plainAnswer } from "./reply.ts";
import { type KeysMethod, keysMethods, parseKeysRequest } from "./request.ts";
import { keyOf, parseTarget } from "./target.ts";
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

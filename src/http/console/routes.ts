/**
 * The routes of the console: pages for people below `/console/`, on the operations listener. Every page needs a visitor
 * (`visitors.ts`), every change a form of the console's own page. A browser that asks for server-sent events at a
 * page's path gets the page's content again whenever it changes (`liveStream`).
 */

import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../lib/clock.ts";
import { Shares } from "../../lib/shares.ts";
import { RequestError, requestRefusals } from "../errors.ts";
import { rawQueryOf } from "../ops/server.ts";
import { html } from "./html/html.ts";
import { consolePath, type Page, pageHtml } from "./html/layout.ts";
import { doActions } from "./pages/actions.ts";
import type { ConsoleContext, Screen } from "./pages/context.ts";
import { fleetScreen, waitingScreen } from "./pages/fleet-page.ts";
import { healthScreen } from "./pages/health-page.ts";
import { machineScreen } from "./pages/machine-page.ts";
import { objectScreen, objectsScreen } from "./pages/objects-page.ts";
import { tryScreen } from "./pages/try-page.ts";
import { SignInNeeded, sessionCookie, type Visitor, type Visitors } from "./state/visitors.ts";

export interface ConsoleRoutesOptions {
  readonly visitors: Visitors;
  readonly context: ConsoleContext;
  /** The style sheet and the script of every page. */
  readonly files: ConsoleFiles;
  /** True for a request that came by HTTPS, through a trusted proxy. */
  readonly isHttps: (request: IncomingMessage) => boolean;
  /** Ends server-sent events. */
  readonly signal: AbortSignal;
}

export interface ConsoleFiles {
  readonly style: string;
  readonly script: string;
}

const shownScreens: readonly Screen[] = [
  fleetScreen,
  machineScreen,
  waitingScreen,
  objectsScreen,
  objectScreen,
  healthScreen,
  tryScreen,
];

const htmlText = "text/html; charset=utf-8";
const formType = "application/x-www-form-urlencoded";
const maxFormBytes = 64 * 1024;
/** The most live pages; a further browser gets pages that do not change. One user has at most half of them. */
const maxLive = 64;

/** What a page may load: only the console's own files. No other page may frame it. */
const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

export const consoleRoutes: FastifyPluginAsync<ConsoleRoutesOptions> = async (app, options) => {
  const { visitors, context, files } = options;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(formType, { parseAs: "string" }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  );
  app.setErrorHandler((error, request, reply) => sendError(error, { request, reply, options }));
  app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
  for (const url of ["/", consolePath]) app.get(url, (_request, reply) => toFleet(reply));
  for (const [name, type, text] of [
    ["console.css", "text/css; charset=utf-8", files.style],
    ["console.js", "text/javascript; charset=utf-8", files.script],
  ] as const) {
    const body = Buffer.from(text);
    app.get(`${consolePath}/${name}`, (_request, reply) => reply.type(type).send(body));
  }
  const live = new Shares({ limit: maxLive });
  for (const screen of shownScreens) addScreen(app, screen, { ...options, live });
  addForm(app, { url: `${consolePath}/actions`, visitors }, async (reply, { form, visitor }) =>
    sendPage(reply, await doActions(form, visitor, context), { visitor, context }),
  );
  addSessionRoutes(app, options);
};

function toFleet(reply: FastifyReply): FastifyReply {
  return reply.redirect(`${consolePath}/`, 303);
}

interface ScreenOptions extends ConsoleRoutesOptions {
  /** The places of live pages. */
  readonly live: Shares;
}

function addScreen(app: FastifyInstance, { url, page, post }: Screen, options: ScreenOptions): void {
  const { visitors, context } = options;
  app.get<{ Params: { "*"?: string } }>(url, async (request, reply) => {
    const visit = async () => {
      const visitor = await visitors.of(request.raw);
      const query = new URLSearchParams(rawQueryOf(request));
      return { visitor, rest: request.params["*"] ?? "", query };
    };
    const first = await visit();
    const { visitor } = first;
    const shown = await page(first, context);
    const isRead = request.method === "GET" && !reply.raw.destroyed;
    const wantsEvents = isRead && request.headers.accept === "text/event-stream" && shown.isLive === true;
    if (!wantsEvents) return sendPage(reply, shown, { visitor, context });
    return sendLive(reply, visitor.user, options, async () => {
      const next = await visit().catch(() => undefined);
      return next && String(html`${(await page(next, context)).body}`);
    });
  });
  if (post === undefined) return;
  // Its body can be long, so its visitor is known before davit reads it.
  addForm(app, { url, maxBytes: post.maxBytes, visitors, isChecked: true }, async (reply, { form, visitor }) => {
    const visit = { visitor, rest: "", query: new URLSearchParams() };
    return sendPage(reply, await post.page(form, visit, context), { visitor, context });
  });
}

interface FormRoute extends Pick<ConsoleRoutesOptions, "visitors"> {
  readonly url: string;
  readonly maxBytes?: number;
  /** True if the visitor is checked before the body is read, too. */
  readonly isChecked?: boolean;
}

interface SentForm {
  readonly form: URLSearchParams;
  readonly visitor: Visitor;
  readonly request: IncomingMessage;
}

/** Adds a form that only a page of the console can send. */
function addForm(
  app: FastifyInstance,
  { url, maxBytes = maxFormBytes, visitors, isChecked = false }: FormRoute,
  answer: (reply: FastifyReply, sent: SentForm) => FastifyReply | Promise<FastifyReply>,
): void {
  const onRequest = async ({ raw }: FastifyRequest) => {
    if (!isChecked) return;
    await visitors.of(raw);
    visitors.checkOrigin(raw);
  };
  app.post(url, { bodyLimit: maxBytes, onRequest }, async (request, reply) => {
    const visitor = await visitors.of(request.raw);
    const form = formOf(request);
    visitors.checkForm(request.raw, visitor, form.get("form"));
    return await answer(reply, { form, visitor, request: request.raw });
  });
}

/** Sign-in and sign-out. A sign-in needs no form token: who can send one already has a token. */
function addSessionRoutes(app: FastifyInstance, { visitors, context, isHttps }: ConsoleRoutesOptions): void {
  const url = `${consolePath}/sign-in`;
  app.get(url, (_request, reply) => sendSignIn(reply, "", context));
  app.post(url, { bodyLimit: maxFormBytes }, async (request, reply) => {
    visitors.checkOrigin(request.raw);
    const session = await visitors.signIn(formOf(request).get("token")?.trim() ?? "", request.raw);
    setCookie(reply, session, isHttps(request.raw));
    return toFleet(reply);
  });
  addForm(app, { url: `${consolePath}/sign-out`, visitors }, (reply, { request }) => {
    visitors.signOut(request);
    setCookie(reply, "", isHttps(request));
    return reply.redirect(url, 303);
  });
}

function setCookie(reply: FastifyReply, value: string, isSecure: boolean): void {
  const attributes = ["HttpOnly", "SameSite=Strict", `Path=${consolePath}`];
  const rest = [...attributes, ...(isSecure ? ["Secure"] : []), ...(value === "" ? ["Max-Age=0"] : [])];
  reply.header("set-cookie", [`${sessionCookie}=${value}`, ...rest].join("; "));
}

function formOf({ body }: FastifyRequest): URLSearchParams {
  if (!(body instanceof URLSearchParams)) throw new RequestError("badBody");
  return body;
}

/** Answers with events. The response must still be open: a closed one emits no `close`, and would keep its place. */
function sendLive(
  reply: FastifyReply,
  user: string,
  { live, signal, context: { fleet, clock } }: ScreenOptions,
  render: () => Promise<string | undefined>,
): FastifyReply {
  // After a 204 the browser does not ask again.
  if (!live.take(user)) return reply.code(204).send();
  const gone = new AbortController();
  reply.raw.once("close", () => {
    live.release(user);
    gone.abort();
  });
  const revision = () => (fleet.isBehind ? undefined : fleet.revision);
  const both = AbortSignal.any([signal, gone.signal]);
  return reply.type("text/event-stream").send(liveStream({ revision, render, clock, signal: both }));
}

interface PageReader {
  readonly visitor: Visitor | undefined;
  readonly context: ConsoleContext;
}

function sendPage(reply: FastifyReply, page: Page, { visitor, context }: PageReader): FastifyReply {
  if (page.status !== undefined) reply.code(page.status);
  // A Buffer, because Fastify would add a charset to the type.
  return reply.type(htmlText).send(Buffer.from(pageHtml(page, visitor, context.clock.nowMs())));
}

function sendSignIn(reply: FastifyReply, problem: string, context: ConsoleContext): FastifyReply {
  return sendPage(reply, signInPage(problem, context.callers !== undefined), { visitor: undefined, context });
}

interface FailedRequest {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly options: ConsoleRoutesOptions;
}

/** @throws every error that is no refusal: it is answered and logged as anywhere on the listener. */
async function sendError(error: unknown, { request, reply, options }: FailedRequest): Promise<FastifyReply> {
  const { visitors, context } = options;
  if (error instanceof SignInNeeded) return sendSignIn(reply.code(401), error.message, context);
  if (!(error instanceof RequestError)) throw error;
  const { status, text } = requestRefusals[error.reason];
  const visitor = await visitors.of(request.raw).catch(() => undefined);
  const body = html`<h1>${status}</h1>\n<p>${text}</p>\n<p><a href="${consolePath}/">Fleet</a></p>`;
  const page = { title: String(status), body };
  return sendPage(reply.code(status).headers(error.headers), page, { visitor, context });
}

/**
 * Makes the page that exchanges a token for a session.
 * @param problem why the last token did not do; empty for none.
 */
function signInPage(problem: string, hasCluster: boolean): Page {
  const kinds = hasCluster
    ? "a token of --ops-token-file or --ops-admin-token-file, or your Kubernetes token"
    : "a token of --ops-token-file or --ops-admin-token-file";
  const body = html`<h1>Sign in</h1>
${problem !== "" && html`<p role="alert" class="problem">${problem}</p>`}
<form method="post" action="${consolePath}/sign-in" class="sign-in">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autocomplete="off" spellcheck="false">
<button>Sign in</button>
</form>
<p>Give ${kinds}. davit keeps it in memory only.</p>
${hasCluster && html`<pre tabindex="0">kubectl create token ACCOUNT --namespace NAMESPACE</pre>`}`;
  return { title: "Sign in", body };
}

interface LiveOptions {
  /** Changes when the page may have changed. Undefined if a page that is made now may lack the last changes. */
  readonly revision: () => string | undefined;
  /** Makes the page's content. Undefined ends the events: the visitor may no longer see it. */
  readonly render: () => Promise<string | undefined>;
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  /** Ends the events. */
  readonly signal: AbortSignal;
}

const turnMs = 500;
/** Proxies cut a connection that is silent for a minute. */
const silenceMs = 20_000;
/** The states of machines change with time, too. */
const maxAgeMs = 10_000;

/**
 * Sends a page's content again whenever it changes, as server-sent events (WHATWG HTML, 9.2): at most twice a second,
 * and nothing while the browser has not taken what was sent before.
 */
export function liveStream(options: LiveOptions): Readable {
  return Readable.from(events(options), { highWaterMark: 1, objectMode: true });
}

async function* events({ revision, render, clock, signal }: LiveOptions): AsyncGenerator<Buffer> {
  yield Buffer.from("retry: 2000\n\n");
  let known: string | undefined;
  let sent: string | undefined;
  let [madeAtMs, sentAtMs] = [0, 0];
  while (!signal.aborted) {
    const now = revision();
    const nowMs = clock.monotonicMs();
    if (now === undefined || now !== known || nowMs - madeAtMs > maxAgeMs) {
      const made = await render();
      if (made === undefined) return;
      [known, madeAtMs] = [now, nowMs];
      if (made !== sent) {
        // The page may have been made before the last change, so the first event always has everything.
        yield Buffer.from(`data: ${made.replaceAll("\n", "\ndata: ")}\n\n`);
        [sent, sentAtMs] = [made, nowMs];
      }
    }
    if (nowMs - sentAtMs > silenceMs) {
      yield Buffer.from(": nothing new\n\n");
      sentAtMs = nowMs;
    }
    await clock.sleep(turnMs, signal);
  }
}

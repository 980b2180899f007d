/**
 * The handler of the boot listener. It answers GET and HEAD with boot scripts, rendered configs and their signatures.
 * A GET of a script or a config may claim an install, and a route such as `/report/*` may have other methods. Other
 * threads make slow configs, slow scripts and new signatures. A claim waits for the ledger. All other configs, scripts
 * and signatures are answered without a wait.
 */

import { type ConfigName, configNames } from "../../boot/boot-configs.ts";
import type { Transport } from "../../boot/transport.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { after, type Soon } from "../../lib/soon.ts";
import { labelsFromQuery } from "../../model/labels/labels.ts";
import { genericPart, isLoader, isPartName } from "../../model/objects/profile.ts";
import { plainText, type Rendered } from "../../render/core/rendered.ts";
import { isGrub } from "../../render/grub/grub.ts";
import { bootScript, chainScript } from "../../render/ipxe/ipxe.ts";
import { Clients } from "../client-shares.ts";
import { RequestError } from "../errors.ts";
import type { Answer, Exchange, Handled } from "../exchange.ts";
import { LargeBodies } from "../large-bodies.ts";
import { type Route, type RouteMatch, RouteTable, unescapedPath } from "../route-table.ts";
import type { Handler } from "../server.ts";
import { hasValidCertificate } from "../server-tls.ts";
import type { AccessLog, LoggedRequest } from "./access-log.ts";
import { answerMachine, type Configs, partRoute, type RefusalSink } from "./answer.ts";
import { byQuery } from "./by-path.ts";
import { exceptForWantOfPart, type NocloudFile, nocloudFile, nocloudFiles } from "./nocloud.ts";
import {
  type BootSigners,
  publicKeys,
  queryGrubWantsSigned,
  type SignatureForm,
  signatureForms,
  signatureOf,
  signerAt,
} from "./signatures.ts";

export interface BootHandlerOptions extends BootSigners {
  /** How requests arrive; `http` unless given. */
  readonly transport?: Transport;
  /** Configs other than boot scripts need a client certificate that TLS has verified. */
  readonly asksForCertificate?: boolean;
  /** For the time at which certificates expire; the system's unless given. */
  readonly clock?: Pick<Clock, "nowMs">;
  /** Finds a machine's config, or throws a BootError, which `errors.ts` converts into an answer. */
  readonly configs: Configs;
  readonly onRefusal?: RefusalSink;
  readonly accessLog?: AccessLog;
  /** Names the client of a request, for limits by client. */
  readonly clients?: Clients;
  readonly large?: LargeBodies;
  /** Routes that are not configs, such as `/assets/*`. */
  readonly routes?: readonly BootRoute[];
}

/** Answers GET and HEAD at a path, or other methods. */
export interface BootRoute extends Route {
  /** GET and HEAD unless given. */
  readonly methods?: readonly string[];
  readonly answer: (exchange: Exchange, visit: BootVisit) => Handled;
  /** Called when the server closes: answers the requests that wait. */
  readonly end?: () => void;
}

/** A request, with what `begin` has found for `handle`. */
export interface BootVisit extends LoggedRequest {
  readonly found: RouteMatch<BootRoute> | undefined;
  /** The error, if the path cannot be decoded; then no route was looked for. */
  readonly problem: unknown;
}

/** A path, and the function that renders its text. */
interface Endpoint {
  readonly url: string;
  /**
   * @param rawQuery used instead of the request's query, which can end in GRUB's `.sig`.
   * @throws what `errors.ts` can convert.
   */
  readonly render: (exchange: Exchange, visit: BootVisit, rawQuery: string) => Soon<Rendered>;
}

/** A request, with the query to use. */
interface QueriedExchange {
  readonly exchange: Exchange;
  readonly visit: BootVisit;
  /** As in `Endpoint`. */
  readonly rawQuery: string;
}

type Limits = Required<Pick<BootHandlerOptions, "clients" | "large">>;

/** Makes the handler of the boot listener. */
export function bootHandler(options: BootHandlerOptions): Handler<BootVisit> {
  const {
    configs,
    onRefusal,
    accessLog,
    clients = new Clients(),
    large = new LargeBodies(),
    routes = [],
    ...others
  } = options;
  const { transport = "http", asksForCertificate = false, clock = systemClock, ...signers } = others;
  const configOf = (name: ConfigName, { exchange, visit, rawQuery }: QueriedExchange, sink = onRefusal) => {
    const { request } = exchange;
    // Boot scripts are for firmware, which has no client certificate.
    if (asksForCertificate && !isLoader(name) && !hasValidCertificate(request, clock.nowMs()))
      throw new RequestError("noClientCertificate");
    const userAgent = request.headers["user-agent"] ?? "";
    // Called only for large or slow configs: reading an address takes time.
    const client = () => clients.ofRequest(request);
    const address = () => clients.addressOf(request);
    const labels = labelsFromQuery(rawQuery);
    const asked = { labels, rawQuery, userAgent, transport, client, mayClaim: mayClaim(exchange, visit), address };
    return answerMachine({ configs, onRefusal: sink }, name, asked, visit);
  };
  const machinesOwn = (nameIn: (visit: BootVisit) => ConfigName): Endpoint["render"] => {
    return (exchange, visit, rawQuery) => configOf(nameIn(visit), { exchange, visit, rawQuery });
  };
  const nocloud = (file: NocloudFile): Endpoint["render"] => {
    return (exchange, visit, rawQuery) => {
      const asked = { exchange, visit, rawQuery };
      const optional = (name: ConfigName) => configOf(name, asked, onRefusal && exceptForWantOfPart(onRefusal));
      return nocloudFile(file, { visit, config: (name) => configOf(name, asked), optional });
    };
  };
  const endpoints: readonly Endpoint[] = [
    ...["/boot.ipxe", "/boot.ipxe.0"].map((url) => ({ url, render: () => plain(bootScript) })),
    { url: "/chain.ipxe", render: (_exchange, _visit, rawQuery) => chained(rawQuery) },
    ...configNames.map((name) => ({ url: `/${name}`, render: machinesOwn(() => name) })),
    { url: partRoute, render: machinesOwn(askedPart) },
    ...nocloudFiles.map((file) => ({ url: `/nocloud/${file}`, render: nocloud(file) })),
  ];
  const limits = { clients, large };
  const table = new RouteTable<BootRoute>([
    { url: "/", answer: (exchange) => textAnswer(plain("davit\n"), exchange, limits) },
    ...endpoints.flatMap((endpoint) => routesOf(endpoint, signers, limits)),
    ...publicKeys(signers).map(([url, key]) => ({ url, answer: () => key })),
    ...routes,
  ]);
  return {
    rewrite: byQuery,
    begin: (exchange) => {
      const visit = visitOf(table, exchange);
      accessLog?.(exchange, visit);
      return visit;
    },
    handle: (exchange, visit) => {
      if (visit.problem !== undefined) throw visit.problem;
      if (visit.found === undefined) throw new RequestError("notFound");
      const { route } = visit.found;
      if (!hasMethod(route, exchange))
        throw new RequestError("methodNotAllowed", { allow: methodsOf(route).join(", ") });
      return route.answer(exchange, visit);
    },
    end: () => {
      for (const { end } of routes) end?.();
    },
    // GRUB ignores the status (GRUB 2.06 grub-core/net/http.c): it would boot with the text of a 503 as its initrd.
    cutsErrors: ({ request, path }) => isGrub(request.headers["user-agent"]) && isAsset(path),
  };
}

/**
 * True for a request that may spend a permit: a GET of the text itself. GRUB asks for a signature by a query that ends
 * in `.sig`, even where davit has no signing key and answers with the text.
 */
function mayClaim(exchange: Exchange, { isSignature }: BootVisit): boolean {
  return exchange.request.method === "GET" && !isSignature && queryGrubWantsSigned(exchange) === undefined;
}

/** True for a path of an asset, also if its letters are escaped, or an escape is malformed. */
function isAsset(path: string): boolean {
  return path.replaceAll(/%[2-7][\da-f]/gi, decodeURIComponent).startsWith("/assets/");
}

const reading = ["GET", "HEAD"];

function methodsOf({ methods = reading }: BootRoute): readonly string[] {
  return methods;
}

function hasMethod(route: BootRoute, { request: { method = "" } }: Exchange): boolean {
  return methodsOf(route).includes(method);
}

function visitOf(table: RouteTable<BootRoute>, exchange: Exchange): BootVisit {
  try {
    const found = table.find(unescapedPath(exchange.path));
    const route = found !== undefined && hasMethod(found.route, exchange) ? found.route.url : undefined;
    return { found, problem: undefined, route, machine: undefined, isSignature: false };
  } catch (problem) {
    return { found: undefined, problem, route: undefined, machine: undefined, isSignature: false };
  }
}

/**
 * The routes of a path and of its signatures. The signatures' routes come first, because `/generic/:name` would match
 * their paths, too.
 */
function routesOf({ url, render }: Endpoint, signers: BootSigners, limits: Limits): readonly BootRoute[] {
  const signer = signerAt(signers, url);
  const answer: BootRoute["answer"] = (exchange, visit) =>
    after(render(exchange, visit, exchange.rawQuery), (rendered) => textAnswer(rendered, exchange, limits));
  if (signer === undefined) return [{ url, answer }];
  const isTrustedByGrub = signers.grubSigner === undefined;
  const answerSigned = (form: SignatureForm, rawQuery: string, exchange: Exchange, visit: BootVisit) => {
    visit.isSignature = true;
    const client = () => limits.clients.ofRequest(exchange.request);
    const rendered = render(exchange, visit, rawQuery);
    return after(rendered, (known) => signatureOf(known, { signer, form, client, isTrustedByGrub }));
  };
  return [
    ...signatureForms.map(
      (form): BootRoute => ({
        url: `${url}.${form}`,
        answer: (exchange, visit) => answerSigned(form, exchange.rawQuery, exchange, visit),
      }),
    ),
    {
      url,
      answer: (exchange, visit) => {
        const signedQuery = queryGrubWantsSigned(exchange);
        if (signedQuery !== undefined) return answerSigned("sig", signedQuery, exchange, visit);
        return answer(exchange, visit);
      },
    },
  ];
}

/**
 * @throws {RequestError} notFound for a name that no part may have: without a signer, also `NAME.sig` and `NAME.asc`.
 */
function askedPart({ found }: BootVisit): ConfigName {
  const name = found?.rest ?? "";
  if (!isPartName(name)) throw new RequestError("notFound");
  return genericPart(name);
}

/** @throws {RequestError} badRequest for a query that cannot be passed on. */
function chained(rawQuery: string): Rendered {
  const script = chainScript(labelsFromQuery(rawQuery));
  if (script === undefined) throw new RequestError("badRequest");
  return script;
}

function plain(body: string): Rendered {
  return { body, contentType: plainText, isShared: true };
}

/** Returns a text as an answer. Answers with the same long text share its bytes. */
function textAnswer(rendered: Rendered, { request, response }: Exchange, { clients, large }: Limits): Answer {
  const headers = ["Content-Type", rendered.contentType, "Cache-Control", "no-store"];
  const { body, byteLength } = rendered;
  if (request.method === "HEAD") return { status: 200, headers, body, byteLength };
  const sent = large.take(rendered, response, () => clients.ofRequest(request));
  return { status: 200, headers, body: sent, byteLength: typeof sent === "string" ? byteLength : sent.length };
}

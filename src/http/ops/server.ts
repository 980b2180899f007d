/**
 * The server of the operations listener: Fastify finds the routes, and the server that all listeners share does the
 * rest.
 */

import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { codeOf } from "../../lib/errors.ts";
import { RequestError, type RequestRefusal } from "../errors.ts";
import { createServer, type HttpServer, type ServerOptions } from "../server.ts";
import { pathEnd } from "../target.ts";

export interface OpsServer extends HttpServer {
  /** Routes are added here before `listen`. Only GET and HEAD requests reach them, and POST to `changingPaths`. */
  readonly app: FastifyInstance;
}

/** Makes a server that does not listen yet. */
export function createOpsServer(options: Omit<ServerOptions<undefined>, "handler">): OpsServer {
  const app = fastify({
    // davit's routes name HEAD themselves. Node leaves out the body, and the headers are the same.
    exposeHeadRoutes: false,
    logger: false,
    return503OnClosing: false,
    // Leaves `request.query` empty. Routes read the raw query, because the parsed form loses repeated names and bad
    // escapes.
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (_error, request, reply) => answerWith(new RequestError("badRequest"), request, reply),
  });
  const answerWith = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const path = pathOf(request);
    const { status, headers, body, report } = options.answerError(thrown, path);
    if (report !== undefined) options.log.error({ path, ...report }, "request failed");
    // A Buffer, because Fastify would add a charset to the type of a JSON text.
    reply.code(status).headers(headers).send(Buffer.from(body));
  };
  app.setErrorHandler((error, request, reply) => answerWith(toRequestError(error), request, reply));
  app.setNotFoundHandler(() => {
    throw new RequestError("notFound");
  });
  refuseOtherMethods(app);
  const server = createServer({
    ...options,
    handler: {
      begin: () => undefined,
      handle: ({ request, response }) => {
        app.routing(request, response);
        return undefined;
      },
      end: () => void app.close(),
    },
  });
  return {
    ...server,
    app,
    listen: async (address) => {
      await app.ready();
      return await server.listen(address);
    },
  };
}

/** The only paths that accept POST. Their routes guard themselves and limit their bodies (`machine-changes.ts`). */
const changingPaths: ReadonlySet<string> = new Set(["/machines/adopt", "/machines/forget"]);

/**
 * Refuses every method except GET and HEAD, and POST to a path that changes something: with 405 if the path has a
 * route, else with 404. The bodies of refused requests are never read.
 */
function refuseOtherMethods(app: FastifyInstance): void {
  const paths = new Set<string>();
  app.addHook("onRoute", ({ url }) => void paths.add(url));
  app.addHook("onRequest", (request, _reply, done) => {
    const path = pathOf(request);
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (isRead && !(changingPaths.has(path) && paths.has(path))) return done();
    if (!paths.has(path)) return done(new RequestError("notFound"));
    if (request.method === "POST" && changingPaths.has(path)) return done();
    done(new RequestError("methodNotAllowed", { allow: changingPaths.has(path) ? "POST" : "GET, HEAD" }));
  });
}

/** The path of a request as sent, without its query. */
function pathOf({ originalUrl }: FastifyRequest): string {
  return originalUrl.slice(0, pathEnd(originalUrl));
}

/** The target after the first `?`, exactly as sent. */
export function rawQueryOf({ originalUrl }: FastifyRequest): string {
  return originalUrl.slice(pathEnd(originalUrl) + 1);
}

const refusalOfStatus: Readonly<Record<number, RequestRefusal>> = {
  400: "badRequest",
  404: "notFound",
  413: "bodyTooLarge",
  414: "targetTooLong",
  415: "unsupportedType",
};

/**
 * Converts an error of Fastify into davit's refusal for the same status. Its own message is dropped, because it quotes
 * the request.
 */
function toRequestError(thrown: unknown): unknown {
  const isFastifys = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  if (!isFastifys || !(thrown instanceof Error) || !("statusCode" in thrown)) return thrown;
  const refusal = refusalOfStatus[Number(thrown.statusCode)];
  return refusal === undefined ? thrown : new RequestError(refusal);
}

/** The server of the operations listener: Fastify's routes over the server of all listeners. */

import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { codeOf } from "../../lib/errors.ts";
import { RequestError, type RequestRefusal } from "../errors.ts";
import { createServer, type HttpServer, type ServerOptions } from "../server.ts";
import { pathEnd } from "../target.ts";

export interface OpsServer extends HttpServer {
  /** Where routes are registered, before `listen`. Other methods than GET and HEAD never reach them. */
  readonly app: FastifyInstance;
}

/** Makes a server that does not listen yet. */
export function createOpsServer(options: Omit<ServerOptions<undefined>, "handler">): OpsServer {
  const app = fastify({
    // Routes for GET take HEAD too: Node leaves out the body, and the headers are the same.
    exposeHeadRoutes: false,
    logger: false,
    return503OnClosing: false,
    // Questions are read from the raw query, whose parsed form loses repeats and bad escapes: `request.query` is empty.
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (_error, request, reply) => answerWith(new RequestError("badRequest"), request, reply),
  });
  const answerWith = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const path = pathOf(request);
    const { status, headers, body, report } = options.answerError(thrown, path);
    if (report !== undefined) options.log.error({ path, ...report }, "request failed");
    // A Buffer, because Fastify completes the content type of JSON text.
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

/** Refuses every method but GET and HEAD: 405 on a path that has a route, else 404. Bodies are never read. */
function refuseOtherMethods(app: FastifyInstance): void {
  const paths = new Set<string>();
  app.addHook("onRoute", ({ url }) => void paths.add(url));
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.method === "GET" || request.method === "HEAD") return done();
    if (!paths.has(pathOf(request))) return done(new RequestError("notFound"));
    done(new RequestError("methodNotAllowed", { allow: "GET, HEAD" }));
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

/** Fastify's own errors carry a status and quote the request: only the status is kept. */
function toRequestError(thrown: unknown): unknown {
  const isFastifys = codeOf(thrown)?.startsWith("FST_ERR_") === true;
  if (!isFastifys || !(thrown instanceof Error) || !("statusCode" in thrown)) return thrown;
  const refusal = refusalOfStatus[Number(thrown.statusCode)];
  return refusal === undefined ? thrown : new RequestError(refusal);
}

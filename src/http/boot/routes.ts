/**
 * The routes for machines: boot scripts and every rendered config, for GET and HEAD, and their signatures.
 * Nothing here changes state. Only signatures and slow configs wait. Answers contain only what the renderers made.
 */

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { type ConfigName, configNames } from "../../boot/boot-configs.ts";
import { after, type Soon } from "../../lib/soon.ts";
import { isJsonObject } from "../../model/json.ts";
import { type GenericPart, genericPart, isPartName } from "../../model/profile.ts";
import { plainText, type Rendered } from "../../render/core/rendered.ts";
import { bootScript } from "../../render/ipxe/ipxe.ts";
import { Clients } from "../client-shares.ts";
import { RequestError } from "../errors.ts";
import { LargeBodies } from "../large-bodies.ts";
import { rawQueryOf } from "../server.ts";
import { answerMachine, type Configs, partRoute } from "./answer.ts";
import {
  addSignatureRoutes,
  type BootEndpoint,
  type BootSigners,
  queryGrubWantsSigned,
  sendSignature,
  signerAt,
} from "./signatures.ts";

export interface BootRoutesOptions extends BootSigners {
  /** Finds a machine's config or throws BootError, which errors.ts turns into an answer. */
  readonly configs: Configs;
  /** Returns the client of a request, for limits by client. */
  readonly clients?: Clients;
  readonly large?: LargeBodies;
}

export const bootRoutes: FastifyPluginAsync<BootRoutesOptions> = async (app, options) => {
  const { configs, clients = new Clients(), large = new LargeBodies(), ...signers } = options;
  const sendTo = (reply: FastifyReply, rendered: Rendered) => {
    const client = () => clients.ofRequest(reply.request.raw);
    const isHead = reply.request.method === "HEAD";
    return send(reply, rendered.contentType, isHead ? rendered.body : large.take(rendered, reply.raw, client));
  };
  const answer = (name: ConfigName, request: FastifyRequest, rawQuery: string): Soon<Rendered> => {
    const userAgent = request.headers["user-agent"] ?? "";
    const client = () => clients.ofRequest(request.raw);
    return answerMachine(configs, { name, rawQuery, userAgent, client }, (machine) => {
      request.machine = machine;
    });
  };
  // Declared here, so that every request object has the same shape.
  app.decorateRequest("machine", undefined);
  app.decorateRequest("asksForSignature", false);
  const method = ["GET", "HEAD"];
  app.route({ method, url: "/", handler: (_request, reply) => sendTo(reply, plain("davit\n")) });
  const endpoints: readonly BootEndpoint[] = [
    ...["/boot.ipxe", "/boot.ipxe.0"].map((url) => ({ url, render: () => plain(bootScript) })),
    ...configNames.map((name) => ({
      url: `/${name}`,
      render: (request: FastifyRequest, rawQuery: string) => answer(name, request, rawQuery),
    })),
    { url: partRoute, render: (request, rawQuery) => answer(askedPart(request), request, rawQuery) },
  ];
  for (const { url, render } of endpoints) {
    const signer = signerAt(signers, url);
    const handler = (request: FastifyRequest, reply: FastifyReply) => {
      const rawQuery = rawQueryOf(request);
      const signed = signer === undefined ? undefined : queryGrubWantsSigned(request, rawQuery);
      if (signer === undefined || signed === undefined) {
        return after(render(request, rawQuery), (rendered) => sendTo(reply, rendered));
      }
      request.asksForSignature = true;
      const client = () => clients.ofRequest(request.raw);
      return sendSignature(reply, render(request, signed), { signer, form: "sig", client });
    };
    app.route({ method, url, handler });
  }
  addSignatureRoutes(app, endpoints, { ...signers, clients });
};

function plain(body: string): Rendered {
  return { body, contentType: plainText, isShared: true };
}

/** @throws {RequestError} for a name that no part may have, such as a signature's where nothing is signed. */
function askedPart({ params }: FastifyRequest): GenericPart {
  const name = isJsonObject(params) ? String(params.name) : "";
  if (!isPartName(name)) throw new RequestError("notFound");
  return genericPart(name);
}

const identity = (body: string) => body;

function send(reply: FastifyReply, contentType: string, body: string | Buffer): FastifyReply {
  // This serializer keeps Fastify from completing the content type of JSON text.
  return reply.headers({ "content-type": contentType, "cache-control": "no-store" }).serializer(identity).send(body);
}

/**
 * What machines ask: the boot scripts and every rendered config, for GET and HEAD. Nothing here changes state, nothing
 * waits, and nothing is printed into an answer but what the renderers made of it.
 */

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { type BootConfigs, type ConfigName, configNames } from "../boot/boot-configs.ts";
import { bootScript } from "../render/ipxe.ts";
import type { Rendered } from "../render/rendered.ts";
import { answerMachine } from "./boot-answer.ts";
import { rawQueryOf } from "./server.ts";

export interface BootRoutesOptions {
  /** Finds a machine's config or throws BootError, which errors.ts turns into an answer. */
  readonly configs: Pick<BootConfigs, "render">;
}

export const bootRoutes: FastifyPluginAsync<BootRoutesOptions> = async (app, { configs }) => {
  // Declared here, so that every request object has the same shape.
  app.decorateRequest("machine", undefined);
  const method = ["GET", "HEAD"];
  const plain = (body: string): Rendered => ({ body, contentType: "text/plain; charset=utf-8" });
  for (const [url, body] of [
    ["/", "davit\n"],
    ["/boot.ipxe", bootScript],
    ["/boot.ipxe.0", bootScript],
  ] as const) {
    app.route({ method, url, handler: (_request, reply) => send(reply, plain(body)) });
  }
  for (const name of configNames) {
    app.route({ method, url: `/${name}`, handler: (request, reply) => send(reply, answer(configs, name, request)) });
  }
};

function answer(configs: BootRoutesOptions["configs"], name: ConfigName, request: FastifyRequest): Rendered {
  const question = { name, rawQuery: rawQueryOf(request), userAgent: request.headers["user-agent"] ?? "" };
  return answerMachine(configs, question, (machine) => {
    request.machine = machine;
  });
}

const identity = (text: string) => text;

function send(reply: FastifyReply, { body, contentType }: Rendered): FastifyReply {
  // A serializer of our own keeps Fastify from completing the content type of JSON text.
  return reply.headers({ "content-type": contentType, "cache-control": "no-store" }).serializer(identity).send(body);
}

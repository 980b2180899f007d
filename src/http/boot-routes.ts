/**
 * What machines ask: the boot scripts and every rendered config, for GET and HEAD. Nothing here changes state, nothing
 * waits, and nothing is printed into an answer but what the renderers made of it.
 */

import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { type BootConfigs, type ConfigName, configNames } from "../boot/boot-configs.ts";
import { BootError } from "../boot/boot-error.ts";
import { labelsFromQuery } from "../model/labels.ts";
import { bootScript } from "../render/ipxe.ts";
import type { Rendered } from "../render/rendered.ts";
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

/** Parses, asks, and leaves for the access log what is known, also of a refusal. */
function answer(configs: BootRoutesOptions["configs"], name: ConfigName, request: FastifyRequest): Rendered {
  const rawQuery = rawQueryOf(request);
  const labels = labelsFromQuery(rawQuery);
  request.machine = { labels };
  try {
    const config = configs.render(name, { labels, rawQuery, userAgent: request.headers["user-agent"] ?? "" });
    request.machine = { labels, group: config.group, profile: config.profile };
    return config.rendered;
  } catch (error) {
    if (error instanceof BootError) request.machine = { labels, group: error.group, profile: error.profile };
    throw error;
  }
}

const identity = (text: string) => text;

function send(reply: FastifyReply, { body, contentType }: Rendered): FastifyReply {
  // A serializer of our own keeps Fastify from completing the content type of JSON text.
  return reply.headers({ "content-type": contentType, "cache-control": "no-store" }).serializer(identity).send(body);
}

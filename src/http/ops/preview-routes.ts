/** `GET /preview?<labels>`: shows what a machine with these labels would get, and why, as text or as JSON. */

import type { FastifyPluginAsync } from "fastify";
import { jsonText, plainText } from "../../render/core/rendered.ts";
import type { Previews } from "./preview.ts";
import { previewText } from "./preview-text.ts";
import { prefersJson, rawQueryOf } from "./server.ts";

export interface PreviewRoutesOptions {
  readonly previews: Pick<Previews, "of">;
}

/** The whole query is what the machine would send, so the preview cannot take options from it. */
export const previewRoutes: FastifyPluginAsync<PreviewRoutesOptions> = async (app, { previews }) => {
  app.route({
    method: ["GET", "HEAD"],
    url: "/preview",
    handler: async (request, reply) => {
      const preview = await previews.of(rawQueryOf(request));
      const isJson = prefersJson(request.headers.accept);
      const body = isJson ? `${JSON.stringify(preview, undefined, 2)}\n` : previewText(preview);
      return reply
        .headers({
          "content-type": isJson ? jsonText : plainText,
          "cache-control": "no-store",
          vary: "accept",
          // Without this header, a browser could take the text for HTML.
          "x-content-type-options": "nosniff",
        })
        .send(Buffer.from(body));
    },
  });
};

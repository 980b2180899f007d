/** `GET /preview?<labels>`: what a machine with these labels would get, and why, as text or as JSON. */

import type { FastifyPluginAsync } from "fastify";
import { jsonText, plainText } from "../../render/rendered.ts";
import { rawQueryOf } from "../server.ts";
import { prefersJson } from "./accept.ts";
import type { Previews } from "./preview.ts";
import { previewText } from "./preview-text.ts";

export interface PreviewRoutesOptions {
  readonly previews: Pick<Previews, "of">;
}

/** The query is the machine's, all of it: there is no room for options of the preview's own. */
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
          // What machines would get may look like anything to a browser.
          "x-content-type-options": "nosniff",
        })
        .send(Buffer.from(body));
    },
  });
};

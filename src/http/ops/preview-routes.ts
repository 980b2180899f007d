/** `GET /preview?<labels>`: shows what a machine with these labels would get, and why, as text or as JSON. */

import type { FastifyPluginAsync } from "fastify";
import type { Previews } from "./preview.ts";
import { previewText } from "./preview-text.ts";
import { rawQueryOf, show } from "./server.ts";

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
      return show(reply, {
        json: () => `${JSON.stringify(preview, undefined, 2)}\n`,
        text: () => previewText(preview),
      });
    },
  });
};

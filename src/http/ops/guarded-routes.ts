/** The routes of the operations listener that show machines and their configs. One door guards all of them. */

import type { FastifyPluginAsync } from "fastify";
import type { OpsDoor } from "./door.ts";
import { type HistoryRoutesOptions, historyRoutes } from "./history-routes.ts";
import type { Previews } from "./preview.ts";
import { previewRoutes } from "./preview-routes.ts";

export interface GuardedRoutesOptions {
  readonly door: Pick<OpsDoor, "guard">;
  readonly previews: Pick<Previews, "of">;
  readonly history: HistoryRoutesOptions;
}

export const guardedRoutes: FastifyPluginAsync<GuardedRoutesOptions> = async (app, { door, previews, history }) => {
  // Must come first: the door does not guard routes that were added before.
  door.guard(app);
  await app.register(previewRoutes, { previews });
  await app.register(historyRoutes, history);
};

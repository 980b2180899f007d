/** The routes of the operations listener that show machines and their configs. One door guards all of them. */

import type { FastifyPluginAsync } from "fastify";
import { type DocumentsRoutesOptions, documentsRoutes } from "./documents-routes.ts";
import type { OpsDoor } from "./door.ts";
import { type HistoryRoutesOptions, historyRoutes } from "./history-routes.ts";
import { type MachineChangesOptions, machineChanges } from "./machine-changes.ts";
import { machineRoutes } from "./machine-routes.ts";
import type { Previews } from "./preview.ts";
import { previewRoutes } from "./preview-routes.ts";

export interface GuardedRoutesOptions {
  readonly door: Pick<OpsDoor, "guard" | "guardChanges">;
  readonly previews: Pick<Previews, "of">;
  readonly history: HistoryRoutesOptions;
  /** Undefined without a ledger: then there are no routes of machines. */
  readonly machines?: MachineChangesOptions | undefined;
  /** Undefined in a follower. */
  readonly documents?: DocumentsRoutesOptions | undefined;
}

export const guardedRoutes: FastifyPluginAsync<GuardedRoutesOptions> = async (app, options) => {
  const { door, previews, history, machines, documents } = options;
  if (machines !== undefined) {
    await app.register(async (changing) => {
      door.guardChanges(changing);
      await changing.register(machineChanges, machines);
    });
  }
  // Must come before the routes: the door does not guard routes that were added before.
  door.guard(app);
  await app.register(previewRoutes, { previews });
  await app.register(historyRoutes, history);
  if (machines !== undefined) await app.register(machineRoutes, { ...machines, history: history.history });
  if (documents !== undefined) await app.register(documentsRoutes, documents);
};

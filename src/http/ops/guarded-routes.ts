/** The routes of the operations listener that show machines and their configs. One guard admits to all of them. */

import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import type { OpsGuard } from "../guard/ops-guard.ts";
import type { Access } from "../guard/service-account-tokens.ts";
import { type DocumentsRoutesOptions, documentsRoutes } from "./documents-routes.ts";
import { type HistoryRoutesOptions, historyRoutes } from "./history-routes.ts";
import { type MachineChangesOptions, machineChanges } from "./machine-changes.ts";
import { machineRoutes } from "./machine-routes.ts";
import type { Previews } from "./preview.ts";
import { previewRoutes } from "./preview-routes.ts";

export interface GuardedRoutesOptions {
  readonly guard: Pick<OpsGuard, "refusalOf">;
  readonly previews: Pick<Previews, "of">;
  readonly history: HistoryRoutesOptions;
  /** Undefined without a ledger: then there are no routes of machines. */
  readonly machines?: MachineChangesOptions | undefined;
  /** Undefined in a follower. */
  readonly documents?: DocumentsRoutesOptions | undefined;
}

export const guardedRoutes: FastifyPluginAsync<GuardedRoutesOptions> = async (app, options) => {
  const { guard, previews, history, machines, documents } = options;
  if (machines !== undefined) {
    await app.register(async (changing) => {
      guardRoutes(changing, guard, "write");
      await changing.register(machineChanges, machines);
    });
  }
  // Must come before the routes: routes that were added before are not guarded.
  guardRoutes(app, guard, "read");
  await app.register(previewRoutes, { previews });
  await app.register(historyRoutes, history);
  if (machines !== undefined) await app.register(machineRoutes, { ...machines, history: history.history });
  if (documents !== undefined) await app.register(documentsRoutes, documents);
};

/** Guards every route that is added to this Fastify instance from now on. */
export function guardRoutes(app: FastifyInstance, guard: GuardedRoutesOptions["guard"], need: Access): void {
  app.addHook("onRequest", async ({ raw }) => {
    const refusal = await guard.refusalOf(raw, need);
    if (refusal !== undefined) throw refusal;
  });
}

/**
 * The routes of the operations listener. `/livez`, `/readyz`, `/version` and `/metrics` need no credentials. A guard
 * admits to all that show machines and their configs.
 */

import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { notReadyStatus } from "../errors.ts";
import type { OpsGuard } from "../guard/ops-guard.ts";
import type { Access } from "../guard/service-account-tokens.ts";
import { type DocumentsRoutesOptions, documentsRoutes } from "./documents-routes.ts";
import { type HistoryRoutesOptions, historyRoutes } from "./history-routes.ts";
import { type MachineChangesOptions, machineChanges } from "./machine-changes.ts";
import { machineRoutes } from "./machine-routes.ts";
import type { Previews } from "./preview.ts";
import { previewText } from "./preview-text.ts";
import { rawQueryOf, show } from "./server.ts";

/** One thing that must hold before machines are answered. */
export interface ReadyCheck {
  /** Lower case, one word or hyphenated. */
  readonly name: string;
  /** Returns undefined if the condition holds, otherwise the reason in a few words. */
  check(): string | undefined;
}

interface OpsRoutesOptions {
  readonly version: string;
  readonly checks: readonly ReadyCheck[];
  /** Problems that need a person although machines are answered, one line each. `/readyz?verbose` shows them. */
  readonly attention?: () => readonly string[];
  readonly metrics: Pick<Metrics, "contentType" | "text">;
}

const plainText = "text/plain; charset=utf-8";

export const opsRoutes: FastifyPluginAsync<OpsRoutesOptions> = async (app, { version, checks, attention, metrics }) => {
  // If davit cannot continue, it ends itself. So a process that answers is alive.
  app.get("/livez", (_request, reply) => reply.type(plainText).send("ok\n"));
  app.get("/readyz", (request, reply) => {
    const failures = checks.map(({ name, check }) => ({ name, failure: check() }));
    const isReady = failures.every(({ failure }) => failure === undefined);
    const lines = failures.map(({ name, failure }) =>
      failure === undefined ? `[+] ${name} ok` : `[-] ${name}: ${failure}`,
    );
    const isVerbose = /^([^?]*&)?verbose([=&?]|$)/.test(rawQueryOf(request));
    if (!isReady) reply.code(notReadyStatus);
    const details = isVerbose || !isReady ? lines : [];
    const notes = isVerbose ? (attention?.() ?? []).map((line) => `[!] ${line}`) : [];
    const verdict = isReady ? "ok" : "not ready";
    return reply.type(plainText).send(`${[...details, ...notes, verdict].join("\n")}\n`);
  });
  app.get("/version", (_request, reply) =>
    reply.type("application/json").send(Buffer.from(`${JSON.stringify({ version })}\n`)),
  );
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
};

interface GuardedRoutesOptions {
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
  // The whole query is what the machine would send, so a preview cannot take options from it.
  app.get("/preview", async (request, reply) => {
    const preview = await previews.of(rawQueryOf(request));
    return show(reply, { json: () => preview, indent: 2, text: () => previewText(preview) });
  });
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

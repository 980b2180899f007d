/** The routes of the operations listener that need no credentials: `/livez`, `/readyz`, `/version` and `/metrics`. */

import type { FastifyPluginAsync } from "fastify";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { notReadyStatus } from "../errors.ts";
import { rawQueryOf } from "./server.ts";

/** One thing that must hold before machines are answered. */
export interface ReadyCheck {
  /** Lower case, one word or hyphenated. */
  readonly name: string;
  /** Returns undefined if the condition holds, otherwise the reason in a few words. */
  check(): string | undefined;
}

export interface OpsRoutesOptions {
  readonly version: string;
  readonly checks: readonly ReadyCheck[];
  /** Problems that need a person although machines are answered, one line each. `/readyz?verbose` shows them. */
  readonly attention?: () => readonly string[];
  readonly metrics: Pick<Metrics, "contentType" | "text">;
}

const plainText = "text/plain; charset=utf-8";

export const opsRoutes: FastifyPluginAsync<OpsRoutesOptions> = async (app, { version, checks, attention, metrics }) => {
  const method = ["GET", "HEAD"];
  // If davit cannot continue, it ends itself. So a process that answers is alive.
  app.route({ method, url: "/livez", handler: (_request, reply) => reply.type(plainText).send("ok\n") });
  app.route({
    method,
    url: "/readyz",
    handler: (request, reply) => {
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
    },
  });
  app.route({
    method,
    url: "/version",
    handler: (_request, reply) => reply.type("application/json").send(Buffer.from(`${JSON.stringify({ version })}\n`)),
  });
  app.route({
    method,
    url: "/metrics",
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  });
};

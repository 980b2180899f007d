/** The boot service as `davit serve` runs it, with as many groups as it is told, its log and its metrics on. */

import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/boot-index.ts";
import { accessLog } from "../../src/http/access-log.ts";
import { bootRoutes } from "../../src/http/boot-routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { answerQuestions, cpuMicroseconds } from "./child.ts";
import { benchDocuments } from "./machines.ts";

answerQuestions(async (question) => {
  if (question.kind === "cpu") return { microseconds: cpuMicroseconds() };
  const log = createLog({ level: "info", format: "json" });
  const metrics = createMetrics("bench");
  const index = new BootIndex({ log });
  const documents = [...benchDocuments(Number(question.groups))];
  const startedAtMs = performance.now();
  index.replaced(documents);
  const loadMs = performance.now() - startedAtMs;
  index.open();
  const observe = accessLog({ log, clock: systemClock, metrics });
  const server = createServer({ log, clock: systemClock, answerError, isReadOnly: true, observe });
  const configs = new BootConfigs({
    index,
    authority: "192.0.2.1:8080",
    grub: { separator: "auto", commands: "auto" },
  });
  await server.app.register(bootRoutes, { configs });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { port, loadMs };
});

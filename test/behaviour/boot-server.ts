/** The boot listener over documents that a test gives, as `app.ts` builds it but for what no machine sees. */

import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { assetRoute } from "../../src/http/assets/assets.ts";
import { AssetDigests } from "../../src/http/assets/digests.ts";
import { bootHandler } from "../../src/http/boot/routes.ts";
import type { BootSigner } from "../../src/http/boot/signatures.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import type { KernelBoot, ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { syncedDocument } from "../boot/feed-documents.ts";
import { accessLog } from "../helpers/access-log.ts";
import { ask, statusOf, type WireAnswer } from "../http/wire.ts";

type AskOptions = Parameters<typeof ask>[2];

export interface BootServer {
  readonly port: number;
  /** Every line of the log so far. */
  readonly logLines: readonly string[];
  get(target: string, options?: AskOptions): Promise<WireAnswer>;
  /** Status and body. */
  read(target: string, options?: AskOptions): Promise<{ readonly status: number; readonly body: string }>;
  close(): Promise<void>;
}

type Document = readonly [path: string, text: string];

/** Starts a server on a port of the system's choice. */
export async function startBootServer(
  documents: readonly Document[],
  assetsRoot?: string,
  signer?: BootSigner,
): Promise<BootServer> {
  const logLines: string[] = [];
  const destination = { write: (line: string) => void logLines.push(line) };
  const log = createLog({ level: "debug", format: "json", destination });
  const metrics = createMetrics("test");
  const index = new BootIndex({ log });
  index.replaced([...documents, syncedDocument()]);
  index.open();
  const grub = { separator: "auto", commands: "auto" } as const;
  const configs = new BootConfigs({ index, authority: "192.0.2.1:8080", grub });
  const access = accessLog({ log, clock: systemClock, metrics });
  const digests = new AssetDigests({ clock: systemClock, log, metrics });
  const routes = [assetRoute({ root: assetsRoot, cacheBytes: 0, digests, clock: systemClock, log, metrics })];
  const handler = bootHandler({ configs, signer, accessLog: access, routes });
  const server = createServer({ log, clock: systemClock, answerError, handler });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  const get = (target: string, options?: AskOptions) => ask(port, target, options);
  return {
    port,
    logLines,
    get,
    read: async (target, options) => {
      const answer = await get(target, options);
      return { status: statusOf(answer), body: answer.body.toString() };
    },
    close: () => server.close(),
  };
}

export function kernelBoot(part: Partial<KernelBoot> = {}): KernelBoot & { readonly kind: "kernel" } {
  return { kind: "kernel", kernel: "/assets/vmlinuz", initrd: [], args: [], efiInitrd: false, ...part };
}

export function template(text: string, raw = false): ResolvedTemplate {
  return { kind: "text", text, raw };
}

/** Assembles the console: what its pages show, who may see them, and the files of every page. */

import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { Clients } from "../../http/client-shares.ts";
import type { ConsoleContext, Health, StoreHealth, TryManifest } from "../../http/console/pages/context.ts";
import type { ConsoleFiles, ConsoleRoutesOptions } from "../../http/console/routes.ts";
import { Fleet } from "../../http/console/state/fleet.ts";
import { ConsoleObjects, type KnownStatuses, problemOf } from "../../http/console/state/objects.ts";
import { type RequestRatesOptions, sampleRequests } from "../../http/console/state/request-rates.ts";
import { Visitors } from "../../http/console/state/visitors.ts";
import type { OpsGuard } from "../../http/guard/ops-guard.ts";
import { isForwarded } from "../../http/guard/senders.ts";
import { stagesBy } from "../../http/ops/history-routes.ts";
import type { MachineChangesOptions } from "../../http/ops/machine-changes.ts";
import type { Clock } from "../../lib/clock.ts";
import { packageRoot } from "../../lib/package-root.ts";
import { isLoopback } from "../../lib/text/address.ts";
import type { ClusterCallers } from "../../model/cluster-callers.ts";
import type { SourceView } from "../../model/objects/source.ts";
import { type TryGround, TryThread } from "./try-thread.ts";

/** What only `davit serve` knows. */
export interface ServedConsole {
  readonly statuses: KnownStatuses;
  /** Undefined while objects come from files. */
  readonly callers: () => ClusterCallers | undefined;
  /** What this davit reads of the source; undefined while another member leads. */
  readonly view: () => SourceView | undefined;
  readonly adminNamespace: () => string | undefined;
  readonly store: StoreHealth;
}

export interface ConsoleOptions
  extends Pick<ConsoleContext, "history" | "previews" | "bootFilesOf" | "followed" | "log">,
    Omit<Health, "rates" | "store"> {
  readonly index: BootIndex;
  readonly machines: Pick<MachineChangesOptions, "book" | "office" | "audit"> | undefined;
  /** Undefined in a follower. */
  readonly served: ServedConsole | undefined;
  readonly metrics: RequestRatesOptions["metrics"];
  /** How this davit renders. @throws {BootError} notReady. */
  readonly rendering: () => TryGround["rendering"];
  readonly guard: OpsGuard;
  readonly clients: Clients;
  readonly clock: Clock;
  /** Ends server-sent events. */
  readonly signal: AbortSignal;
}

/** Makes the options of `consoleRoutes`. */
export async function openConsole(options: ConsoleOptions): Promise<ConsoleRoutesOptions> {
  const { checks, attention, lines, metrics, version } = options;
  const { index, history, machines, served, guard, clients, clock, bootFilesOf, previews, log, signal } = options;
  const book = machines?.book;
  const fleet = new Fleet({
    history,
    book,
    profileOf: (group) => index.groups.get(group)?.profileId,
    problemOf: (group, profile) => served && problemOf(served.statuses, group, profile),
    stages: () => stagesBy(bootFilesOf),
    revision: () => [index.revision, book?.revision, served?.statuses.revision].join(" "),
    clock,
  });
  const context: ConsoleContext = {
    fleet,
    history,
    previews,
    bootFilesOf,
    book,
    office: machines?.office,
    statuses: served?.statuses,
    objects: new ConsoleObjects({ statuses: served?.statuses, view: () => served?.view(), index }),
    followed: options.followed,
    tryManifest: served === undefined ? () => Promise.resolve({ kind: "notReading" }) : tryingBy(served, options),
    health: {
      version,
      checks,
      attention,
      lines,
      rates: sampleRequests({ metrics, clock, signal }),
      store: served?.store,
    },
    get callers() {
      return served?.callers();
    },
    clock,
    log,
    audit: machines?.audit,
  };
  const isHttps = (request: IncomingMessage) =>
    clients.isFromProxy(request) && request.headers["x-forwarded-proto"] === "https";
  const isOwnComputer = ({ socket, headers }: IncomingMessage) =>
    isLoopback((socket.remoteAddress ?? "").replace("::ffff:", "")) && !isForwarded(headers);
  const visitors = new Visitors({
    guard,
    callers: () => context.callers,
    isPrivate: (request) => isOwnComputer(request) || isHttps(request),
    clientOf: (request) => clients.ofRequest(request),
    clock,
  });
  return { visitors, context, files: await readFiles(), isHttps, signal };
}

/** Tries manifests over what this davit reads of the source. */
function tryingBy({ view, adminNamespace }: ServedConsole, { clock, signal, rendering }: ConsoleOptions): TryManifest {
  const thread = new TryThread({ clock, signal });
  return async (manifest, rawQuery) => {
    const read = view();
    if (read === undefined) return { kind: "notReading" };
    const ground = { view: read, adminNamespace: adminNamespace(), rendering: rendering() };
    return await thread.try(ground, { manifest, rawQuery });
  };
}

async function readFiles(): Promise<ConsoleFiles> {
  const read = (name: string) => readFile(new URL(`console/${name}`, packageRoot), "utf8");
  const [style, script] = await Promise.all([read("console.css"), read("console.js")]);
  return { style, script };
}

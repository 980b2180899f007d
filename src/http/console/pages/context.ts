/** What the screens of the console show, and what they change. */

import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import type { RecentLine } from "../../../lib/logging/recent-lines.ts";
import type { ClusterCallers } from "../../../model/cluster-callers.ts";
import type { ActionAudit } from "../../../model/objects/audit.ts";
import type { FindingSeverity } from "../../../model/objects/findings.ts";
import type { History } from "../../../records/history/history.ts";
import type { Store } from "../../../store/store.ts";
import type { BootFilesOf } from "../../ops/history-routes.ts";
import type { LedgerOffice, MachineBook } from "../../ops/machine-book.ts";
import type { Preview, Previews } from "../../ops/preview.ts";
import type { ReadyCheck } from "../../ops/routes.ts";
import type { Page } from "../html/layout.ts";
import type { Fleet } from "../state/fleet.ts";
import type { ConsoleObjects, KnownStatuses } from "../state/objects.ts";
import type { RateSample } from "../state/request-rates.ts";
import type { Visitor } from "../state/visitors.ts";

export interface ConsoleContext {
  readonly fleet: Fleet;
  readonly history: Pick<History, "current" | "revision" | "sizeBytes">;
  readonly previews: Pick<Previews, "of">;
  readonly bootFilesOf: BootFilesOf;
  /** Undefined without a ledger. */
  readonly book: MachineBook | undefined;
  /** Undefined in a follower, which never writes. */
  readonly office: LedgerOffice | undefined;
  /** Undefined in a follower: the davit that it follows knows the statuses. */
  readonly statuses: KnownStatuses | undefined;
  readonly objects: ConsoleObjects;
  readonly health: Health;
  readonly tryManifest: TryManifest;
  /** Undefined in `davit serve`. */
  readonly followed: FollowedStore | undefined;
  /** Undefined without a cluster: objects are in files, which davit never writes. */
  readonly callers: ClusterCallers | undefined;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly log: Pick<Log, "info">;
  /** Undefined without an audit log. */
  readonly audit: ActionAudit | undefined;
}

/** A request for a screen. */
export interface Visit {
  readonly visitor: Visitor;
  /** The path below the screen's own, decoded: empty for most screens. */
  readonly rest: string;
  readonly query: URLSearchParams;
}

/** A screen of the console. */
export interface Screen {
  /** The path of its route. */
  readonly url: string;
  /** Makes the page. @throws {RequestError} for a page that does not exist. */
  page(visit: Visit, context: ConsoleContext): Page | Promise<Page>;
  /** Answers a form that is sent to the same path. It changes nothing. */
  readonly post?: {
    readonly maxBytes: number;
    page(form: URLSearchParams, visit: Visit, context: ConsoleContext): Promise<Page>;
  };
}

export interface Health {
  readonly version: string;
  readonly checks: readonly ReadyCheck[];
  /** As in `/readyz?verbose`. */
  readonly attention: () => readonly string[];
  /** The latest is last. */
  readonly rates: readonly RateSample[];
  readonly lines: { readonly latestFirst: readonly RecentLine[] };
  /** Undefined in a follower. */
  readonly store: StoreHealth | undefined;
}

/** A follower that is connected now, for people. */
export interface ConnectedFollower {
  readonly name: string | undefined;
  readonly address: string | undefined;
  /** Monotonic. */
  readonly sinceMs: number;
  /** How many steps it has not been sent yet; undefined while it gets everything. */
  readonly behind: number | undefined;
  /** False while it has not taken what was sent. */
  readonly isReading: boolean;
}

/** The store of `davit serve`. */
export interface StoreHealth {
  readonly store: Pick<Store, "status" | "trouble" | "bytes" | "indexes" | "membership" | "watcherCount">;
  /** Undefined without a quota. */
  readonly quotaBytes: number | undefined;
  readonly followers: () => readonly ConnectedFollower[];
}

/** The store that a follower follows. */
export interface FollowedStore {
  /** Its addresses, for people. */
  readonly place: string;
  readonly status: () => {
    readonly isConnected: boolean;
    readonly isWithheld: boolean;
    readonly index: number | undefined;
    readonly ageSeconds: number | undefined;
    readonly provenAtMs: number | undefined;
  };
}

/**
 * Tries a manifest over the present objects.
 * @param rawQuery what the machine would send; undefined for the findings alone.
 */
export type TryManifest = (manifest: string, rawQuery: string | undefined) => Promise<TryOutcome>;

/**
 * `busy`: another manifest is tried now. `late` and `lost`: it took too long or too much memory. `notReading`: this
 * davit does not read the source.
 */
export type TryOutcome = TriedManifest | { readonly kind: "busy" | "late" | "lost" | "notReading" };

export interface TriedManifest {
  readonly kind: "tried";
  readonly objects: readonly TriedObject[];
  /** As of `davit lint`, about the manifest alone. */
  readonly findings: readonly TriedFinding[];
  /** What the machine would get without the manifest. Absent without a query, or if davit would refuse the manifest. */
  readonly before?: Preview;
  /** What it would get with the manifest; absent with `before`. */
  readonly preview?: Preview;
}

interface TriedObject {
  /** `KIND/NAMESPACE/NAME`. */
  readonly key: string;
  /** True if an object of this name is there already. */
  readonly isPresent: boolean;
}

interface TriedFinding {
  readonly line: number;
  readonly column: number;
  readonly severity: FindingSeverity;
  readonly code: string;
  readonly message: string;
}

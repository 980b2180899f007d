/** What the health screen shows. davit's wiring fills it in. */

import type { RecentLine } from "../../../lib/logging/recent-lines.ts";
import type { Store } from "../../../store/store.ts";
import type { ConnectedFollower } from "../../connected-follower.ts";
import type { ReadyCheck } from "../../ops/routes.ts";
import type { RateSample } from "./request-rates.ts";

export interface Health {
  readonly version: string;
  readonly checks: readonly ReadyCheck[];
  /** As in `/readyz?verbose`. */
  readonly attention: () => readonly string[];
  readonly rates: { readonly samples: readonly RateSample[] };
  readonly lines: { readonly latestFirst: readonly RecentLine[] };
  /** Undefined in a follower. */
  readonly store: StoreHealth | undefined;
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

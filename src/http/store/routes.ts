/** The store's listener: behind one door, the key API, and the answers to other boot services and to backups. */

import { after } from "../../lib/soon.ts";
import { backupPath } from "../../model/backup-path.ts";
import { followPath } from "../../model/follow-line.ts";
import type { Store } from "../../store/store.ts";
import type { Exchange, Handled } from "../exchange.ts";
import { unauthorizedAnswer } from "../keys/reply.ts";
import type { Handler } from "../server.ts";
import type { StoreDoor } from "./door.ts";

export interface StoreHandlerOptions {
  readonly store: Store;
  readonly door: Pick<StoreDoor, "refusalOf" | "follow">;
  readonly keys: Handler<undefined>;
  /** Answers `followPath`. */
  readonly follow: (exchange: Exchange) => Handled;
  /** Answers `backupPath`. */
  readonly backup: (exchange: Exchange) => Handled;
}

/** Makes the handler of the store's listener. */
export function storeHandler({ store, door, keys, follow, backup }: StoreHandlerOptions): Handler<undefined> {
  const others = new Map([
    [followPath, follow],
    [backupPath, backup],
  ]);
  const answer = (exchange: Exchange): Handled => {
    const other = exchange.request.method === "GET" ? others.get(exchange.path) : undefined;
    const handled = other === undefined ? keys.handle(exchange, undefined) : other(exchange);
    return after(handled, (made) => {
      // What the handler sends itself may last: a watch, a stream.
      if (made === undefined) door.follow(exchange.request, exchange.response);
      return made;
    });
  };
  return {
    ...keys,
    handle: (exchange) => {
      const refused = door.refusalOf(exchange.request);
      if (refused === undefined) return answer(exchange);
      return after(refused, (refusal) => {
        // The client left while its token was checked: a watch or a stream would wait for its end for ever.
        if (exchange.response.destroyed) return undefined;
        return refusal === undefined ? answer(exchange) : unauthorizedAnswer(store, refusal);
      });
    },
  };
}

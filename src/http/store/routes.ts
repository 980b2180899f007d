/**
 * The handler of the store's listener. Behind one guard it has the key API, the streams to followers, what followers
 * ask for their machines, and backups.
 */

import { after } from "../../lib/soon.ts";
import { backupPath, followPath } from "../../model/follow-line.ts";
import { storeAssetsPrefix } from "../../model/objects/profile.ts";
import { ledgerPath } from "../../model/permits/permit-wire.ts";
import type { Store } from "../../store/store.ts";
import type { Exchange, Handled } from "../exchange.ts";
import { type StoreGuard, storeNeed } from "../guard/store-guard.ts";
import { unauthorizedAnswer } from "../keys/reply.ts";
import type { Handler } from "../server.ts";

interface StoreHandlerOptions {
  readonly store: Store;
  readonly guard: Pick<StoreGuard, "refusalOf" | "follow">;
  readonly keys: Handler<undefined>;
  /** Answers `followPath`. */
  readonly follow: (exchange: Exchange) => Handled;
  /** Answers `backupPath`. */
  readonly backup: (exchange: Exchange) => Handled;
  /** Answers paths below `storeAssetsPrefix`, as the boot listener answers those below `/assets/`. */
  readonly assets?: { readonly answer: (exchange: Exchange) => Handled } | undefined;
  /** The routes of the ledger; undefined without one. */
  readonly ledger?: LedgerAnswers | undefined;
}

export interface LedgerAnswers {
  /** Answers `ledgerPath`. */
  readonly follow: (exchange: Exchange) => Handled;
  /** Answers POST requests of followers, by their paths. */
  readonly asked: ReadonlyMap<string, (exchange: Exchange) => Handled>;
}

/** Makes the handler of the store's listener. */
export function storeHandler(options: StoreHandlerOptions): Handler<undefined> {
  const { store, guard, keys, follow, backup, assets, ledger } = options;
  const others = new Map([
    [`GET ${followPath}`, follow],
    [`GET ${backupPath}`, backup],
  ]);
  if (ledger !== undefined) others.set(`GET ${ledgerPath}`, ledger.follow);
  for (const [path, answer] of ledger?.asked ?? []) others.set(`POST ${path}`, answer);
  const assetAnswer =
    assets &&
    ((exchange: Exchange): Handled =>
      assets.answer({ ...exchange, path: `/assets/${exchange.path.slice(storeAssetsPrefix.length)}` }));
  const answer = (exchange: Exchange): Handled => {
    const { path, request } = exchange;
    const other = others.get(`${request.method} ${path}`) ?? (isAsset(exchange) ? assetAnswer : undefined);
    const handled = other === undefined ? keys.handle(exchange, undefined) : other(exchange);
    return after(handled, (made) => {
      // Undefined means that the handler sends the answer itself. Such an answer can last long, like a watch or a
      // stream.
      if (made === undefined) guard.follow(exchange.request, exchange.response);
      return made;
    });
  };
  return {
    ...keys,
    handle: (exchange) => {
      const refused = guard.refusalOf(exchange.request, storeNeed(exchange.request));
      if (refused === undefined) return answer(exchange);
      return after(refused, (refusal) => {
        // The client disconnected while its token was checked. The response emits no further `close`, so a watch or a
        // stream would stay for ever.
        if (exchange.response.destroyed) return undefined;
        return refusal === undefined ? answer(exchange) : unauthorizedAnswer(store, refusal);
      });
    },
  };
}

function isAsset({ request, path }: Exchange): boolean {
  return request.method === "GET" && path.startsWith(storeAssetsPrefix);
}

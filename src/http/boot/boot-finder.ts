/** Finds the boot to which a request of the boot listener belongs, for the log and the history. */

import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import type { BootIds, NumberedBoot } from "../../records/history/boot-ids.ts";
import type { BegunRequest } from "./access-log.ts";

export type NumberedBoots = Pick<BootIds, "named" | "unnamed" | "reported" | "ended">;

/** The answer to a request, when it has ended. */
export interface EndedAnswer {
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  /** Undefined if the request named none. */
  readonly machine: { readonly labels: Labels } | undefined;
  readonly status: number;
  readonly durationMs: number;
}

const assetRoute = "/assets/*";
/** The endpoint of reports, in metrics. */
export const reportEndpoint = "report";

/**
 * Call it when a request begins: a download may end when the machine is in another boot.
 * @returns a function that returns the boot when the answer has ended; undefined if nobody numbers boots.
 */
export function bootFinder(
  boots: NumberedBoots | undefined,
  { address, method, rawQuery, startedMs, route }: Omit<BegunRequest, "path">,
): ((ended: EndedAnswer) => NumberedBoot | undefined) | undefined {
  if (boots === undefined || address === undefined) return undefined;
  const begun = { address, isHead: method === "HEAD", startedMs };
  const unnamed = (endpoint: string) => boots.unnamed({ ...begun, endpoint });
  // A request with labels has a query. That of an asset may have a digest.
  const early = rawQuery === "" || route === assetRoute ? unnamed(route?.slice(1) ?? "") : undefined;
  return ({ endpoint, machine, status, durationMs }) => {
    const asked = { ...begun, endpoint };
    const boot = machine === undefined ? (early ?? unnamed(endpoint)) : ofMachine(boots, asked, machine);
    if (boot !== undefined) boots.ended(boot, asked, { status, endMs: startedMs + durationMs });
    return boot;
  };
}

function ofMachine(
  boots: NumberedBoots,
  asked: Parameters<NumberedBoots["named"]>[0],
  { labels }: { readonly labels: Labels },
): NumberedBoot | undefined {
  const sent = sentLabels(labels);
  return asked.endpoint === reportEndpoint ? boots.reported(asked, sent) : boots.named(asked, sent);
}

/**
 * The requests of one machine or address, in the order in which answers ended. This davit's own requests arrive in this
 * order. Those of followers come seconds late, so each is inserted at its place. Repeated refusals are one request with
 * a count, so that they do not displace others. Pure.
 */

import { endOf, firstRefusal, type KeptRequest } from "./request.ts";

/** A request that further ones may be counted into. */
export type CountedRequest = { -readonly [Member in keyof KeptRequest]: KeptRequest[Member] };

/** Adds a request. @param most beyond this many requests the oldest one is dropped, which can be the added one. */
export function insertRequest(kept: CountedRequest[], added: CountedRequest, most: number): void {
  let at = kept.length;
  for (let before = kept[at - 1]; before !== undefined && endOf(before) > endOf(added); before = kept[at - 1]) at--;
  const [before, after] = [kept[at - 1], kept[at]];
  const isWithin = after !== undefined && after.times > 1 && after.startedMs < added.startedMs;
  if (after !== undefined && isRepeated(after, added)) countAgain(after, added);
  else if (!isWithin && before !== undefined && isRepeated(before, added)) countAgain(before, added);
  else kept.splice(at, 0, ...(isWithin ? [splitOff(after, added.startedMs)] : []), added);
  while (kept.length > most) kept.shift();
}

/** True for a refusal that equals an earlier one. */
function isRepeated(kept: KeptRequest, added: KeptRequest): boolean {
  return (
    added.status >= firstRefusal &&
    kept.status === added.status &&
    kept.isHead === added.isHead &&
    kept.isCut === added.isCut &&
    kept.refusal === added.refusal &&
    kept.labels === added.labels &&
    kept.endpoint === added.endpoint &&
    kept.path === added.path &&
    kept.group === added.group &&
    kept.address === added.address
  );
}

function countAgain(kept: CountedRequest, { startedMs, durationMs, via, boot }: KeptRequest): void {
  kept.times += 1;
  kept.startedMs = Math.min(kept.startedMs, startedMs);
  if (startedMs < kept.lastStartedMs) return;
  Object.assign(kept, { lastStartedMs: startedMs, durationMs, via, boot });
}

/**
 * Splits repeated refusals, between which another request came: the last one stays. Only the times of the first and the
 * last one are known. @returns the earlier ones.
 */
function splitOff(kept: CountedRequest, timeMs: number): CountedRequest {
  const { startedMs, lastStartedMs, times } = kept;
  const earlierMs = times === 2 ? startedMs : Math.min(timeMs, lastStartedMs);
  const earlier = { ...kept, lastStartedMs: earlierMs, times: times - 1 };
  kept.startedMs = lastStartedMs;
  kept.times = 1;
  return earlier;
}

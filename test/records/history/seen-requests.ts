/** Requests for tests of the history, with what matters to a test alone. */

import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { labelsFromQuery } from "../../../src/model/labels/labels.ts";
import { History, type HistoryOptions } from "../../../src/records/history/history.ts";
import type { AnsweredRequest, SeenRequest } from "../../../src/records/history/request.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

/** When the fake clock's monotonic time was 0. */
export const beganAtMs = Date.UTC(2026, 0, 1);

export function seen(endpoint: string, given: Partial<AnsweredRequest> = {}): AnsweredRequest {
  return {
    startedMs: 0,
    durationMs: 1,
    address: "10.0.0.7",
    endpoint,
    path: undefined,
    isHead: false,
    status: 200,
    group: undefined,
    sentBytes: 100,
    ofBytes: 100,
    isCut: false,
    refusal: undefined,
    query: undefined,
    boot: 0,
    profile: undefined,
    script: undefined,
    ...given,
  };
}

/** A history, and a way to record in it by the query that a machine sends; none for what carries no labels. */
export function startHistory(
  limits: HistoryOptions["limits"] = {},
  more: Pick<HistoryOptions, "handOn" | "sighted"> = {},
) {
  const clock = new FakeClock(beganAtMs);
  const metrics = createMetrics("1");
  const history = new History({ clock, metrics, limits, ...more });
  const record = (request: AnsweredRequest, query?: string) => history.record({ ...request, query });
  return { history, clock, metrics, record };
}

export type Given = Partial<AnsweredRequest>;

/** A request that a follower answered. */
export function handed(endpoint: string, given: Given, query?: string, via = "pod-1"): SeenRequest {
  const { query: _, ...request } = seen(endpoint, given);
  return { ...request, via, labels: query === undefined ? undefined : labelsFromQuery(query) };
}

/** The queries of the chart's alerts and of its dashboard, and what they ask for. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { objectsIn } from "./helm.ts";

const read = (file: string) => readFileSync(join(chartDirectory, "files", file), "utf8");

/** The rules of the alerts. */
export const alerts: readonly JsonObject[] = objectsIn(parse(read("alerts.yaml")));

/** The dashboard as Grafana loads it. */
export const dashboard: JsonObject = parseJsonObject(read("dashboard.json")) ?? {};

/** The queries of all panels. */
export const panelQueries: readonly string[] = objectsIn(dashboard.panels).flatMap(({ targets }) =>
  objectsIn(targets).map(({ expr }) => String(expr)),
);

/** A query as Grafana sends it. */
export function filledIn(query: string): string {
  return query.replaceAll("$namespace", "netboot").replaceAll("$pod", ".+").replaceAll("$__rate_interval", "2m");
}

/** What an expression selects: metrics with the labels that are asked for, but for those that a scrape adds. */
export function selectorsIn(
  expression: string,
): readonly { readonly metric: string; readonly labels: readonly string[] }[] {
  const text = expression.replaceAll("%SELECTOR%", "");
  return [...text.matchAll(/\b([a-z]\w+)\{([^}]*)\}/g)].map(([, metric = "", matchers = ""]) => ({
    metric,
    labels: [...matchers.matchAll(/(\w+)(?:=~|!=|!~|=)"/g)]
      .map(([, label = ""]) => label)
      .filter((label) => label !== "namespace" && label !== "pod"),
  }));
}

/** The labels by which an expression of one metric groups its series, but for those that a scrape adds. */
export function groupingsIn(expression: string): ReturnType<typeof selectorsIn> {
  const [only, ...others] = new Set(selectorsIn(expression).map(({ metric }) => metric));
  if (only === undefined || others.length > 0) return [];
  const groupings = [...expression.matchAll(/\bby ?\(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(","));
  const ofScrape = new Set(["namespace", "pod", "instance", "job", ""]);
  return [{ metric: only, labels: groupings.map((label) => label.trim()).filter((label) => !ofScrape.has(label)) }];
}

export function familyOf(metric: string): string {
  return metric.replace(/_(bucket|sum|count)$/, "");
}

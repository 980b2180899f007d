/** Converts the admitted JSON of permits. Its times and durations have passed the patterns of the CRDs. */

import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import type { GroupPermits } from "../../model/objects/group.ts";
import type { InstallGrant, InstallPlan, InstallScope, LocalBoot, ReportRules } from "../../model/permits/permit.ts";

const presetTimeoutSeconds = 2 * 3_600;

/** Returns a local boot; undefined for any other value. */
export function readLocalBoot(value: JsonValue | undefined): LocalBoot | undefined {
  return value === "exit" || value === "sanboot" || value === "notFound" ? value : undefined;
}

/** Returns how a Profile installs; undefined for a Profile that asks for no permits. */
export function toInstallPlan(install: JsonValue | undefined): InstallPlan | undefined {
  if (!isJsonObject(install)) return undefined;
  const then = readLocalBoot(install.then);
  return then && { then, timeoutSeconds: secondsOf(install.timeout) ?? presetTimeoutSeconds };
}

/** Returns what machines may report; undefined for a Profile whose machines may report no labels. */
export function toReportRules(reports: JsonValue | undefined): ReportRules | undefined {
  if (!isJsonObject(reports)) return undefined;
  const labels = Object.entries(objectOf(reports.labels)).map(([name, values]) => {
    const texts = Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
    return [name, texts] as const;
  });
  const ttlSeconds = secondsOf(reports.ttl);
  return { labels: Object.fromEntries(labels), ...(ttlSeconds !== undefined && { ttlSeconds }) };
}

/** Returns the grant of a Group or Machine; undefined without one. A Machine's grant has no scope: it means `All`. */
export function toInstallGrant(install: JsonValue | undefined, presetScope: InstallScope): InstallGrant | undefined {
  if (!isJsonObject(install) || typeof install.generation !== "number") return undefined;
  const { generation, ledger, until, scope } = install;
  const untilMs = typeof until === "string" ? Date.parse(until) : Number.NaN;
  return {
    generation,
    ...(typeof ledger === "string" && { ledger }),
    ...(!Number.isNaN(untilMs) && { untilMs }),
    scope: scope === "All" || scope === "NeverInstalled" ? scope : presetScope,
  };
}

const unitSeconds: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1 };

/** Returns the seconds of a duration such as `1h30m`; undefined for a value that is no text. */
function secondsOf(duration: JsonValue | undefined): number | undefined {
  if (typeof duration !== "string") return undefined;
  const parts = [...duration.matchAll(/(\d+)([hms])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (unitSeconds[unit ?? ""] ?? 0), 0);
}

/** Returns what a Group asks and grants besides its selection. */
export function permitsOfGroup({ approval, enroll, install }: JsonObject): GroupPermits {
  const grant = toInstallGrant(install, "NeverInstalled");
  return {
    ...(approval === "Required" && { approval: "Required" }),
    ...(enroll === true && { enroll }),
    ...(grant && { install: grant }),
  };
}

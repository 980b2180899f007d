/** Alerts and dashboard: each alert fires when it should, and not else; what they ask for is what a davit shows. */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { bootRefusals } from "../../src/model/refusals.ts";
import { startDavit, startDavitBoot, storeOf } from "../../tools/davit-process.ts";
import { missing, promtoolPath } from "../helpers/requirements.ts";
import { type AlertCase, alertCases, nearQuota } from "./alert-cases.ts";
import { manifestsOf, objectsIn, rendered, within } from "./helm.ts";
import { alerts, dashboard, familyOf, filledIn, panelQueries, selectorsIn } from "./queries.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

const alertNames = alerts.map(({ alert }) => String(alert));
const queries = panelQueries;
const folder = mkdtempSync(join(tmpdir(), "davit-alerts-"));
/** What a real davit shows, and a follower of it. */
let exposed = "";
let exposedByFollower = "";

beforeAll(async () => {
  const args = ["--backup-every", "1h", "--backup-dir", join(folder, "backups")];
  const davit = await startDavit({
    manifests: join(root, "manifests/quickstart"),
    dataDir: join(folder, "data"),
    args,
  });
  await fetch(`${davit.bootUrl}/ipxe?mac=52:54:00:a1:9c:ae`);
  const follower = await startDavitBoot(storeOf(davit));
  await fetch(`${follower.bootUrl}/ipxe?mac=52:54:00:a1:9c:ae`);
  exposed = await (await fetch(`${davit.opsUrl}/metrics`)).text();
  exposedByFollower = await (await fetch(`${follower.opsUrl}/metrics`)).text();
  await follower.stop();
  await davit.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("every alert", () => {
  it("has examples of when it fires and of when it does not, and a line in docs/operate/alerts.md", () => {
    expect(Object.keys(alertCases).toSorted()).toEqual(alertNames.toSorted());
    for (const { fires, silent } of Object.values(alertCases)) {
      expect(fires.length).toBeGreaterThan(0);
      expect(silent.length).toBeGreaterThan(0);
    }
    const lines = [...read("docs/operate/alerts.md").matchAll(/^\| `(Davit\w+)` \| [^|]+ \| [^|]+ \|$/gm)];
    expect(lines.map(([, name]) => name).toSorted()).toEqual(alertNames.toSorted());
  });

  it("says how grave it is, and what it means", () => {
    for (const alert of alerts) {
      expect(alert).toMatchObject({
        alert: expect.stringMatching(/^Davit[A-Z]\w+$/),
        expr: expect.stringContaining("%SELECTOR%"),
        labels: { severity: expect.stringMatching(/^(critical|warning)$/) },
        annotations: { summary: expect.any(String), description: expect.any(String) },
      });
    }
  });

  it("asks for reasons of refusals that davit has", () => {
    const reasons = alerts.flatMap(({ expr }) =>
      [...String(expr).matchAll(/reason=~?"([\w|]+)"/g)].flatMap(([, list = ""]) => list.split("|")),
    );
    expect(reasons.length).toBeGreaterThan(10);
    expect(reasons.filter((reason) => !Object.hasOwn(bootRefusals, reason))).toEqual([]);
    for (const reason of reasons) expect(exposed).toContain(`davit_boot_refusals_total{reason="${reason}"} `);
  });
});

describe.each([
  ["alerts", alerts.map(({ expr }) => String(expr))],
  ["panels", queries],
] as const)("%s", (_, expressions) => {
  it("ask for metrics that a davit shows, by labels that these have", () => {
    const known = new Set(exposed.match(/(?<=^# TYPE )\w+/gm));
    const asked = expressions.flatMap(selectorsIn);
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter(({ metric }) => !known.has(familyOf(metric)))).toEqual([]);
    for (const { metric, labels } of asked) {
      const series = exposed.split("\n").filter((line) => line.startsWith(`${metric}{`));
      // Some have no series without a cluster or a followed store.
      for (const label of series.length === 0 ? [] : labels) expect(series[0], metric).toContain(`${label}="`);
    }
  });
});

describe("the dashboard", () => {
  it("has no two panels in one place or of one id", () => {
    const panels = objectsIn(dashboard.panels);
    for (const member of ["id", "gridPos"] as const) {
      expect(new Set(panels.map((panel) => JSON.stringify(panel[member]))).size).toBe(panels.length);
    }
  });

  it("shows every reason for which machines wait, or get nothing", () => {
    const shown = queries.flatMap((query) =>
      [...query.matchAll(/reason=~"([\w|]+)"/g)].flatMap(([, list = ""]) => list.split("|")),
    );
    expect(shown.toSorted()).toEqual(Object.keys(bootRefusals).toSorted());
  });
});

describe.skipIf(missing("helm", "promtool"))("promtool", () => {
  let groups: readonly JsonObject[] = [];
  let rules = "";
  beforeAll(async () => {
    const values = ["--set", "prometheusRule.enabled=true"];
    const rule = manifestsOf(await rendered({ way: "members", args: values })).find(
      ({ kind }) => kind === "PrometheusRule",
    );
    groups = objectsIn(rule?.spec === undefined ? [] : within(rule, "spec").groups);
    rules = file("rules.yaml", { groups });
  });

  it("takes the alerts with their texts, and the query of each panel", async () => {
    const panels = queries.map((query, at) => ({ record: `panel:${at}`, expr: filledIn(query) }));
    expect(panels.length).toBeGreaterThan(20);
    const recorded = file("panels.yaml", { groups: [{ name: "panels", rules: panels }] });
    const { stdout } = await run(promtoolPath, ["check", "rules", rules, recorded]);
    expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`);
    expect(stdout).toContain(`SUCCESS: ${panels.length} rules found`);
  });

  it.each(Object.entries(alertCases))("sees %s fire when it should, and not else", async (alert, { fires, silent }) => {
    const [first] = fires;
    const elsewhere = first === undefined || Object.keys(first.series).length === 0 ? [] : [first];
    const tests = [
      ...fires.map((each) => testOf(alert, each, true)),
      ...silent.map((each) => testOf(alert, each, false)),
      ...elsewhere.flatMap((each) => [
        testOf(alert, { ...each, name: "of another release" }, false, { namespace: "netboot", pod: "other-0" }),
        testOf(alert, { ...each, name: "of another namespace" }, false, { namespace: "other", pod: "davit-0" }),
      ]),
    ];
    // promtool evaluates every rule of its file for every test.
    const alone = groups.map((group) => ({
      ...group,
      rules: objectsIn(group.rules).filter((rule) => rule.alert === alert),
    }));
    await verdict(tests, file("alone.yaml", { groups: alone }));
  });

  it("sees each alert of a host fire, for the job davit alone", { timeout: 240_000 }, async () => {
    const own = { job: "davit", instance: "192.0.2.1:8081" };
    // A davit without the chart has a quota 16 times as large.
    const cases = { ...alertCases, DavitStoreNearQuota: nearQuota({ good: 16 * 50e6, bad: 16 * 60e6 }) };
    const tests = Object.entries(cases).flatMap(([alert, { fires }]) =>
      fires.slice(0, 1).map((each) => testOf(alert, each, true, own)),
    );
    const [near] = cases.DavitStoreNearQuota.fires;
    if (near !== undefined) tests.push(testOf("DavitStoreNearQuota", near, false, { ...own, job: "other" }));
    expect(tests).toHaveLength(alertNames.length + 1);
    await verdict(tests, join(root, "manifests/prometheus/davit.rules.yaml"));
  });

  it.each([
    ["davit serve", "davit-0", () => exposed],
    ["a follower", "davit-boot-7d9c", () => exposedByFollower],
  ])("sees nothing fire of %s that is well", async (_, pod, text) => {
    const lines = [...text().matchAll(/^(\w+(?:\{.*\})?) ([-+.\de]+)$/gm)];
    expect(lines.length).toBeGreaterThan(100);
    const series = Object.fromEntries(lines.map(([, name, value]) => [name, `${value}+0x60`]));
    const well = testOf("", { name: "well", series }, false, { namespace: "netboot", pod });
    const isAnyFiring = { expr: 'ALERTS{alertstate="firing"}', eval_time: "1h", exp_samples: [] };
    await verdict([{ ...well, promql_expr_test: [isAnyFiring] }]);
  });

  /** @throws {Error} with what promtool says, unless every test passes. */
  async function verdict(tests: readonly JsonObject[], ruleFile = rules): Promise<void> {
    const tested = file("test.yaml", { rule_files: [ruleFile], evaluation_interval: "1m", tests });
    const failed = await run(promtoolPath, ["test", "rules", tested]).then(
      () => "",
      (error: unknown) => (isJsonObject(error) ? `${error.stdout}${error.stderr}` : String(error)),
    );
    expect(failed).toBe("");
  }
});

/** Writes a file of this suite. @returns its path. */
function file(name: string, content: JsonObject): string {
  const path = join(folder, name);
  writeFileSync(path, stringify(content));
  return path;
}

/** A test of promtool: whether an alert fires after an hour of these series. */
function testOf(
  alert: string,
  { name, series }: AlertCase,
  isFiring: boolean,
  labels: Readonly<Record<string, string>> = { namespace: "netboot", pod: "davit-0" },
): JsonObject {
  const pod = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const own = (text: string) => {
    const [, metric = "", rest = ""] = /^(\w+)(?:\{(.*)\})?$/.exec(text) ?? [];
    return `${metric}{${[...pod, ...(rest === "" ? [] : [rest])].join(",")}}`;
  };
  return {
    name: `${alert}: ${name}`,
    interval: "1m",
    input_series: Object.entries(series).map(([text, values]) => ({ series: own(text), values })),
    promql_expr_test: [
      {
        expr: `group by (alertname) (ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: "1h",
        exp_samples: isFiring ? [{ labels: `{alertname="${alert}"}`, value: 1 }] : [],
      },
    ],
  };
}

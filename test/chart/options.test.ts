/** What the chart tells davit and asks of it is what davit understands: options and metrics. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { bootRefusals } from "../../src/boot/boot-error.ts";
import { readBootConfig, readServeConfig } from "../../src/config.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { isJsonObject } from "../../src/model/json.ts";
import { ConfigError } from "../../src/options.ts";
import { missing } from "../helpers/requirements.ts";
import { chartDirectory } from "./generated.ts";
import { containersOf, manifestsOf, objectsIn, podOf, rendered, ways } from "./helm.ts";

const everythingIsThere = { isDirectory: () => true, isFile: () => true };

describe.skipIf(missing("helm"))("the command lines of", () => {
  it.each(ways)("%s are understood", async (way) => {
    const lines = await commandLines(way);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(problemsOf(line)).toEqual([]);
  });

  it.each([
    ["--no-such-option=1", 'Unknown option "--no-such-option"'],
    ["--source-grace=1d", 'Bad value "1d" for --source-grace'],
  ])("a user's %s are not, if davit does not know them", async (option, told) => {
    const [line = []] = await commandLines("default", ["--set", `extraArgs={${option}}`]);
    expect(problemsOf(line).join()).toContain(told);
  });
});

/** What davit would say of a command line. */
function problemsOf([command, ...args]: readonly string[]): readonly string[] {
  try {
    (command === "serve" ? readServeConfig : readBootConfig)(args, {}, everythingIsThere);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

describe("alerts and dashboard", () => {
  it("the alerts ask for reasons of refusals that davit has, and none for held machines", () => {
    const text = readFileSync(join(chartDirectory, "files/alerts.yaml"), "utf8");
    const reasons = [...text.matchAll(/reason=~"(\w+(?:\|\w+)+)"/g)].flatMap(([, list = ""]) => list.split("|"));
    expect(reasons).not.toEqual([]);
    expect(reasons.filter((reason) => !Object.hasOwn(bootRefusals, reason))).toEqual([]);
    expect(reasons).not.toContain("held");
  });

  it.each(["alerts.yaml", "dashboard.json"])("%s ask for metrics that davit has", async (file) => {
    const text = readFileSync(join(chartDirectory, "files", file), "utf8");
    const asked = new Set(
      text.match(/\b(davit|controller_runtime|workqueue|rest_client|process|nodejs)_\w+(?=\{|\(|\))/g),
    );
    const known = new Set((await createMetrics("1").text()).match(/(?<=^# TYPE )\w+/gm));
    const histogram = /_(bucket|sum|count)$/;
    expect(asked.size).toBeGreaterThan(5);
    expect([...asked].filter((name) => !known.has(name.replace(histogram, "")))).toEqual([]);
  });

  it("name each alert, say how grave it is, and what it means", () => {
    const alerts: unknown = parse(readFileSync(join(chartDirectory, "files/alerts.yaml"), "utf8"));
    expect(objectsIn(alerts).length).toBeGreaterThan(10);
    for (const alert of objectsIn(alerts)) {
      expect(alert).toMatchObject({
        alert: expect.stringMatching(/^Davit[A-Z]\w+$/),
        expr: expect.stringContaining("%SELECTOR%"),
        labels: { severity: expect.stringMatching(/^(critical|warning)$/) },
        annotations: { summary: expect.any(String), description: expect.any(String) },
      });
    }
  });
});

/** The command line of each pod of davit's, without what davit itself is. */
async function commandLines(way: string, args: readonly string[] = []): Promise<readonly (readonly string[])[]> {
  const pods = manifestsOf(await rendered({ way, args }))
    .map(podOf)
    .filter(isJsonObject);
  const containers = pods.flatMap(containersOf).filter(({ name }) => name === "davit");
  return containers.map(({ args }) => [args].flat().map(String));
}

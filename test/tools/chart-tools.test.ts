import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { chartRecipes, chartToolNames, chartToolPath, usualChartTools } from "../../tools/build/chart-tools.ts";

describe("the place of a program that checks the chart", () => {
  it("is below the user's cache, in a directory of its own for what it is built from", () => {
    expect(chartToolPath("helm", { XDG_CACHE_HOME: "/cache" })).toMatch(
      /^\/cache\/davit-tools\/chart-[0-9a-f]{12}\/helm$/,
    );
    expect(chartToolPath("kube-score", { DAVIT_TOOLS_DIR: "/tools" })).toMatch(
      /^\/tools\/kube-score-[0-9a-f]{12}\/kube-score$/,
    );
  });

  it("is where the user has them", () => {
    expect(chartToolPath("helm3", { DAVIT_CHART_TOOLS: "/own", XDG_CACHE_HOME: "/cache" })).toBe("/own/helm3");
  });
});

describe("the Go modules", () => {
  it.each(chartToolNames)("have %s as a tool, so that `go mod tidy` keeps it", (name) => {
    const { module, package: source } = chartRecipes[name];
    const text = readFileSync(new URL(`../../tools/build/${module}/go.mod`, import.meta.url), "utf8");
    expect(text).toMatch(new RegExp(`^(tool |\t)${source.replaceAll(".", "\\.")}$`, "m"));
  });

  it("of what continuous integration builds are one, and a small one", () => {
    expect(new Set(usualChartTools.map((name) => chartRecipes[name].module))).toEqual(
      new Set(["chart", "kstatus", "linearizable", "actionlint"]),
    );
  });
});

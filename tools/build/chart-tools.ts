/**
 * The programs that check the chart, statuses, histories and workflows: what they are built from, and where they are.
 * `chart-build.ts` builds them, as build.ts does those of the API server, from Go modules of their own: they know other
 * versions of Kubernetes' libraries.
 *
 * Those in a folder that `DAVIT_CHART_TOOLS` names are taken from there instead, and never built.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment, Recipe } from "./tools.ts";

const beyondHelm = ["kubeconform", "helm-docs", "kube-score", "kstatus", "linearizable", "actionlint"] as const;
export const chartToolNames = ["helm", "helm3", "helm-unittest", ...beyondHelm] as const;

export type ChartToolName = (typeof chartToolNames)[number];

/** What continuous integration builds. The others would take six minutes more, and what they find changes rarely. */
export const usualChartTools: readonly ChartToolName[] = [
  "helm",
  "kubeconform",
  "helm-unittest",
  "kstatus",
  "linearizable",
  "actionlint",
];

export interface ChartRecipe extends Recipe {
  /** Folder of the Go module, from this one. */
  readonly module: "chart" | "kube-score" | "kstatus" | "linearizable" | "actionlint";
}

const stripped = "-s -w";

// Unstamped, Helm 3 takes every cluster that it does not see for Kubernetes 1.20, and refuses the chart.
const helm3Stamps = ["pkg/chartutil", "pkg/lint/rules"].flatMap((name) => [
  `-X helm.sh/helm/v3/${name}.k8sVersionMajor=1`,
  `-X helm.sh/helm/v3/${name}.k8sVersionMinor=35`,
]);

export const chartRecipes: Readonly<Record<ChartToolName, ChartRecipe>> = {
  helm: { module: "chart", package: "helm.sh/helm/v4/cmd/helm", linkerFlags: stripped },
  helm3: { module: "chart", package: "helm.sh/helm/v3/cmd/helm", linkerFlags: [stripped, ...helm3Stamps].join(" ") },
  kubeconform: { module: "chart", package: "github.com/yannh/kubeconform/cmd/kubeconform", linkerFlags: stripped },
  "helm-unittest": {
    module: "chart",
    package: "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
    linkerFlags: stripped,
  },
  "helm-docs": { module: "chart", package: "github.com/norwoodj/helm-docs/cmd/helm-docs", linkerFlags: stripped },
  // Written here: the library by which Helm and Flux wait, and a checker of histories, as programs.
  kstatus: { module: "kstatus", package: "davit.dev/test/kstatus", linkerFlags: stripped },
  linearizable: { module: "linearizable", package: "davit.dev/test/linearizable", linkerFlags: stripped },
  actionlint: { module: "actionlint", package: "github.com/rhysd/actionlint/cmd/actionlint", linkerFlags: stripped },
  "kube-score": { module: "kube-score", package: "github.com/zegl/kube-score/cmd/kube-score", linkerFlags: stripped },
};

/** The path of a program, whether it is there or not. */
export function chartToolPath(name: ChartToolName, environment: Environment = process.env): string {
  return join(environment.DAVIT_CHART_TOOLS || builtChartToolsDirectory(chartRecipes[name].module, environment), name);
}

/** Those of a list that are not where they should be. */
export function missingChartTools(names: readonly ChartToolName[]): readonly ChartToolName[] {
  return names.filter((name) => !existsSync(chartToolPath(name)));
}

/** Where the programs of a module are put: its name has a hash of all that goes into them. */
export function builtChartToolsDirectory(
  module: ChartRecipe["module"],
  { DAVIT_TOOLS_DIR, XDG_CACHE_HOME }: Environment,
): string {
  const root = DAVIT_TOOLS_DIR || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "davit-tools");
  const recipes = Object.values(chartRecipes).filter((recipe) => recipe.module === module);
  const hash = createHash("sha256").update(JSON.stringify(recipes));
  const files = ["go.mod", "go.sum", ...(module === "kstatus" || module === "linearizable" ? ["main.go"] : [])];
  for (const file of files) hash.update(readFileSync(join(import.meta.dirname, module, file)));
  return join(root, `${module}-${hash.digest("hex").slice(0, 12)}`);
}

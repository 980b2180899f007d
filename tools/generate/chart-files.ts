/**
 * What is made of the chart and of `crds/`, and committed: the chart's CRD templates and README, and `manifests/`. So that
 * nobody has to run anything to read or to apply them; `make check` and the suites here find those that are out of date.
 */

import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { serveOptions } from "../../src/options/table.ts";
import { type ChartToolName, chartToolPath } from "../build/chart-tools.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** Where the chart is. */
export const chartDirectory = join(root, "charts/davit");

/** A committed file and what it should be. */
export interface GeneratedFile {
  /** From the root of the repository. */
  readonly path: string;
  /** The program that makes it, if any. */
  readonly tool?: ChartToolName;
  text(): Promise<string>;
}

/** All of them. CRDs come first, as the rest has them in it. */
export function generatedFiles(): readonly GeneratedFile[] {
  const crds = readdirSync(join(root, "crds")).filter((name) => name.endsWith(".yaml"));
  return [
    ...crds.map((name) => ({
      path: `charts/davit/templates/crds/${name}`,
      text: async () => crdTemplate(readFileSync(join(root, "crds", name), "utf8")),
    })),
    { path: "manifests/prometheus/davit.rules.yaml", text: async () => hostAlerts() },
    { path: "manifests/install.yaml", tool: "helm", text: async () => `${installHead}${await plainManifests()}` },
    {
      path: "manifests/kustomize/base/davit.yaml",
      tool: "helm",
      text: async () => `${baseHead}${await plainManifests()}`,
    },
    { path: "charts/davit/README.md", tool: "helm-docs", text: chartReadme },
  ];
}

const crdHead = `{{- /* Made of crds/ by \`make chart\`: change it there. In templates/, as Helm never upgrades what is in a chart's crds/. */}}
{{- if .Values.crds.enabled }}
`;

const crdMetadata = `  labels:
    {{- include "davit.labels" (dict "root" . "component" "crds") | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
`;

/**
 * A CRD as a template: what it says of itself in braces is text, and what the values say is added to its metadata.
 * @throws {Error} when its metadata is not a name alone.
 */
export function crdTemplate(crd: string): string {
  const text = crd.replace(/^#.*\n/gm, "").replaceAll("{{", '{{ "{{" }}');
  const metadata = /^metadata:\n {2}name: \S+\n(?=spec:)/m;
  if (!metadata.test(text)) throw new Error("Reading a CRD: its metadata is not a name alone");
  return `${crdHead}${text.replace(metadata, (found) => `${found}${crdMetadata}`)}{{- end }}\n`;
}

const installHead = `# davit in the namespace davit: kubectl apply --server-side -f manifests/install.yaml
#
# NEVER kubectl delete -f THIS FILE: it deletes the CRDs, and with them every Profile and Group of the cluster. To remove
# davit, and leave the namespace, the CRDs, their objects and the store's volume:
#
#   kubectl -n davit delete statefulset,service,networkpolicy -l app.kubernetes.io/instance=davit
#   kubectl -n davit delete serviceaccount,role,rolebinding -l app.kubernetes.io/instance=davit
#   kubectl delete clusterrole -l app.kubernetes.io/instance=davit
#
# Made of charts/davit with its default values by \`make chart\`, and without followers and what they need. Set the image to
# where you have it, and add --advertise-address=HOST:PORT to the arguments; manifests/kustomize/ shows how, and the chart
# has the rest.
apiVersion: v1
kind: Namespace
metadata:
  name: davit
  labels:
    pod-security.kubernetes.io/enforce: restricted
---
`;

const baseHead =
  "# Made of charts/davit with its default values by `make chart`, and without followers and what they need.\n";

/**
 * The chart's default rendering without what is Helm's own. The store stays in its pod: its arguments would name the
 * namespace of an account that may come in, and kustomize moves objects to another one and leaves arguments as they are.
 */
async function plainManifests(): Promise<string> {
  const args = [
    "template",
    "davit",
    chartDirectory,
    "--namespace",
    "davit",
    "--skip-tests",
    "--set",
    "crds.keep=false,boot.prepared=false",
  ];
  const { stdout } = await run(chartToolPath("helm"), args, { maxBuffer: 16 * 1024 * 1024 });
  const helms = /^(# Source: .*|\s*helm\.sh\/chart: .*|\s*app\.kubernetes\.io\/managed-by: Helm|\s*)$/;
  const lines = stdout.split("\n").filter((line) => !helms.test(line));
  return `${lines.join("\n").replace(/^---\n/, "")}\n`;
}

const hostAlertsHead = `# Alerts of davit on a host (docs/operate/host.md), for the scrape job "davit". docs/operate/alerts.md says what to do about each.
# Made of charts/davit/files/alerts.yaml by \`make chart\`.
groups:
  - name: davit
    rules:
`;

/** The chart's alerts, which select pods, for a job of instances. */
function hostAlerts(): string {
  const text = readFileSync(join(chartDirectory, "files/alerts.yaml"), "utf8")
    .replace(/^#.*\n/gm, "")
    // Nobody says how many davits there should be: as many as there were within a day.
    .replaceAll("%MEMBERS%", "max(max_over_time(davit_store_members{%SELECTOR%}[1d]))")
    .replaceAll("%SELECTOR%", 'job="davit"')
    .replaceAll("%QUOTA_BYTES%", serveOptions.storeQuotaBytes.preset)
    .replaceAll("by (pod", "by (instance")
    .replaceAll("$labels.pod", "$labels.instance");
  return `${hostAlertsHead}${text.replace(/^(?=.)/gm, "      ")}`;
}

async function chartReadme(): Promise<string> {
  const args = [
    "--chart-search-root",
    join(root, "charts"),
    "--dry-run",
    "--sort-values-order",
    "file",
    "--log-level",
    "error",
  ];
  const { stdout } = await run(chartToolPath("helm-docs"), args);
  return `${stdout.trimEnd()}\n`;
}

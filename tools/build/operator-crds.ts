/**
 * CRDs of other projects that the chart renders objects for, as they are in those projects' Go modules. `make chart-tools`
 * fetches them, so that a real API server judges these objects, too.
 */

import { execFile } from "node:child_process";
import { copyFile, mkdir, rename } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { Go } from "./go.ts";
import type { Environment } from "./tools.ts";

const run = promisify(execFile);

interface Source {
  readonly module: string;
  /** As in a go.sum: what is fetched has to have it. */
  readonly sum: string;
  readonly files: readonly string[];
}

const sources: readonly Source[] = [
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
    files: ["podmonitors", "prometheusrules", "servicemonitors"].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
  },
  {
    module: "github.com/cert-manager/cert-manager@v1.21.2",
    sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    files: ["deploy/crds/cert-manager.io_certificates.yaml"],
  },
  {
    module: "sigs.k8s.io/gateway-api@v1.6.3",
    sum: "h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=",
    files: ["config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"],
  },
];

/** Where they are, if they were fetched. Its name has the versions. */
export function operatorCrdsDirectory({ DAVIT_TOOLS_DIR, XDG_CACHE_HOME }: Environment = process.env): string {
  const root = DAVIT_TOOLS_DIR || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "davit-tools");
  const versions = sources.map(({ module }) => module.replace(/^.*@/, ""));
  return join(root, `operator-crds-${versions.join("-")}`);
}

/**
 * Fetches them. The directory appears when it is whole.
 * @throws {Error} when a module is not what it was when its sum was written down.
 */
export async function fetchOperatorCrds({ command, environment }: Go): Promise<void> {
  const directory = operatorCrdsDirectory(process.env);
  const unfinished = `${directory}.unfinished`;
  await mkdir(unfinished, { recursive: true });
  for (const { module, sum, files } of sources) {
    const { stdout } = await run(command, ["mod", "download", "-json", module], { cwd: tmpdir(), env: environment });
    const [, found] = /"Sum": "(.+)"/.exec(stdout) ?? [];
    const [, unpacked] = /"Dir": "(.+)"/.exec(stdout) ?? [];
    if (found !== sum || unpacked === undefined)
      throw new Error(`Fetching ${module}: it has the sum ${found}, not ${sum}`);
    for (const file of files) await copyFile(join(unpacked, file), join(unfinished, basename(file)));
  }
  await rename(unfinished, directory);
}

/** What `make cluster` prints once all is there. */

import { type DavitPlaces, usualPorts } from "./throw-away-davit.ts";

export interface NextStepsOptions {
  readonly kubeconfig: string;
  readonly davit: DavitPlaces;
  /** A directory with a kubectl; undefined where the shell finds one by itself. */
  readonly kubectlDirectory: string | undefined;
  /** What `make boot-assets` makes is there. */
  readonly hasBootAssets: boolean;
}

/** Commands in the order in which a newcomer types them, each as it can be pasted. */
export function nextSteps({ kubeconfig, davit, kubectlDirectory, hasBootAssets }: NextStepsOptions): string {
  const { version, source, bootPort, storePort, opsPort } = davit;
  const boot = `http://127.0.0.1:${bootPort}`;
  const port = bootPort === usualPorts.boot ? "" : ` PORT=${bootPort}`;
  return [
    "",
    `davit ${version} follows ${source}`,
    "",
    `  boot service  ${boot}`,
    `  store         http://127.0.0.1:${storePort}`,
    `  operations    http://127.0.0.1:${opsPort}`,
    "",
    "In another terminal, in this directory:",
    "",
    ...(kubectlDirectory === undefined ? [] : [`  export PATH=$PATH:${kubectlDirectory}`]),
    `  export KUBECONFIG=${kubeconfig}`,
    "  kubectl apply -f manifests/quickstart/",
    `  curl '${boot}/ipxe?mac=52-54-00-a1-9c-ae'`,
    `  make ${hasBootAssets ? "" : "boot-assets "}boot${port}`,
    "",
    "Ctrl-C here ends everything and removes its data.",
    "",
    "",
  ].join("\n");
}

/**
 * The programs of a real Kubernetes API server that suites start: what they are built from, and where they are.
 *
 * `build.ts` builds them from this folder's Go module into a directory outside of the checkout, once for all checkouts
 * that want the same ones: its name has a hash of all that goes into them. Programs named by the variables that envtest
 * knows (`TEST_ASSET_KUBE_APISERVER`, then `KUBEBUILDER_ASSETS`) are taken from there instead, and never built.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The module of k8s.io/kubernetes in go.mod has the same. */
export const kubernetesVersion = "v1.35.8";

export const toolNames = ["etcd", "kube-apiserver", "kubectl"] as const;

export type ToolName = (typeof toolNames)[number];

/** What `go build` needs to know of a program. */
export interface Recipe {
  readonly package: string;
  readonly linkerFlags: string;
}

const stripped = "-s -w";

// Unstamped, they call themselves v0.0.0, and kubectl complains of the skew. The date is one that never changes.
const [major = "", minor = ""] = kubernetesVersion.slice(1).split(".");
const stamps = Object.entries({
  gitVersion: kubernetesVersion,
  gitMajor: major,
  gitMinor: minor,
  gitTreeState: "clean",
  gitCommit: "local",
  buildDate: "1970-01-01T00:00:00Z",
});
const stamped = [stripped, ...stamps.map(([name, text]) => `-X k8s.io/component-base/version.${name}=${text}`)].join(
  " ",
);

/**
 * etcd is of the version that this API server's own client library has, from the same module. Debian's etcd 3.4 works
 * too, but the API server finds fewer features in it, and then lists and watches differently from any real cluster.
 */
export const recipes: Readonly<Record<ToolName, Recipe>> = {
  etcd: { package: "go.etcd.io/etcd/server/v3", linkerFlags: stripped },
  "kube-apiserver": { package: "k8s.io/kubernetes/cmd/kube-apiserver", linkerFlags: stamped },
  kubectl: { package: "k8s.io/kubernetes/cmd/kubectl", linkerFlags: stamped },
};

/** Environment variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The path of a program, whether it is there or not. */
export function toolPath(name: ToolName, environment: Environment = process.env): string {
  return givenPath(name, environment) ?? join(builtToolsDirectory(environment), name);
}

/** Those that are not where they should be. */
export function missingTools(): readonly ToolName[] {
  return toolNames.filter((name) => !existsSync(toolPath(name)));
}

/** The path that the environment names for a program; undefined when it is ours to build. */
export function givenPath(name: ToolName, environment: Environment): string | undefined {
  const assets = environment.KUBEBUILDER_ASSETS;
  const own = environment[`TEST_ASSET_${name.toUpperCase().replaceAll("-", "_")}`];
  return own || (assets ? join(assets, name) : undefined);
}

/** Where `build.ts` puts them: below `DAVIT_TOOLS_DIR`, or else in the user's cache. */
export function builtToolsDirectory({ DAVIT_TOOLS_DIR, XDG_CACHE_HOME }: Environment): string {
  const root = DAVIT_TOOLS_DIR || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "davit-tools");
  return join(root, `${kubernetesVersion}-${inputsHash()}`);
}

/** Changes whenever different programs would come out. */
function inputsHash(): string {
  const hash = createHash("sha256").update(JSON.stringify(recipes));
  for (const file of ["go.mod", "go.sum"]) hash.update(readFileSync(join(import.meta.dirname, file)));
  return hash.digest("hex").slice(0, 12);
}

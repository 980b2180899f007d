import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isAtLeast } from "../../tools/build/go.ts";
import { builtToolsDirectory, kubernetesVersion, recipes, toolNames, toolPath } from "../../tools/build/tools.ts";

const goMod = readFileSync(new URL("../../tools/build/go.mod", import.meta.url), "utf8");

describe("the place of a program", () => {
  it("is below the user's cache, in a directory of its own for what it is built from", () => {
    const place = toolPath("kube-apiserver", { XDG_CACHE_HOME: "/cache" });
    expect(place).toMatch(/^\/cache\/davit-tools\/v1\.35\.8-[0-9a-f]{12}\/kube-apiserver$/);
    expect(toolPath("kubectl", { DAVIT_TOOLS_DIR: "/tools", XDG_CACHE_HOME: "/cache" })).toMatch(
      /^\/tools\/v1\.35\.8-[0-9a-f]{12}\/kubectl$/,
    );
  });

  it("is where the variables of envtest say, the one of the program before the one for all", () => {
    const environment = { KUBEBUILDER_ASSETS: "/assets", TEST_ASSET_KUBE_APISERVER: "/own/server" };
    expect(toolNames.map((name) => toolPath(name, environment))).toEqual([
      "/assets/etcd",
      "/own/server",
      "/assets/kubectl",
    ]);
    expect(toolPath("etcd", { TEST_ASSET_ETCD: "", KUBEBUILDER_ASSETS: "", DAVIT_TOOLS_DIR: "/tools" })).toBe(
      `${builtToolsDirectory({ DAVIT_TOOLS_DIR: "/tools" })}/etcd`,
    );
  });
});

describe("go.mod", () => {
  it("has every program as a tool, so that `go mod tidy` keeps them", () => {
    const [, tools = ""] = /^tool \(\n([^)]*)\)/m.exec(goMod) ?? [];
    expect(tools.trim().split(/\s+/)).toEqual(toolNames.map((name) => recipes[name].package));
  });

  it("has Kubernetes and all of its parts in one version, the one that the programs are stamped with", () => {
    expect(goMod).toMatch(new RegExp(`^\\s*k8s\\.io/kubernetes ${kubernetesVersion.replaceAll(".", "\\.")}\\b`, "m"));
    const parts = [...goMod.matchAll(/^\t(k8s\.io\/\S+) => (\S+) (\S+)$/gm)].map(([, from, to, version]) => {
      expect(to).toBe(from);
      return version;
    });
    expect(parts).toHaveLength(31);
    expect(new Set(parts)).toEqual(new Set([kubernetesVersion.replace("v1.", "v0.")]));
  });
});

it.each([
  { version: "go1.26.8", least: "1.25.0", isIt: true },
  { version: "go1.25", least: "1.25.0", isIt: true },
  { version: "go2.0", least: "1.25.0", isIt: true },
  { version: "go1.24.9", least: "1.25.0", isIt: false },
  { version: "go1.19.8", least: "1.25.0", isIt: false },
  { version: "devel", least: "1.25.0", isIt: false },
])("$version can build what needs $least: $isIt", ({ version, least, isIt }) => {
  expect(isAtLeast(version, least)).toBe(isIt);
});

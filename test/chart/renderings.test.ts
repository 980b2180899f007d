/** What holds of every rendering, whatever the values: of `helm lint`, of both Helms, and of the objects. */

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { missing } from "../helpers/requirements.ts";
import {
  containersOf,
  type Manifest,
  manifestsOf,
  objectsIn,
  podOf,
  rendered,
  runTool,
  valuesOf,
  ways,
  within,
} from "./helm.ts";

describe.each(["helm", "helm3"] as const)("%s", (helm) => {
  describe.skipIf(missing(helm))("takes", () => {
    it.each(ways)("%s, and finds nothing to mend in it", async (way) => {
      const { code, stdout, stderr } = await runTool(helm, ["lint", "--strict", chartDirectory, "-f", valuesOf(way)]);
      expect(`${stdout}${stderr}`).toContain("0 chart(s) failed");
      expect(`${stdout}${stderr}`).not.toMatch(/WARNING|ERROR/);
      expect(code).toBe(0);
    });
  });
});

describe.skipIf(missing("helm", "helm3"))("both Helms", () => {
  it.each(ways)("render the same objects of %s", async (way) => {
    const of = async (helm: "helm" | "helm3") => byName(manifestsOf(await rendered({ way, helm })));
    expect(await of("helm3")).toEqual(await of("helm"));
  });
});

describe.skipIf(missing("helm"))("every rendering", () => {
  describe.each(ways)("of %s", (way) => {
    it("is the same each time, and has nothing secret in it", async () => {
      const text = await rendered({ way });
      expect(await rendered({ way })).toBe(text);
      expect(manifestsOf(text).map(({ kind }) => kind)).not.toContain("Secret");
    });

    it("has no two objects of one name, and none that is too long", async () => {
      const manifests = manifestsOf(await rendered({ way, args: ["--set", "fullnameOverride="] }));
      expect(new Set(manifests.map(nameOf)).size).toBe(manifests.length);
      const labels = manifests.flatMap(({ metadata }) => Object.values(within(metadata, "labels")));
      expect(labels.filter((label) => typeof label !== "string" || label.length > 63)).toEqual([]);
    });

    it("has selectors that find pods", async () => {
      const manifests = manifestsOf(await rendered({ way }));
      const pods = podsOf(manifests).map((pod) => within(pod, "metadata", "labels"));
      const lost = manifests.filter((manifest) => {
        const selector = podSelectorOf(manifest);
        return selector !== undefined && !pods.some((labels) => isSelected(labels, selector));
      });
      expect(lost.map(nameOf)).toEqual([]);
    });

    it("gives every container of davit's the same narrow rights, and bounds of its own", async () => {
      const pods = podsOf(manifestsOf(await rendered({ way })));
      const containers = pods.flatMap(containersOf).filter(({ image }) => /(^|\/)davit[:@]/.test(String(image)));
      expect(containers.length).toBeGreaterThan(1);
      for (const { securityContext, resources, volumeMounts } of containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(resources).toMatchObject({
          requests: { cpu: expect.anything() },
          limits: { memory: expect.anything() },
        });
        const paths = objectsIn(volumeMounts).map(({ mountPath }) => mountPath);
        expect(new Set(paths).size).toBe(paths.length);
      }
    });

    it("mounts volumes that are there, and the objects of the chart that they are of", async () => {
      const manifests = manifestsOf(await rendered({ way }));
      const names = manifests.map(nameOf);
      for (const manifest of manifests) {
        const pod = podOf(manifest);
        if (pod === undefined) continue;
        const volumes = objectsIn(within(pod, "spec").volumes);
        const claims = objectsIn(within(manifest, "spec").volumeClaimTemplates).map(({ metadata }) => metadata);
        const known = [...volumes, ...objectsIn(claims)].map(({ name }) => String(name));
        const mounts = containersOf(pod).flatMap(({ volumeMounts }) => objectsIn(volumeMounts));
        expect(known).toEqual(expect.arrayContaining([...new Set(mounts.map(({ name }) => String(name)))]));
        const ours = volumes
          .map((volume) => within(volume, "configMap").name)
          .filter((name) => /^(davit|netboot)-/.test(String(name)));
        expect(names).toEqual(expect.arrayContaining(ours.map((name) => `ConfigMap netboot/${name}`)));
      }
    });

    it("gives davit no right to delete, to everything, to CRDs, or to Secrets without a name", async () => {
      const roles = manifestsOf(await rendered({ way })).filter(({ kind, metadata }) => {
        return /Role$/.test(kind) && within(metadata, "labels")["app.kubernetes.io/component"] !== "users";
      });
      for (const rule of roles.flatMap(({ rules }) => objectsIn(rules))) {
        expect(JSON.stringify(rule)).not.toMatch(/\*|delete|customresourcedefinitions|finalizers|impersonate|escalate/);
        if (JSON.stringify(rule.resources).includes("secrets")) expect(Array.isArray(rule.resourceNames)).toBe(true);
      }
    });
  });
});

describe.skipIf(missing("helm"))("followers", () => {
  it.each(["boot.replicas=1", "boot.replicas=3,boot.alone=true", "boot.autoscaling.enabled=true"])(
    "come by %s without any change of the pod that answers meanwhile",
    async (set) => {
      const statefulSet = async (args: readonly string[]) =>
        manifestsOf(await rendered({ args })).find(({ kind }) => kind === "StatefulSet");
      const before = await statefulSet([]);
      expect(before).toBeDefined();
      expect(await statefulSet(["--set", set])).toEqual(before);
    },
  );
});

function nameOf({ kind, metadata }: Manifest): string {
  return `${kind} ${metadata.namespace === undefined ? "" : `${metadata.namespace}/`}${metadata.name}`;
}

function podsOf(manifests: readonly Manifest[]): readonly JsonObject[] {
  return manifests.map(podOf).filter((pod) => pod !== undefined);
}

function byName(manifests: readonly Manifest[]): Readonly<Record<string, Manifest>> {
  return Object.fromEntries(manifests.map((manifest) => [nameOf(manifest), manifest]));
}

/** The labels by which an object finds pods; undefined for one that does not. */
function podSelectorOf(manifest: Manifest): JsonObject | undefined {
  const spec = within(manifest, "spec");
  switch (manifest.kind) {
    case "Service":
      return within(spec, "selector");
    case "NetworkPolicy":
      return within(spec, "podSelector", "matchLabels");
    case "PodMonitor":
    case "PodDisruptionBudget":
    case "StatefulSet":
    case "Deployment":
    case "DaemonSet":
      return within(spec, "selector", "matchLabels");
    default:
      return undefined;
  }
}

function isSelected(labels: JsonObject, selector: JsonObject): boolean {
  const wanted = Object.entries(selector);
  return wanted.length > 0 && wanted.every(([name, value]) => labels[name] === value);
}

/** What an import makes is what an API server takes. */

import { beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { site, siteUrl } from "./site.ts";
import { imported } from "./trees.ts";

describe.skipIf(missing("kube-apiserver", "kubectl"))("an API server", () => {
  let cluster: ClusterAccess;

  beforeAll(async () => {
    cluster = await sharedCluster("imported");
    return () => cluster.stop();
  }, 120_000);

  it("takes every object", async () => {
    const { files } = imported(site, siteUrl);
    const input = Object.values(files).join("---\n");
    const { code, stdout, stderr } = await cluster.kubectl(["apply", "--dry-run=server", "-f", "-"], { input });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trim().split("\n")).toHaveLength(Object.keys(files).length);
  });
});

/** Machines in a real API server: what kubectl shows of them, and that it takes each field of their status. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { machinePhases } from "../../src/model/objects/machine.ts";
import type { MachineStatus } from "../../src/model/objects/source.ts";
import { nextStatus } from "../../src/sources/kubernetes/status/next-status.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";

const text = `apiVersion: davit.dev/v1alpha1
kind: Machine
metadata: {name: node-1}
spec:
  identity: {uuid: "4c4c4544-0042-3510-8052-b4c04f4e4a32", macs: ["52:54:00:a1:9c:ae", "52:54:00:a1:9c:af"]}
  install: {generation: 2, ledger: "9f3c0a52", until: 2026-12-01T18:00:00Z}
`;
const at = "2026-11-25T18:00:00Z";
const machine: MachineStatus = {
  phase: "Installing",
  lastSeen: at,
  address: "192.0.2.7",
  group: "crds-machines/workers",
  profile: "crds-machines/install",
  rendered: "a".repeat(64),
  boot: { at, stage: "ipxe", result: "200" },
  install: { generation: 2, state: "Installing", claimedAt: at },
  reported: { state: "progress", progress: 40, message: "x".repeat(256) },
};
const condition = { type: "Approved", status: "True", reason: "Approved", message: "It is approved" } as const;

describe.skipIf(missing("kube-apiserver", "kubectl"))("a Machine", () => {
  let cluster: ClusterAccess;
  beforeAll(async () => {
    cluster = await sharedCluster("crds-machines");
    await cluster.apply(text);
  }, 180_000);
  afterAll(() => cluster?.stop());

  /** As davit writes it. */
  async function writeStatus(status: MachineStatus): Promise<number> {
    const next = nextStatus({ observedGeneration: 1, conditions: [condition], machine: status }, {}, at);
    const { status: code } = await cluster.ask({
      method: "PATCH",
      path: "/apis/davit.dev/v1alpha1/namespaces/crds-machines/machines/node-1/status?fieldManager=davit&force=true",
      body: {
        apiVersion: "davit.dev/v1alpha1",
        kind: "Machine",
        metadata: { name: "node-1" },
        status: JSON.parse(JSON.stringify(next)),
      },
      contentType: "application/apply-patch+yaml",
    });
    return code;
  }

  async function shown(...words: readonly string[]): Promise<readonly (readonly string[])[]> {
    const { stdout } = await cluster.kubectl(["get", "dmach", ...words]);
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/\s{2,}/));
  }

  it("has a status with every field that davit writes", async () => {
    expect(await writeStatus(machine)).toBe(200);
    for (const phase of machinePhases) expect(await writeStatus({ phase })).toBe(200);
  });

  it("is shown in one line, and with its uuid and address with -o wide", async () => {
    await writeStatus(machine);
    const [head, line] = await shown();
    expect(head).toEqual(["NAME", "MAC", "GROUP", "PROFILE", "PHASE", "INSTALL", "SEEN"]);
    const common = [
      "node-1",
      "52:54:00:a1:9c:ae",
      "crds-machines/workers",
      "crds-machines/install",
      "Installing",
      "Installing",
    ];
    expect(line?.slice(0, 6)).toEqual(common);
    const [wideHead, wide] = await shown("-o", "wide");
    expect(wideHead?.slice(-3)).toEqual(["UUID", "ADDRESS", "RENDERED"]);
    expect(wide?.slice(-3)).toEqual(["4c4c4544-0042-3510-8052-b4c04f4e4a32", "192.0.2.7", machine.rendered]);
  });

  it("keeps an unquoted time as text", async () => {
    const { body } = await cluster.ask({ path: "/apis/davit.dev/v1alpha1/namespaces/crds-machines/machines/node-1" });
    expect(body.spec).toMatchObject({ install: { until: "2026-12-01T18:00:00Z" } });
  });

  it("has a spec that only a person changes: a status writes nothing else", async () => {
    const { body } = await cluster.ask({
      method: "PATCH",
      path: "/apis/davit.dev/v1alpha1/namespaces/crds-machines/machines/node-1/status",
      body: { spec: { approved: true }, status: { phase: "Waiting" } },
      contentType: "application/merge-patch+json",
    });
    expect(body.spec).not.toHaveProperty("approved");
    expect(body.status).toMatchObject({ phase: "Waiting" });
  });
});

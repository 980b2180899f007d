/**
 * A cluster whose CRDs are older than davit drops what they do not know. No machine gets a boot that its objects close:
 * by `hold`, `approval`, `effect` or `install`.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { applyOlderCrd } from "../crds/older-crd.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside } from "./beside.ts";
import { Poll } from "./poll.ts";

const patience = { timeout: 60_000, interval: 50 };
const writers = ["client-side", "server-side", "created"] as const;
/** Applies its objects while the older CRDs are installed. */
const late = "late";
type Writer = (typeof writers)[number] | typeof late;

const kernel = { boot: { kernel: "/assets/kernel" } };
const macOf = (writer: Writer, machine: number) => `52:54:00:00:0${[late, ...writers].indexOf(writer)}:0${machine}`;

/** Four machines, each closed by another field. */
function closedBy(writer: Writer): readonly JsonObject[] {
  const named = (kind: string, name: string, spec: JsonObject) => ({
    apiVersion: "davit.dev/v1alpha1",
    kind,
    metadata: { name: `${name}-${writer}` },
    spec,
  });
  const group = (name: string, machine: number, spec: JsonObject = {}, profile = "work") =>
    named("Group", name, {
      profileRef: { name: `${profile}-${writer}` },
      selector: { matchLabels: { mac: macOf(writer, machine) } },
      ...spec,
    });
  return [
    named("Profile", "work", kernel),
    named("Profile", "installer", { ...kernel, effect: "Install", install: { [`th${"en"}`]: "sanboot" } }),
    named("Machine", "held", { identity: { macs: [macOf(writer, 4)] }, hold: true }),
    group("held", 1, { hold: true }),
    group("asking", 2, { approval: "Required" }),
    group("installing", 3, {}, "installer"),
    group("free", 4),
  ];
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("CRDs that are older than davit", { timeout: 240_000 }, () => {
  let cluster: Cluster;
  let racks: Beside;
  beforeAll(async () => {
    cluster = await startCluster();
    racks = await Beside.make(cluster, "racks");
    for (const writer of writers) await write(writer);
    await racks.start();
  }, 240_000);
  afterAll(async () => {
    await racks?.stop();
    await cluster?.stop();
  });

  async function write(writer: Writer): Promise<void> {
    const input = closedBy(writer)
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const verb = writer === "created" ? "create" : "apply";
    const flags = writer === "server-side" ? ["--server-side"] : [];
    const where = ["--namespace", "racks", "--validate=false", "-f", "-"];
    const { code, stderr } = await cluster.kubectl([verb, ...flags, ...where], { input });
    expect(stderr).not.toContain("rror");
    expect(code).toBe(0);
  }

  const boots = async (writer: Writer, machine: number) =>
    `${machine}: ${(await racks.get(`/ipxe?mac=${macOf(writer, machine)}`)).status}`;
  const bootsOf = (writer: Writer) => Promise.all([1, 2, 3, 4].map((machine) => boots(writer, machine)));
  const waiting = ["1: 503", "2: 503", "3: 503", "4: 503"];
  const older = async () => {
    await applyOlderCrd(cluster, "profiles", ["effect", "install", "reports"]);
    await applyOlderCrd(cluster, "groups", ["approval", "args", "enroll", "hold", "install"]);
    await applyOlderCrd(cluster, "machines", ["approved", "hold", "install"]);
  };
  const namesTheCure = async (writer: Writer) => {
    for (const name of closedNames(writer)) {
      await expect.poll(() => racks.message(name), patience).toContain("apply the CRDs of this version of davit");
    }
  };
  const isShown = async (name: string) => {
    const { spec = null } = await racks.object({ kind: "Group", name });
    return JSON.stringify(spec).includes("hold");
  };

  it("hide fields of objects that davit has read, and the machines wait all through", async () => {
    for (const writer of writers) await expect.poll(() => bootsOf(writer), patience).toEqual(waiting);
    const polls = writers.map((writer) => Poll.of(async () => (await bootsOf(writer)).join()));
    await older();
    for (const writer of writers) await expect.poll(() => isShown(`held-${writer}`), patience).toBe(false);
    await racks.touch(...writers.flatMap((writer) => closedNames(writer)));
    try {
      for (const writer of writers) await namesTheCure(writer);
    } finally {
      await Promise.all(polls.map((poll) => poll.stop()));
    }
    for (const poll of polls) expect(poll.answers()).toEqual(new Set([waiting.join()]));
  });

  it("hide them from a davit that has never read them", async () => {
    await racks.end();
    await racks.start([], { dataDir: `${racks.dataDir}/anew` });
    for (const writer of writers) await expect.poll(() => bootsOf(writer), patience).toEqual(waiting);
    for (const writer of writers) await namesTheCure(writer);
  });

  it("hide them from a davit that runs while kubectl applies them", async () => {
    const answers = Poll.of(async () => (await Promise.all([1, 2, 3].map((machine) => boots(late, machine)))).join());
    await write(late);
    try {
      await namesTheCure(late);
    } finally {
      await answers.stop();
    }
    expect([...answers.answers()].join()).not.toContain("200");
    await expect.poll(() => bootsOf(late), patience).toEqual(waiting);
  });
});

function closedNames(writer: Writer) {
  return [
    { kind: "Profile", name: `installer-${writer}` },
    { kind: "Group", name: `held-${writer}` },
    { kind: "Group", name: `asking-${writer}` },
  ] as const;
}

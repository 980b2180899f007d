import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCluster } from "../src/app/objects/cluster-objects.ts";
import { createMetrics } from "../src/lib/metrics/metrics.ts";
import { readServeConfig } from "../src/options/serve.ts";
import { TestBed } from "./sources/kubernetes/client-under-test.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-cluster-objects-"));
  const user = { name: "u", user: {} };
  // Nothing is asked of it before the source is started.
  const cluster = { name: "c", cluster: { server: "http://127.0.0.1:1", "insecure-skip-tls-verify": true } };
  const context = { name: "x", context: { cluster: "c", user: "u", namespace: "own" } };
  const kubeconfig = { clusters: [cluster], users: [user], contexts: [context], "current-context": "x" };
  await writeFile(join(folder, "kubeconfig"), JSON.stringify(kubeconfig));
});

afterAll(() => rm(folder, { recursive: true }));

/** What is said of the admin namespace, in the log and to whoever asks. */
async function said(...args: readonly string[]) {
  const bed = new TestBed("http://127.0.0.1:1");
  const words = ["--kubernetes", "--kubeconfig", join(folder, "kubeconfig"), ...args];
  const config = readServeConfig(words, {}, { isDirectory: () => true, isFile: () => true });
  const parts = { ...bed, metrics: createMetrics("1.0.0"), environment: {}, version: "1.0.0", instance: "davit-0" };
  const objects = await openCluster({ ...parts, config });
  const lines = objects.attention().filter((line) => line.includes("admin namespace"));
  await objects.stop();
  await bed.client.stop();
  return { lines, told: bed.told("the admin namespace is not followed") };
}

describe("an admin namespace", () => {
  it.each([
    { name: "that is given", args: ["--namespace", "a", "--admin-namespace", "q"], admin: "q" },
    { name: "that is the own one by default", args: ["--namespace", "a", "--namespace", "b"], admin: "own" },
  ])("$name and is not followed is told at the start, and to whoever asks", async ({ args, admin }) => {
    const { lines, told } = await said(...args);
    const text = `the admin namespace "${admin}" is not followed, so that no Group has a priority or matchAll: mend`;
    expect(lines).toEqual([expect.stringContaining(`cluster: ${text}`)]);
    expect(told).toEqual([expect.objectContaining({ adminNamespace: admin, problem: expect.stringContaining(text) })]);
  });

  it.each([
    ["--namespace", "a", "--namespace", "q", "--admin-namespace", "q"],
    ["--all-namespaces", "--admin-namespace", "q"],
    ["--namespace", "a"],
    [],
  ])("is not told of with %s %s %s %s", async (...args) => {
    expect(await said(...args)).toEqual({ lines: [], told: [] });
  });
});

/** What the chart tells davit is what davit understands. */

import { describe, expect, it } from "vitest";
import { type JobKind, neededBytes, youngMebibytes } from "../../src/lib/memory-limit.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { ConfigError } from "../../src/options/parsing.ts";
import { readBootConfig, readServeConfig } from "../../src/options/serve.ts";
import { missing } from "../helpers/requirements.ts";
import { containersOf, manifestsOf, podOf, rendered, ways } from "./helm.ts";

const mebibyte = 2 ** 20;
const jobsOfFollower: readonly JobKind[] = ["render", "digest"];
const jobsOfServe: readonly JobKind[] = [...jobsOfFollower, "trial", "attempt"];
const everythingIsThere = { isDirectory: () => true, isFile: () => true };

describe.skipIf(missing("helm"))("the command lines of", () => {
  it.each(ways)("%s are understood", async (way) => {
    const lines = await commandLines(way);
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(problemsOf(line)).toEqual([]);
  });

  it.each([
    ["--no-such-option=1", 'Unknown option "--no-such-option"'],
    ["--limit=source-grace=1d", "for --limit: source-grace must be a whole number"],
  ])("a user's %s are not, if davit does not know them", async (option, told) => {
    const [line = []] = await commandLines("default", ["--set", `extraArgs={${option}}`]);
    expect(problemsOf(line).join()).toContain(told);
  });
});

describe.skipIf(missing("helm"))("bootThreads", () => {
  it.each(["2", "auto"])("%s is for davit serve and its followers", async (count) => {
    const lines = await commandLines("default", [
      "--set",
      `bootThreads=${count},boot.replicas=1,resources.limits.memory=2369Mi`,
    ]);
    expect(lines.length).toBe(2);
    for (const line of lines) expect(line).toContain(`--boot-threads=${count}`);
    for (const line of lines) expect(problemsOf(line)).toEqual([]);
  });

  it.each([
    { threads: 1, serve: 1_702, follower: 847 },
    { threads: 2, serve: 2_369, follower: 1076 },
    { threads: 3, serve: 3_036, follower: 1_305 },
  ])(
    "of $threads fit with full heaps and a full cache, as davit itself counts them",
    async ({ threads, serve, follower }) => {
      const limits = `resources.limits.memory=${serve}Mi,boot.resources.limits.memory=${follower}Mi`;
      const pods = await containers("default", ["--set", `bootThreads=${threads},boot.replicas=1,${limits}`]);
      const found = pods.map(({ env, args, resources }) => ({
        heapMiB: numberAfter("--max-old-space-size=", env),
        cacheBytes: numberAfter("--limit=assets-cache-bytes=", args),
        limitMiB: numberAfter('"limits":{"memory":"', resources),
      }));
      expect(found.map(({ limitMiB }) => limitMiB).toSorted((one, other) => one - other)).toEqual([follower, serve]);
      for (const { heapMiB, cacheBytes, limitMiB } of found) {
        const use = { cacheBytes, bootThreads: threads, jobs: limitMiB === serve ? jobsOfServe : jobsOfFollower };
        const needed = neededBytes((heapMiB + youngMebibytes) * mebibyte, use);
        expect(needed).toBeLessThanOrEqual(limitMiB * mebibyte);
      }
    },
  );

  it("1 is davit's own default", async () => {
    const [line = []] = await commandLines("default");
    expect(line.join()).not.toContain("--boot-threads");
  });

  it.each(["0", "65", "many"])("%s is refused", async (count) => {
    await expect(commandLines("default", ["--set", `bootThreads=${count}`])).rejects.toThrow("bootThreads");
  });
});

/** What davit would say of a command line. */
function problemsOf([command, ...args]: readonly string[]): readonly string[] {
  try {
    (command === "serve" ? readServeConfig : readBootConfig)(args, {}, everythingIsThere);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

/** The command line of each pod of davit's, without what davit itself is. */
async function commandLines(way: string, args: readonly string[] = []): Promise<readonly (readonly string[])[]> {
  return (await containers(way, args)).map(({ args }) => [args].flat().map(String));
}

/** davit's own container of each pod. */
async function containers(way: string, args: readonly string[]): Promise<readonly JsonObject[]> {
  const pods = manifestsOf(await rendered({ way, args }))
    .map(podOf)
    .filter(isJsonObject);
  return pods.flatMap(containersOf).filter(({ name }) => name === "davit");
}

/** The number that comes after these words in the JSON. */
function numberAfter(words: string, value: unknown): number {
  const [, after = ""] = JSON.stringify(value).split(words);
  return Number.parseInt(after, 10);
}

/** kube-score finds nothing in what is rendered but what charts/davit/ci/kube-score-exceptions.yaml explains. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { missing } from "../helpers/requirements.ts";
import { objectsIn, rendered, runTool } from "./helm.ts";

const exceptions = objectsIn(parse(readFileSync(join(chartDirectory, "ci/kube-score-exceptions.yaml"), "utf8")));

// Of kube-score: 1 is critical, 5 a warning, 7 almost well, 10 well.
const well = 10;

describe.skipIf(missing("helm", "kube-score"))("kube-score", () => {
  it("finds what is explained, and nothing else", async () => {
    const found = new Set<string>();
    for (const way of ["default", "followers", "network-policy", "signing", "assets-download"]) {
      for (const finding of await findings(await rendered({ way, args: ["--skip-tests"] }))) found.add(finding);
    }
    const explained = exceptions.map(({ check, finding, why }) => (why === undefined ? "" : `${check}: ${finding}`));
    expect([...found].toSorted()).toEqual(explained.toSorted());
  }, 60_000);
});

/** Each finding as `check: what it says`. */
async function findings(yaml: string): Promise<readonly string[]> {
  const { stdout } = await runTool("kube-score", ["score", "--output-format", "json", "-"], yaml);
  return objectsIn(JSON.parse(stdout)).flatMap(({ checks }) =>
    objectsIn(checks).flatMap(({ check, grade, skipped, comments }) => {
      if (skipped === true || Number(grade) >= well) return [];
      const [{ id = "" } = {}] = [check].flat().flatMap((one) => objectsIn([one]));
      return objectsIn(comments).map(({ summary }) => `${id}: ${summary}`);
    }),
  );
}

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take most of a minute or more, the longest first. One that starts last keeps the other worker idle. */
const longest = [
  "integration/serve",
  "chaos/chaos",
  "cluster/api-server-away",
  "chaos/members",
  "cluster/leaders",
  "firmware/offered-texts",
  "cluster/lost-namespace",
  "conformance/fuzz",
  "cluster/mass-removal",
  "firmware/says",
  "firmware/lan",
  "integration/half-written",
  "integration/refused-versions",
  "integration/boot",
  "firmware/signed-boot",
  "durability/kill-loop",
  "cluster/credentials-faults",
  "firmware/held-grub",
  "firmware/every-loader",
  "integration/staleness",
  "directory/directory",
  "cluster/restart",
  "cluster/pace",
  "integration/backup",
].map((name) => `/test/${name}.test.ts`);

/** Starts the longest files first, also in a clean checkout, where the runner knows no times and goes by file sizes. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(name));
      return at < 0 ? longest.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take most of a minute or more, the longest first. One that starts last keeps the other worker idle. */
const longest = [
  "integration/serve",
  "integration/install-once",
  "firmware/install-once",
  "integration/backup",
  "sources/directory/directory",
  "members/move-commands",
  "integration/half-written",
  "integration/boot",
  "chaos/chaos",
  "conformance/fuzz",
  "cluster/scope",
  "cluster/api-server-away",
  "integration/refused-versions",
  "import-matchbox/import",
  "durability/kill-loop",
  "integration/staleness",
  "chaos/members",
  "cluster/leaders",
  "firmware/offered-texts",
  "cluster/lost-namespace",
  "cluster/mass-removal",
  "members/twins",
  "members/serve",
  "integration/floods",
  "sources/directory/no-manifests",
  "cluster/late-lines",
  "sources/directory/directory-files",
  "integration/install-clock",
  "firmware/says",
  "firmware/lan",
  "firmware/signed-boot",
  "cluster/credentials-faults",
  "firmware/held-grub",
  "firmware/every-loader",
  "cluster/restart",
  "cluster/pace",
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

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { userKey } from "./follower-steps.ts";
import { run } from "./run.ts";
import { expectChecked } from "./screen.ts";
import { type Stage, userAccount } from "./stage.ts";
import { StoreDoor } from "./store-door.ts";

const repository = join(import.meta.dirname, "../..");
const chart = "charts/davit";

/** What stays when the release goes, and what an upgrade of the chart brings. */
export function keepSteps(stage: Stage): void {
  const { release, logs, authority } = stage;

  describe("after `helm uninstall`", () => {
    it("the claim, the CRDs and their objects are there, and an install finds them", async ({ annotate }) => {
      const trusted = await authorityOfStore();
      await release.uninstall();
      const claims = await release.kubectl(["get", "persistentvolumeclaims", "--output=name"]);
      const objects = await release.kubectl(["get", "profiles.davit.dev,groups.davit.dev", "--output=name"]);
      await expect.poll(leftOfRelease).toBe("");
      await annotate(`kept: ${`${claims}${objects}`.trim().split("\n").join(", ")}`);
      expect(claims).toBe("persistentvolumeclaim/data-davit-0\n");
      expect(objects.trim().split("\n")).toHaveLength(3);
      expect(await stage.script()).toBeUndefined();

      await release.install();
      await expect.poll(() => stage.script()).toContain("e2e=edited");
      expect(await authorityOfStore()).toBe(trusted);
      expect(await valueOfUser()).toContain(`"value":"${userKey.value}"`);
    });
  });

  describe("an earlier version of the chart", () => {
    it("is upgraded to this one, with its CRDs, and keeps what is in the store", async ({ annotate }) => {
      const earlier = await earlierChart(stage);
      await annotate(`from ${earlier.name}, with the image of today`);
      await release.uninstall();
      await release.install(earlier.directory);
      await annotate(`columns of Groups before: ${await columns()}`);
      const before = await policy();
      await release.upgrade({});
      await annotate(`podManagementPolicy stays ${before}`);
      expect(await policy()).toBe(before);
      await annotate(`and after it: ${await columns()}`);
      expect(await columns()).toBe(columnsOfToday());
      await annotate(await release.test());
      expect(await valueOfUser()).toContain(`"value":"${userKey.value}"`);
      expectChecked(await stage.boot(), authority, "e2e=edited");
    });
  });

  describe("all logs of davit", () => {
    it("tell of nothing that the API server refused", async ({ annotate }) => {
      const lines = logs.lines("davit");
      await annotate(`${lines.length} lines of ${logs.containers} containers`);
      // The Role of the earlier chart has no rule for Machines. The part `keys` logs what davit refuses to its clients.
      const refused = lines.filter(
        ({ msg, part, what, ...rest }) =>
          msg !== "request" &&
          part !== "keys" &&
          what !== `machines in ${release.namespace}` &&
          /\b403\b|forbidden/i.test(JSON.stringify(rest)),
      );
      expect(refused).toEqual([]);
      expect(lines.filter(({ msg }) => msg === "serving").length).toBeGreaterThan(10);
    });
  });

  async function authorityOfStore(): Promise<string> {
    return await release.look("configmap/davit-store-ca", "{.data.ca\\.crt}");
  }

  async function leftOfRelease(): Promise<string> {
    const ofRelease = "--selector=app.kubernetes.io/instance=davit";
    return await release.kubectl(["get", kindsOfRelease, ofRelease, "--output=name"]);
  }

  async function policy(): Promise<string> {
    return await release.look("statefulset/davit", "{.spec.podManagementPolicy}");
  }

  async function valueOfUser(): Promise<string> {
    const door = await StoreDoor.open(release);
    try {
      const token = await release.kubectl(["create", "token", userAccount, "--audience=davit"]);
      return (await door.ask(userKey.path, token.trim())).body;
    } finally {
      await door.close();
    }
  }
}

const kindsOfRelease =
  "all,configmaps,secrets,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies,ingresses";

/** The names of the columns that the cluster's CRD of Groups has. */
async function columns(): Promise<string> {
  const path = "--output=jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}";
  return await run(["kubectl", "get", "crd", "groups.davit.dev", path]);
}

function columnsOfToday(): string {
  const crd: { spec: { versions: [{ additionalPrinterColumns: { name: string }[] }] } } = parse(
    readFileSync(join(repository, "crds/davit.dev_groups.yaml"), "utf8"),
  );
  return crd.spec.versions[0].additionalPrinterColumns.map(({ name }) => name).join(" ");
}

interface EarlierChart {
  readonly name: string;
  readonly directory: string;
}

/** The one that is given, or the first one that there was. */
async function earlierChart({ settings, folder }: Stage): Promise<EarlierChart> {
  if (settings.previousChart !== undefined) return { name: settings.previousChart, directory: settings.previousChart };
  const git = (...words: readonly string[]) => run(["git", "-C", repository, ...words]);
  const commits = await git("log", "--diff-filter=A", "--format=%H", "--", `${chart}/Chart.yaml`);
  const first = commits.trim().split("\n").at(-1);
  if (!first) throw new Error("Git's history does not have the first chart: set E2E_PREVIOUS_CHART");
  const archive = join(folder, "chart.tar");
  await git("archive", `--output=${archive}`, first, chart);
  const target = join(folder, "earlier");
  mkdirSync(target);
  await run(["tar", "--extract", `--directory=${target}`, `--file=${archive}`]);
  return { name: `the chart of commit ${first.slice(0, 7)}`, directory: join(target, chart) };
}

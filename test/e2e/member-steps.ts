import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { systemClock } from "../../src/lib/clock.ts";
import type { JsonObject } from "../../src/model/json.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { smallAsset } from "./asset-server.ts";
import { Boots } from "./boots.ts";
import { Counter } from "./counter.ts";
import { editProfile } from "./edit-profile.ts";
import { expectNoFailure } from "./follower-steps.ts";
import { merged } from "./release.ts";
import { attempt, run } from "./run.ts";
import { expectChecked, timesBegun } from "./screen.ts";
import { type Stage, userAccount } from "./stage.ts";
import { type Seen, Turns } from "./turns.ts";
import { watchPod } from "./watch-pod.ts";

const repository = join(import.meta.dirname, "../..");
const page = "operate/several-members.md";
const pageLimitMs = 280_000;
const members = ["davit-0", "davit-1", "davit-2"];
const etcds = ["etcd-0", "etcd-1", "etcd-2"];
const machines = 300;
// Together they boot 30 times a second.
const pauseMs = 10_000;
// Beside all of them on one computer.
const bootLimitMs = 280_000;
// A Service sends machines to a killed member until Kubernetes notices.
const restarts = 30;
const stepLimitMs = 600_000;
const maxErrors = 12;

/** Three members and three etcds, and what becomes of boots and writes when one after the other goes. */
export function memberSteps(stage: Stage, etcdImage: string): void {
  const { settings, release } = stage;
  const folder = join(stage.folder, "page");
  const valuesFile = join(folder, "davit-values.yaml");
  let counter: Counter;
  let turns: Turns;

  describe(`docs/${page}`, () => {
    it("brings three etcds beside one davit on a volume", { timeout: stepLimitMs }, async ({ annotate }) => {
      await release.createNamespace();
      mkdirSync(folder);
      for (const name of ["charts", "manifests"]) symlinkSync(join(repository, name), join(folder, name));
      // docs/operate/install.md has made this file. All machines have this computer's address.
      const values = merged(stage.values, { clientLimits: { exempt: ["0.0.0.0/0"] }, boot: { replicas: 1 } });
      writeFileSync(valuesFile, stringify(values));
      await runBlocks(["helm install davit charts/davit --namespace netboot --values davit-values.yaml --wait"]);
      await release.kubectl(["apply", `--filename=${join(repository, "manifests/quickstart")}`]);
      const { etcd, fewNodes, ready } = pageBlocks();
      await annotate(await runBlocks((await nodes()) < etcds.length ? [etcd, fewNodes, ready] : [etcd, ready]));
      await expect.poll(() => stage.script()).toContain("kernel ");
    });

    it("makes it three members while its follower answers", { timeout: stepLimitMs }, async ({ annotate }) => {
      const { davit, deletion } = pageBlocks();
      const refusal = await runBlocks([davit]).catch(String);
      await annotate(refusal);
      expect(refusal).toContain("keeps the store on a volume, which cannot be changed");
      const boots = stage.startBoots();
      const [, helm = ""] = davit.split("\nEND\n");
      await annotate(await runBlocks([deletion, helm]));
      await expectNoFailure(await boots.stop(), annotate);
      await annotate(await release.kubectl(["get", "pods,poddisruptionbudgets,persistentvolumeclaims"]));
    });

    it("boots a machine, and lets clients count", { timeout: stepLimitMs }, async () => {
      await release.kubectl(["create", "serviceaccount", userAccount]);
      await release.upgrade({ ...parse(readFileSync(valuesFile, "utf8")), boot: { replicas: 0 } });
      turns = await Turns.begin(release);
      await expect.poll(() => stage.script()).toContain("kernel ");
      await editProfile(stage, ["davit.check=1", "panic=-1", "e2e=edited"]);
      expectChecked(await stage.boot({ timeoutMs: bootLimitMs }), stage.authority, "e2e=edited");
      const image = stage.imageName;
      counter = await Counter.start(release, { image, members, account: userAccount, secret: "davit-store-tls" });
    });
  });

  describe("while 300 machines boot and clients count,", () => {
    it("nothing happens", { timeout: stepLimitMs }, ({ annotate }) =>
      during(annotate, async () => void (await systemClock.sleep(10_000))),
    );

    it.skipIf(settings.faults === undefined)(
      "the leader's container is killed",
      { timeout: stepLimitMs },
      ({ annotate }) => during(annotate, async () => await kill(await counter.leader()), restarts),
    );

    it.skipIf(settings.faults === undefined)("etcd's leader is killed", { timeout: stepLimitMs }, ({ annotate }) =>
      during(annotate, async () => await kill(await etcdLeader()), restarts),
    );

    it("`helm upgrade` restarts every member", { timeout: stepLimitMs }, ({ annotate }) =>
      during(annotate, async () => {
        const before = await uids();
        await release.upgrade({ logLevel: "debug" });
        for (const uid of await uids()) expect(before).not.toContain(uid);
      }),
    );

    it("every member is evicted, one at a time", { timeout: stepLimitMs }, ({ annotate }) =>
      during(annotate, async () => await evictInTurn(members, annotate)),
    );

    it("every member of etcd is evicted, one at a time", { timeout: stepLimitMs }, ({ annotate }) =>
      during(annotate, async () => await evictInTurn(etcds, annotate)),
    );

    it("the count is exact", async ({ annotate }) => {
      const end = await counter.stop();
      await annotate(JSON.stringify(end));
      expect(end.problems).toEqual([]);
      expect(end.count).toBe(Number(end.acknowledged) + Number(end.unknownDone));
    });
  });

  /** @returns all that the commands print. */
  async function runBlocks(blocks: readonly string[]): Promise<string> {
    const environment = { ETCD_IMAGE: etcdImage };
    const lines = ["exec 2>&1", "set -euo pipefail", `cd ${folder}`, "set -x", ...blocks];
    return await run(["bash", "-c", lines.join("\n")], { environment, timeoutMs: pageLimitMs });
  }

  function pageBlocks(): PageBlocks {
    const text = readPage(page);
    const [davit = "", etcd = "", fewNodes = "", ready = ""] = blocksOf(text, "sh e2e");
    const [, deletion = ""] = /`(kubectl -n netboot delete statefulset davit)`/.exec(text) ?? [];
    return { davit, deletion, etcd, fewNodes, ready };
  }

  async function nodes(): Promise<number> {
    return (await run(["kubectl", "get", "nodes", "--output=name"])).trim().split("\n").length;
  }

  /**
   * Does something to the cluster while machines boot, a real one among them, objects change and clients count.
   * @param restarts of machines whose connection is refused or cut; none unless given.
   */
  async function during(annotate: Annotate, fault: () => Promise<void>, restarts = 0): Promise<void> {
    const asset = { path: `/assets/${smallAsset}` };
    const asksOf = (machine: number) => [{ path: "/boot.ipxe" }, turns.ask(machine), asset];
    const boots = new Boots({ origin: stage.origin, machines, pauseMs, restarts, asksOf });
    await systemClock.sleep(pauseMs);
    const fromMs = systemClock.nowMs();
    const story = { isOver: false };
    const booted = stage.boot({ isPersistent: true, timeoutMs: bootLimitMs });
    const [screen, seen] = await Promise.all([
      booted,
      turnUntil(story),
      fault().finally(() => {
        story.isOver = true;
      }),
    ]);
    await ready();
    await systemClock.sleep(pauseMs);
    await expectNoFailure(await boots.stop(), annotate);
    await annotate(
      `turns: ${seen.map((turn) => `${turn.turn} after ${turn.firstMs} ms, ${turn.allMs} ms`).join("; ")}`,
    );
    await annotate(writesOf(await counter.lines(), fromMs));
    await annotate(`the machine began ${timesBegun(screen)} times`);
    expectChecked(screen, stage.authority, "e2e=edited");
  }

  /** Turns the Group from installing to booting and back as long as it takes, at least once. */
  async function turnUntil(story: { readonly isOver: boolean }): Promise<readonly Seen[]> {
    const seen: Seen[] = [];
    do {
      const settled = await turns.next(members);
      seen.push(await settled());
      await systemClock.sleep(1_000);
    } while (!story.isOver);
    return seen;
  }

  async function kill(pod: string): Promise<void> {
    const container = await release.containerOf(pod);
    await run([...(settings.faults?.killContainer ?? []), container]);
    await expect.poll(() => release.containerOf(pod)).not.toBe(container);
  }

  async function ready(): Promise<void> {
    const pods = [...members, ...etcds].map((pod) => `pod/${pod}`);
    await release.kubectl(["wait", "--for=condition=Ready", "--timeout=100s", ...pods]);
  }

  async function uids(): Promise<readonly string[]> {
    return await Promise.all(members.map((pod) => release.look(`pod/${pod}`, "{.metadata.uid}")));
  }

  async function etcdLeader(): Promise<string> {
    for (const pod of etcds) {
      const path = `/api/v1/namespaces/${release.namespace}/pods/${pod}:2381/proxy/metrics`;
      if ((await release.kubectl(["get", "--raw", path])).includes("\netcd_server_is_leader 1\n")) return pod;
    }
    throw new Error("No etcd leads");
  }

  /** As `kubectl drain` does it, pod after pod; while one is away, another one has to stay. */
  async function evictInTurn(pods: readonly string[], annotate: Annotate): Promise<void> {
    for (const [place, pod] of pods.entries()) {
      const replaced = await watchPod(release, pod);
      await expect.poll(() => evicted(pod)).toBe("evicted");
      const other = pods[(place + 1) % pods.length] ?? "";
      const refusal = await evicted(other);
      await annotate(`${pod} is evicted, ${other} is not: ${refusal}`);
      expect(refusal).toContain("disruption budget");
      await replaced();
    }
  }

  async function evicted(name: string): Promise<string> {
    const path = `/api/v1/namespaces/${release.namespace}/pods/${name}/eviction`;
    const input = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name } });
    const { code, stderr } = await attempt(["kubectl", "create", "--raw", path, "--filename=-"], { input });
    return code === 0 ? "evicted" : stderr.trim();
  }
}

/** What became of the clients' writes since then, in some lines. */
function writesOf(lines: readonly JsonObject[], fromMs: number): string {
  const since = lines.filter(({ atMs }) => Number(atMs) >= fromMs);
  const longest = (kind: string) =>
    Math.max(0, ...since.filter((line) => line.kind === kind).map(({ ms }) => Number(ms)));
  const errors = since.filter(({ kind }) => kind === "error");
  const said = errors.map(({ who, did, status, errorCode, reason, ms }) =>
    [who, did, status, errorCode, reason, ms === undefined ? undefined : `${ms} ms`].filter(Boolean).join(" "),
  );
  const moves = since.filter(({ kind }) => kind === "moved");
  const leaders = since.filter(({ kind }) => kind === "leader");
  return [
    `writes: longest time without one ${longest("gap")} ms (0 below 250), slowest ${longest("slow")} ms`,
    `${errors.length} without an answer: ${said.slice(0, maxErrors).join(", ")}; went to the next endpoint ${moves.length} times`,
    ...leaders.map(({ name, atMs }) => `leader after ${Number(atMs) - fromMs} ms: ${name}`),
  ].join("\n");
}

/** The page's commands. */
interface PageBlocks {
  readonly davit: string;
  readonly deletion: string;
  readonly etcd: string;
  readonly fewNodes: string;
  readonly ready: string;
}

type Annotate = Parameters<typeof expectNoFailure>[1];

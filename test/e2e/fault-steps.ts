import { generateKey } from "openpgp";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { editProfile } from "./edit-profile.ts";
import { expectNoFailure, told } from "./follower-steps.ts";
import { run } from "./run.ts";
import type { FaultCommands } from "./settings.ts";
import type { Stage } from "./stage.ts";

const signingSecret = "e2e-signing";
// davit-0 waits ten seconds of it for the API server before it serves its copy, and followers ask every few seconds.
const outageMs = 30_000;

/** What davit needs is missing: the API server, a Secret. */
export function faultSteps(stage: Stage): void {
  const { settings, release, logs } = stage;
  const { faults } = settings;

  describe.skipIf(faults === undefined)("without an API server", () => {
    it("containers of davit that are killed come back, and answer from their disks", async ({ annotate }) => {
      await release.upgrade({ boot: { replicas: 1 } });
      await expect.poll(followers).toHaveLength(1);
      const [follower = ""] = await followers();
      const containers = [await release.containerOf("davit-0"), await release.containerOf(follower)];
      const boots = stage.startBoots();

      const { fromMs, toMs } = await withoutApiServer(faults, async (kill) => {
        for (const container of containers) await kill(container);
        await expect.poll(() => stage.script()).toBeUndefined();
        await expect.poll(() => stage.script()).toContain("e2e=replaced");
      });

      await annotate(`the API server was away for ${Math.round((toMs - fromMs) / 1_000)} s`);
      await annotate(told(await boots.stop()));
      for (const [pod, msg] of [
        ["davit-0", "serving"],
        [follower, "following the store"],
      ] as const) {
        const meanwhile = () =>
          logs.lines(pod).filter((line) => {
            const atMs = Date.parse(String(line.time));
            return line.msg === msg && fromMs < atMs && atMs < toMs;
          });
        await expect.poll(meanwhile).not.toEqual([]);
        await annotate(`${pod}: ${meanwhile().map(({ time, msg }) => `${time} ${msg}`)}`);
      }
      await editProfile(stage, ["e2e=back"]);
    });
  });

  describe("a Secret that is missing", () => {
    it("keeps new pods from starting, says so, and old followers answer", async ({ annotate }) => {
      await release.upgrade({ boot: { replicas: 2 } });
      await expect.poll(followers).toHaveLength(2);
      const old = await followers();
      const boots = stage.startBoots();
      await release.upgradeSoon({ signing: { enabled: true, existingSecret: signingSecret } });
      const refusal = `MountVolume.SetUp failed for volume "signing" : secret "${signingSecret}" not found`;
      await expect.poll(() => warningsOf("davit-0")).toContain(refusal);
      await annotate(`davit-0: ${refusal}`);
      await expect.poll(followers).toHaveLength(3);
      const [fresh = ""] = (await followers()).filter((name) => !old.includes(name));
      await expect.poll(() => warningsOf(fresh)).toContain(refusal);
      // The kubelet tells of the event before it writes the pod's status.
      await expect.poll(() => release.look("pod/davit-0", readyPath)).toBe("False");
      expect(await release.look("deployment/davit-boot", "{.status.readyReplicas}")).toBe("2");

      const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: signingSecret } };
      const input = JSON.stringify({ ...secret, stringData: { "private.asc": await signingKey() } });
      await release.kubectl(["apply", "--filename=-"], { input });
      await release.kubectl(["rollout", "status", "statefulset/davit", "--timeout=150s"], { timeoutMs: 160_000 });
      await release.kubectl(["rollout", "status", "deployment/davit-boot", "--timeout=150s"], { timeoutMs: 160_000 });
      await expectNoFailure(await boots.stop(), annotate);
      const said = await release.test();
      await annotate(said);
      expect(said).toContain("ok      answers are signed\n");
    });
  });

  describe("an option that davit refuses", () => {
    it("keeps davit-0 from ever being ready, until the next upgrade replaces it", async ({ annotate }) => {
      expect(await release.look("statefulset/davit", "{.spec.podManagementPolicy}")).toBe("Parallel");
      const boots = stage.startBoots();
      await release.upgradeSoon({ extraArgs: ["--no-such-option=1"] });
      const exitCode = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
      await expect.poll(() => release.look("pod/davit-0", exitCode).catch(() => "")).toBe("2");
      const failed = await release.test().catch(String);
      expect(failed).toContain("NOT OK");
      // The pod of a test that failed stays.
      const said = await release.kubectl(["logs", `${release.name}-test`]);
      await annotate(said);
      expect(said).toContain("NOT OK");

      await release.upgrade({ extraArgs: null });
      await expectNoFailure(await boots.stop(), annotate);
      expect(await release.test()).not.toContain("NOT OK");
    });
  });

  async function followers(): Promise<readonly string[]> {
    const selector = "--selector=app.kubernetes.io/component=boot";
    const names = await release.kubectl(["get", "pods", selector, "--output=jsonpath={.items[*].metadata.name}"]);
    return names.split(" ");
  }

  async function warningsOf(pod: string): Promise<string> {
    const words = [`--field-selector=type=Warning,involvedObject.name=${pod}`, "--output=jsonpath={.items[*].message}"];
    return await release.kubectl(["get", "events", ...words]);
  }
}

const readyPath = '{.status.conditions[?(@.type=="Ready")].status}';

interface Outage {
  /** Unix milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Whatever becomes of what is done meanwhile, the API server is started again, and answers. */
async function withoutApiServer(
  faults: FaultCommands | undefined,
  meanwhile: (kill: (container: string) => Promise<void>) => Promise<void>,
): Promise<Outage> {
  if (faults === undefined) throw new Error("There is no way to stop the API server: set E2E_SERVICE");
  await run([...faults.service, "kube-apiserver", "stop"]);
  const fromMs = systemClock.nowMs();
  let toMs = fromMs;
  try {
    await meanwhile(async (container) => void (await run([...faults.killContainer, container])));
    await systemClock.sleep(fromMs + outageMs - systemClock.nowMs());
  } finally {
    toMs = systemClock.nowMs();
    await run([...faults.service, "kube-apiserver", "start"]);
    await expect.poll(() => run(["kubectl", "get", "--raw=/readyz"]).catch(() => "")).toBe("ok");
  }
  return { fromMs, toMs };
}

/** As `gpg --export-secret-keys --armor` writes one. */
async function signingKey(): Promise<string> {
  const { privateKey } = await generateKey({ type: "rsa", rsaBits: 3072, userIDs: { name: "e2e" }, format: "armored" });
  return privateKey;
}

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isJsonObject } from "../../src/model/json.ts";
import { compressedBytesOverBase } from "./image-size.ts";
import { attempt, run } from "./run.ts";
import { type Stage, userAccount } from "./stage.ts";

const repository = join(import.meta.dirname, "../..");
const buildLimitMs = 600_000;
const maxImageBytes = 90 * 1024 ** 2;

/** Builds the image and gives it to the nodes, where none is given. */
export function imageSteps(stage: Stage): void {
  const { settings, imageName } = stage;

  describe("the image", () => {
    it.skipIf(settings.image !== undefined)(
      "is built, is small, and is given to the nodes",
      async ({ annotate }) => {
        const archive = join(stage.folder, "davit.tar");
        const environment = { IMAGE: imageName, ARCHIVE: archive };
        await run(["make", "-C", repository, "image"], { environment, timeoutMs: buildLimitMs });
        const bytes = compressedBytesOverBase(archive);
        await run([...(settings.loadImage ?? []), archive]);
        await annotate(`${(bytes / 1024 ** 2).toFixed(1)} MiB over its base, compressed by gzip`);
        expect(bytes).toBeLessThanOrEqual(maxImageBytes);
      },
      buildLimitMs,
    );
  });
}

/** From nothing to a davit that answers, by the words of its own notes. */
export function installSteps(stage: Stage): void {
  const { settings, release } = stage;

  describe("the chart", () => {
    it("comes up by `helm install --wait` where the level restricted is enforced", async ({ annotate }) => {
      await release.createNamespace();
      await release.kubectl(["create", "serviceaccount", userAccount]);
      await annotate(await release.install());
      expect(stage.assets.fetches).toBe(stage.assets.download.length);
      const [serving] = stage.logs.lines("davit-0").filter(({ msg }) => msg === "serving");
      await annotate(await startTimes(stage));
      expect(serving).toMatchObject({ advertised: stage.authority });
    });

    it("passes `helm test`, which leaves nothing", async ({ annotate }) => {
      const said = await release.test();
      await annotate(said);
      expect(said).toMatch(/^(ok {6}.*\n){4}$/);
      const ofTest = "--selector=app.kubernetes.io/component=test";
      expect(await release.kubectl(["get", "pods,configmaps", ofTest, "--output=name"])).toBe("");
    });

    it("has notes whose commands work", async ({ annotate }) => {
      const notes = await run([settings.helm, "--namespace", release.namespace, "get", "notes", release.name]);
      const commands = notes.split("\n").filter((line) => /^ {3}(kubectl|curl) /.test(line));
      const words = commands.map((command) =>
        command
          .trim()
          .replace(/ -n \S+/, "")
          .split(" ", 2)
          .join(" "),
      );
      expect(words).toEqual([
        ...["kubectl rollout", "kubectl apply", expect.stringMatching(/^curl /)],
        ...["kubectl port-forward", "kubectl create"],
      ]);
      // The last two are for the console. One runs until the user ends it, the other names an account of the user.
      for (const command of commands.slice(0, 3)) {
        const ended = await attempt(["bash", "-c", `cd ${repository} && ${command}`]);
        await annotate(`$ ${command.trim()}\n${ended.stdout}${ended.code === 0 ? "" : ended.stderr}`);
        expect(ended.code).toBe(0);
      }
    });

    it("gives its ServiceAccount the rights of its Role, and no more", async ({ annotate }) => {
      const account = `--as=system:serviceaccount:${release.namespace}:${release.name}`;
      await annotate(await release.kubectl(["auth", "can-i", "--list", account]));
      const can = async (...words: readonly string[]) =>
        (await attempt(["kubectl", "-n", release.namespace, "auth", "can-i", account, ...words])).stdout.trim();
      expect(await can("watch", "profiles.davit.dev")).toBe("yes");
      expect(await can("patch", "groups.davit.dev", "--subresource=status")).toBe("yes");
      expect(await can("patch", "groups.davit.dev")).toBe("no");
      expect(await can("get", "secrets")).toBe("no");
      expect(await can("list", "profiles.davit.dev", "--all-namespaces")).toBe("no");
    });
  });
}

/** From the first line of its log until it serves; the kubelet's times are whole seconds. */
async function startTimes({ release, logs }: Stage): Promise<string> {
  const lines = logs.lines("davit-0");
  const [first] = lines;
  const serving = lines.find(({ msg }) => msg === "serving");
  const ms = Date.parse(String(serving?.time)) - Date.parse(String(first?.time));
  const { status } = await release.get("pod/davit-0");
  const conditions = isJsonObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  const ready = conditions.filter(isJsonObject).find(({ type }) => type === "Ready")?.lastTransitionTime;
  const started = await release.look("pod/davit-0", "{.status.containerStatuses[0].state.running.startedAt}");
  return `davit-0 serves ${ms} ms after its first line; container started at ${started}, pod ready at ${ready}`;
}

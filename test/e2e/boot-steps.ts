import { describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { type Onlooker, tail } from "../firmware/power-on.ts";
import { startCable } from "./cable.ts";
import { editProfile } from "./edit-profile.ts";
import { expectChecked, expectUserSpace, timesBegun } from "./screen.ts";
import type { Stage } from "./stage.ts";
import { watchPod } from "./watch-pod.ts";

// No script has so many, and what is on its way then is a small part of the kernel.
const midKernelBytes = 256 * 1024;
const kernel = "/quickstart/vmlinuz";

/** Machines that boot from one pod, and what becomes of them when it goes. */
export function bootSteps(stage: Stage): void {
  const { release, authority } = stage;

  describe("a machine", () => {
    it("netboots the quickstart from the NodePort to a shell", async ({ annotate }) => {
      const onlooker: Onlooker = { waitsFor: "davit:/# ", does: ({ type }) => type("uname -o; exit\n") };
      const screen = await stage.boot({ onlooker });
      await annotate(tail(screen));
      expect(screen).toContain(`davit at http://${authority} knows this machine by:`);
      expect(screen).toContain(`  MAC=${quickstartMachine.mac}\n`);
      expect(screen).toContain("davit:/# uname -o; exit\nGNU/Linux\n");
    });

    it("boots with what its Profile was changed to", async ({ annotate }) => {
      // From now on machines check their configs and power themselves off.
      await editProfile(stage, ["davit.check=1", "panic=-1", "e2e=edited"]);
      const screen = await stage.boot();
      await annotate(tail(screen));
      expectChecked(screen, authority, "e2e=edited");
    });
  });

  describe("a machine in the middle of its boot", () => {
    it("gets all of its kernel and its initrd from a pod that is deleted meanwhile", async () => {
      const replaced = await watchPod(release, "davit-0");
      const held = async () => void (await release.kubectl(["delete", "pod", "davit-0", "--wait=false"]));
      const screen = await bootHeld({ kind: "answer", bytes: midKernelBytes, isCut: false }, held);
      // Its configs Linux asks for later, when there may be nobody: followers are for that.
      expectUserSpace(screen, "e2e=edited");
      expect(timesBegun(screen)).toBe(1);
      await replaced();
      await expect.poll(() => stage.script()).toContain("kernel ");
    });

    it("boots when its pod was replaced between script and kernel", async () => {
      const replaced = await watchPod(release, "davit-0");
      const held = async () => {
        await release.kubectl(["delete", "pod", "davit-0", "--grace-period=1"]);
        await replaced();
        await expect.poll(() => stage.script()).toContain("kernel ");
      };
      const screen = await bootHeld({ kind: "request", text: kernel }, held);
      expectChecked(screen, authority, "e2e=edited");
      // The connection that it kept is gone, and iPXE makes another one.
      expect(timesBegun(screen)).toBe(1);
    });

    it("begins again, and boots, when its pod was killed and its connection cut in mid-kernel", async ({
      annotate,
    }) => {
      const replaced = await watchPod(release, "davit-0");
      const held = async () =>
        void (await release.kubectl(["delete", "pod", "davit-0", "--grace-period=0", "--force"]));
      const screen = await bootHeld({ kind: "answer", bytes: midKernelBytes, isCut: true }, held);
      expectChecked(screen, authority, "e2e=edited");
      await annotate(`the machine began ${timesBegun(screen)} times`);
      expect(timesBegun(screen)).toBeGreaterThan(1);
      await replaced();
    });
  });

  async function bootHeld(holdAt: Parameters<typeof startCable>[0]["holdAt"], held: () => Promise<void>) {
    const cable = await startCable({ host: stage.host, port: stage.settings.nodePort, holdAt, held });
    try {
      return await stage.boot({ port: cable.port, isPersistent: true });
    } finally {
      expect(await cable.stop()).toBe(true);
    }
  }
}

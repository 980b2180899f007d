/** A Group that is held while its machine asks by GRUB: the machine waits, and boots once it is released. */

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { expectOwnConfigs } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "grub"))("a held machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-held-"));
  const directory = join(folder, "manifests");
  let server: LinedServer;

  beforeAll(async () => {
    mkdirSync(directory);
    hold(true);
    server = await startLinedServer(["--manifests", directory]);
    return async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    };
  }, startLimitMs);

  function hold(isHeld: boolean): void {
    const text = readFileSync(join(import.meta.dirname, "manifests/check.yaml"), "utf8");
    write(text.replace("spec:\n  profileRef:", `spec:\n  hold: ${isHeld}\n  profileRef:`));
  }

  function write(manifest: string): void {
    writeFileSync(join(folder, "check.yaml"), manifest);
    renameSync(join(folder, "check.yaml"), join(directory, "check.yaml"));
  }

  async function expectPatience(firmware: "bios" | "uefi"): Promise<void> {
    hold(true);
    await expect.poll(async () => (await fetch(`http://${server.authority}/ipxe?${query}`)).status).toBe(503);
    const delivered = { path: "/grub", status: 503, when: "delivered" } as const;
    server.line.expect({ ...delivered, does: async () => {} }, { ...delivered, does: async () => hold(false) });
    const loader = makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine);
    const { screen } = await server.boot({ ...quickstartMachine, firmware, loader });
    const statuses = server.line.asked.filter(({ target }) => target.startsWith("/grub?")).map(({ status }) => status);
    expect(statuses.slice(0, 2)).toEqual([503, 503]);
    expect(new Set(statuses.slice(2, -1))).not.toContain(200);
    expect(statuses.at(-1)).toBe(200);
    expect(screen.replaceAll(/\s+/g, " ")).toContain("davit: 503 held. Asking again in 5 seconds");
    expectOwnConfigs(screen);
  }

  /** Boots a held machine, which is released after its first 503. GRUB switches it off where davit has no entry. */
  async function released(manifest: (isHeld: boolean) => string) {
    const status = async () => (await fetch(`http://${server.authority}/grub?${query}`)).status;
    write(manifest(true));
    await expect.poll(status).toBe(503);
    const release = async () => {
      write(manifest(false));
      await expect.poll(status).not.toBe(503);
    };
    server.line.expect({ path: "/grub", status: 503, when: "delivered", does: release });
    const tftp = server.makeDirectory();
    const loader = makeGrubLoader(tftp, "bios", server.authoritySeenByMachine);
    const config = join(tftp, "grub/grub.cfg");
    writeFileSync(config, readFileSync(config, "utf8").replace("exit\n", "halt\n"));
    const { screen } = await server.boot({ ...quickstartMachine, firmware: "bios", loader });
    const asked = server.line.asked.filter(({ target }) => target.startsWith("/grub?"));
    return { statuses: asked.map((each) => each.status), screen };
  }

  const query = `mac=${quickstartMachine.mac}`;

  it.skipIf(missing("grub-bios"))(
    "waits in GRUB by BIOS, and boots once it is released",
    {
      timeout: bootTestLimitMs,
    },
    () => expectPatience("bios"),
  );

  it.skipIf(missing("grub-uefi", "ovmf", "all-firmware"))(
    "waits in GRUB by UEFI, and boots once it is released",
    {
      timeout: bootTestLimitMs,
    },
    () => expectPatience("uefi"),
  );

  it.skipIf(missing("grub-bios", "all-firmware"))(
    "boots by a config of its Profile's that sets no default, as it would without the wait",
    { timeout: bootTestLimitMs },
    async () => {
      // A machine that halts loses what its serial line has not sent yet.
      const script = `set timeout=0
      menuentry first {
        echo "booted first, default <$default>"
        sleep 2
        halt
      }
      menuentry davit {
        echo "booted second"
        halt
      }`;
      const { statuses, screen } = await released((isHeld) => own(`grubScript: |\n      ${script}`, isHeld));
      expect(statuses.filter((each) => each !== 503)).toEqual([200]);
      expect(screen).toContain("booted first, default <>");
      expect(screen).not.toContain("no answer");
    },
  );

  it.skipIf(missing("grub-bios", "all-firmware"))(
    "goes on at once when davit has nothing for it any more",
    { timeout: bootTestLimitMs },
    async () => {
      const { statuses, screen } = await released((isHeld) => own("local: notFound", isHeld));
      expect(statuses.filter((each) => each !== 503)).toEqual([404]);
      expect(screen).not.toContain("no answer");
    },
  );
});

/** A Profile that boots this, and a Group for the machine. */
function own(boot: string, isHeld: boolean): string {
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: own}
spec:
  boot:
    ${boot}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: this-machine}
spec:
  hold: ${isHeld}
  profileRef: {name: own}
  selector: {matchLabels: {mac: "${quickstartMachine.mac}"}}
`;
}

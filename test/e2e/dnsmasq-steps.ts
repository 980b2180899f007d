import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { type Lan, startLanAt } from "../../tools/firmware/lan.ts";
import { type Firmware, type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { powerOn, tail } from "../firmware/power-on.ts";
import { editProfile } from "./edit-profile.ts";
import { run } from "./run.ts";
import { expectChecked } from "./screen.ts";
import type { Command, ImageName, Settings } from "./settings.ts";
import { builtImage, type Stage } from "./stage.ts";

const repository = join(import.meta.dirname, "../..");
const bridge = "davit-boot";
const limitMs = 600_000;
const bootLimitMs = 240_000;
// Of the network's host, which is the node.
const host = "192.168.1.10";
const withRange = { subnet: "", ranges: ["192.168.1.50,192.168.1.99,1h"] };
// GRUB begins with the same ports after each power-on, and leaves its last connection half closed: the server keeps it
// for about two minutes, and takes no new one from the same address. So each of these boots has an address of its own.
const withRangeFor = { bios: range("192.168.1.110"), uefi: range("192.168.1.120") };

function range(first: string) {
  return { subnet: "", ranges: [`${first},${first},1h`] };
}

type LanClient = Extract<Loader, { kind: "lan" }>["by"];

/** dnsmasq beside a DHCP server, then without one, and what machines in its network show. */
export function dnsmasqSteps(stage: Stage, enter: Command): void {
  const { release, settings } = stage;
  const image: ImageName = settings.dnsmasqImage ?? { ...builtImage, repository: "davit-dnsmasq" };
  const authority = `${host}:${settings.nodePort}`;
  let lan: Lan;
  beforeAll(async () => {
    lan = await startLanAt(stage.folder, { enter, bridge, tap: "davit-tap", cable: "davit-router" });
  });
  afterAll(() => lan.stop());

  describe("the chart with dnsmasq", () => {
    it.skipIf(settings.dnsmasqImage !== undefined)("has an image", { timeout: limitMs }, async () => {
      await giveImage(settings, image, join(stage.folder, "dnsmasq.tar"));
    });

    it("comes up as a proxy-DHCP", { timeout: limitMs }, async ({ annotate }) => {
      await release.createNamespace();
      const label = "pod-security.kubernetes.io/enforce=privileged";
      await run(["kubectl", "label", "--overwrite", "namespace", release.namespace, label]);
      await release.install();
      await release.kubectl(["apply", `--filename=${join(repository, "manifests/quickstart")}`]);
      await expect.poll(() => stage.script()).toContain("kernel ");
      const nodes = await run(["kubectl", "get", "nodes", "--output=jsonpath={.items[0].metadata.labels}"]);
      const node = JSON.parse(nodes)["kubernetes.io/hostname"];
      await lan.startRouter();
      await change({
        enabled: true,
        image: { ...image },
        nodeSelector: { "kubernetes.io/hostname": node },
        interface: bridge,
        subnet: "192.168.1.0",
      });
      await annotate(await release.kubectl(["get", "pods", "--output=wide"]));
      await editProfile(stage, ["davit.check=1", "panic=-1", "e2e=edited"]);
    });
  });

  describe("beside a DHCP server", () => boots());

  describe("without a DHCP server", () => {
    it("dnsmasq gives addresses of its range", { timeout: limitMs }, async () => {
      await lan.stopRouter();
      await change(withRange);
    });
    boots();
  });

  describe("with GRUB as every loader", () => {
    it("the pod makes it", { timeout: limitMs }, async () => {
      const uefi = "grub-x86_64.efi";
      await lan.stopRouter();
      await change({ ...withRangeFor.bios, loaders: { x86PC: "grub-i386.0", "x86-64_EFI": uefi, BC_EFI: uefi } });
    });
    it("a BIOS machine boots", { timeout: limitMs }, ({ annotate }) =>
      boot(annotate, "bios", cardLoading("grub-i386.0"), "BOOT_IMAGE="),
    );
    it("a UEFI machine boots", { timeout: limitMs }, async ({ annotate }) => {
      await change(withRangeFor.uefi);
      await boot(annotate, "uefi", "pxe", "BOOT_IMAGE=");
    });
    it("a UEFI machine boots beside a DHCP server", { timeout: limitMs }, async ({ annotate }) => {
      await change({ subnet: "192.168.1.0", ranges: [] });
      await lan.startRouter();
      await boot(annotate, "uefi", "pxe", "BOOT_IMAGE=");
    });
  });

  function boots(): void {
    it("a BIOS machine with iPXE on its card boots", { timeout: limitMs }, ({ annotate }) =>
      boot(annotate, "bios", "pxe", "chain.ipxe..."),
    );
    it("a BIOS machine boots by undionly.kpxe", { timeout: limitMs }, ({ annotate }) =>
      boot(annotate, "bios", cardLoading("undionly.kpxe"), "chain.ipxe..."),
    );
    it("a UEFI machine boots", { timeout: limitMs }, ({ annotate }) => boot(annotate, "uefi", "pxe", "chain.ipxe..."));
  }

  /** A BIOS machine without an iPXE of its own: this one plays its card, and loads what DHCP names to such a card. */
  function cardLoading(file: string): LanClient {
    const script = join(stage.folder, "card.ipxe");
    writeFileSync(script, `#!ipxe\ndhcp\nchain tftp://${host}/${file}\n`);
    return { script };
  }

  async function boot(annotate: Annotate, firmware: Firmware, by: LanClient, sign: string): Promise<void> {
    const began = await logLength();
    const machine = { ...quickstartMachine, firmware, loader: { kind: "lan", lan, by } } as const;
    const { screen } = await powerOn(machine, { timeoutMs: bootLimitMs }).catch(async (cause: unknown) => {
      await annotate((await log()).slice(began));
      throw cause;
    });
    await annotate(screen.includes("DAVIT-CHECK PASSED") ? gist(screen) : tail(screen));
    await annotate(said((await log()).slice(began)));
    expect(screen, tail(screen)).toContain(sign);
    expectChecked(screen, authority, "e2e=edited");
  }

  async function change(dnsmasq: JsonObject): Promise<void> {
    await release.upgrade({ advertiseAddress: authority, dnsmasq });
    await release.kubectl(["rollout", "status", "daemonset/davit-dnsmasq", "--timeout=100s"]);
    await expect.poll(() => stage.script()).toContain("kernel ");
  }

  async function log(): Promise<string> {
    return await release.kubectl(["logs", "daemonset/davit-dnsmasq", "--container=dnsmasq"]);
  }

  async function logLength(): Promise<number> {
    return (await log()).length;
  }
}

type Annotate = (message: string) => Promise<unknown>;

async function giveImage({ loadImage }: Settings, image: ImageName, archive: string): Promise<void> {
  const environment = { IMAGE: `${image.registry}/${image.repository}:${image.tag}`, ARCHIVE: archive };
  await run(["make", "-C", repository, "image-dnsmasq"], { environment, timeoutMs: limitMs });
  await run([...(loadImage ?? []), archive]);
}

/** The lines of a screen that show who loaded what from where. */
function gist(screen: string): string {
  const telling = /boot\.ipxe|undionly|snponly|GRUB|iPXE 1|filename:|NBP|Start PXE|net0: 192|KERNEL-COMMAND|DAVIT-/;
  const lines = screen.split("\n").filter((line) => telling.test(line));
  return lines.map((line) => line.trim().slice(0, 150)).join("\n");
}

/** What dnsmasq did. */
function said(log: string): string {
  const lines = log.split("\n").filter((line) => /DHCPACK|PXE\(|bootfile name:|tftp.* sent \//.test(line));
  return [...new Set(lines.map((line) => line.replace(/^.*?dnsmasq(-\w+)?\[\d+\]: (\d+ )?/, "").slice(0, 150)))].join(
    "\n",
  );
}

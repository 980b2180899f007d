/** Real iPXE and GRUB load files by their digests, and load none that somebody has exchanged. */

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { startFileServer } from "../assets/file-server.ts";
import { missing } from "../helpers/requirements.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { expectOwnConfigs } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const files = ["vmlinuz", "initrd.gz"] as const;

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("a file with a digest", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-digests-"));
  const directory = join(folder, "manifests");
  const plain = readFileSync(join(import.meta.dirname, "manifests/check.yaml"), "utf8");
  let server: LinedServer;
  let withDigests = "";

  const asked = Promise.withResolvers<void>();
  let mirror: Awaited<ReturnType<typeof startFileServer>>;

  beforeAll(async () => {
    mkdirSync(directory);
    write(plain);
    mirror = await startFileServer([
      ({ url = "/" }, response) => void asked.promise.then(() => response.end(readFileSync(assetPath(basename(url))))),
    ]);
    const { host } = new URL(mirror.url);
    server = await startLinedServer(["--manifests", directory, "--fetch-assets-from", host]);
    const digestOf = (name: string) =>
      createHash("sha256")
        .update(readFileSync(assetPath(name)))
        .digest("hex");
    withDigests = files.reduce((text, name) => text.replace(name, `${name}?sha256=${digestOf(name)}`), plain);
    return async () => {
      await server.stop();
      mirror.close();
      rmSync(folder, { recursive: true });
    };
  }, startLimitMs);

  beforeEach(async () => {
    server.line.expect();
    await serve(withDigests, "sha256=");
  });

  const assetPath = (name: string) => join(server.assets, "quickstart", name);

  function write(manifest: string): void {
    writeFileSync(join(folder, "check.yaml"), manifest);
    renameSync(join(folder, "check.yaml"), join(directory, "check.yaml"));
  }

  async function serve(manifest: string, mark: string): Promise<void> {
    write(manifest);
    const script = async () => (await fetch(`http://${server.authority}/ipxe?mac=${quickstartMachine.mac}`)).text();
    await expect.poll(script, { timeout: 30_000 }).toContain(mark);
  }

  function loaderOf(kind: "ipxe" | "grub", firmware: "bios" | "uefi") {
    if (kind === "ipxe") return server.loader;
    return makeGrubLoader(server.makeDirectory(), firmware, server.authoritySeenByMachine);
  }

  function kernelStatuses(): readonly number[] {
    const asked = server.line.asked.filter(({ target }) => target.startsWith("/assets/quickstart/vmlinuz?sha256="));
    return asked.map(({ status }) => status);
  }

  const boots = [
    { kind: "ipxe", firmware: "bios", isMissing: missing("all-firmware") },
    { kind: "grub", firmware: "bios", isMissing: missing("grub", "grub-bios", "all-firmware") },
    { kind: "ipxe", firmware: "uefi", isMissing: missing("ovmf", "all-firmware") },
    { kind: "grub", firmware: "uefi", isMissing: missing("grub", "grub-uefi", "ovmf", "all-firmware") },
  ] as const;
  for (const { kind, firmware, isMissing } of boots) {
    it.skipIf(isMissing)(`boots by ${kind} on ${firmware}`, { timeout: bootTestLimitMs }, async () => {
      const { screen } = await server.boot({ ...quickstartMachine, firmware, loader: loaderOf(kind, firmware) });
      expectOwnConfigs(screen);
      expect(kernelStatuses()).not.toHaveLength(0);
      expect(kernelStatuses().every((status) => status === 200 || status === 206)).toBe(true);
    });
  }

  it.skipIf(missing("all-firmware"))(
    "boots by ipxe that waits until davit has fetched the files",
    {
      timeout: bootTestLimitMs,
    },
    async () => {
      const assets = files.map((name) => {
        const [, sha256] = new RegExp(`${name}\\?sha256=([0-9a-f]+)`).exec(withDigests) ?? [];
        return { name: `fetched/${name}`, url: `${mirror.url}/${name}`, sha256 };
      });
      const list = `spec:\n  assets: ${JSON.stringify(assets)}\n`;
      await serve(plain.replaceAll("quickstart/", "fetched/").replace("spec:\n", list), "/assets/fetched/");
      const path = "/assets/fetched/vmlinuz";
      server.line.expect({ path, status: 503, when: "delivered", does: async () => asked.resolve() });
      const { screen } = await server.boot({ ...quickstartMachine, firmware: "bios", loader: server.loader });
      const statuses = server.line.asked.filter(({ target }) => target.startsWith(path)).map(({ status }) => status);
      expect(statuses[0]).toBe(503);
      expect(statuses.at(-1)).toBe(200);
      expectOwnConfigs(screen);
    },
  );

  it.skipIf(missing("grub", "grub-bios", "all-firmware"))(
    "makes GRUB reboot when the initrd does not come",
    { timeout: bootTestLimitMs },
    async () => {
      const path = "/assets/quickstart/initrd.gz";
      const breaks = async () => {
        throw new Error("The line breaks");
      };
      server.line.expect({ path, status: 200, when: "arrived", does: breaks });
      const machine = { ...quickstartMachine, firmware: "bios", loader: loaderOf("grub", "bios") } as const;
      const { screen } = await server.boot(machine);
      expect(screen).toContain("davit: GRUB did not load the initrd.");
      expect(screen).not.toContain("Linux version");
    },
  );

  it.skipIf(missing("grub", "grub-bios", "all-firmware"))(
    "starts nothing by GRUB while the initrd is another file",
    { timeout: bootTestLimitMs },
    async () => {
      const restore = mutate("initrd.gz");
      try {
        const machine = { ...quickstartMachine, firmware: "bios", loader: loaderOf("grub", "bios") } as const;
        const { screen } = await server.boot(machine);
        expect(screen).toContain("davit: GRUB did not load the initrd.");
        expect(screen).not.toContain("Linux version");
      } finally {
        restore();
      }
    },
  );

  /** Changes one byte. @returns a function that changes it back. */
  function mutate(name: (typeof files)[number] = "vmlinuz"): () => void {
    const good = readFileSync(assetPath(name));
    const mutant = Buffer.from(good);
    mutant.writeUInt8(mutant.readUInt8(4_096) ^ 1, 4_096);
    writeFileSync(assetPath(name), mutant);
    return () => writeFileSync(assetPath(name), good);
  }

  it("makes iPXE ask again while it is another file, and boot once it is the right one", {
    timeout: bootTestLimitMs,
  }, async () => {
    const restore = mutate();
    const refused = { path: "/assets/quickstart/vmlinuz", status: 503, when: "delivered" } as const;
    server.line.expect({ ...refused, does: async () => {} }, { ...refused, does: async () => restore() });
    const { screen } = await server.boot({ ...quickstartMachine, firmware: "bios", loader: server.loader });
    expect(kernelStatuses().slice(0, 2)).toEqual([503, 503]);
    expect(kernelStatuses().at(-1)).toBe(200);
    expectOwnConfigs(screen);
  });

  it.skipIf(missing("grub", "grub-bios", "all-firmware"))(
    "is not started by GRUB while it is another file",
    {
      timeout: bootTestLimitMs,
    },
    async () => {
      const [, location = ""] = /kernel: (\S+)/.exec(withDigests) ?? [];
      const [head = ""] = withDigests.split("  boot:");
      const [, group = ""] = withDigests.split("---");
      const script = [
        `if linux (http,${server.authoritySeenByMachine})${location}; then boot; fi`,
        "echo another file",
        "sleep 1",
        "reboot",
      ];
      const restore = mutate();
      try {
        write(`${head}  boot:\n    grubScript: ${JSON.stringify(script.join("\n"))}\n---${group}`);
        const query = `mac=${quickstartMachine.mac}`;
        const config = async () => (await fetch(`http://${server.authority}/grub?${query}`)).text();
        await expect.poll(config, { timeout: 30_000 }).toContain("another file");
        const { screen } = await server.boot({
          ...quickstartMachine,
          firmware: "bios",
          loader: loaderOf("grub", "bios"),
        });
        expect(screen).toContain("another file");
        expect(screen).not.toContain("Linux version");
        // davit cut each connection.
        expect(new Set(kernelStatuses())).toEqual(new Set([0]));
      } finally {
        restore();
      }
    },
  );
});

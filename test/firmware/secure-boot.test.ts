/** Machines with Secure Boot: firmware, shim and GRUB start only what has a signature that they trust. */

import { execFileSync } from "node:child_process";
import { appendFileSync, copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Loader, quickstartMachine } from "../../tools/firmware/machine.ts";
import { Gpg } from "../helpers/gpg.ts";
import { missing } from "../helpers/requirements.ts";
import { expectBoot } from "./checked-boot.ts";
import { boots } from "./firmware-table.ts";
import { fillGrubDirectory } from "./grub-netboot.ts";
import { expectOwnConfigs } from "./guest-checks.ts";
import { type LanServer, startLanServer } from "./lan-server.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";
import { makeSecureLoaders, type SecureLoaders } from "./secure-loaders.ts";
import type { Trust } from "./secure-variables.ts";

const guestIsMissing = missing("qemu", "ovmf", "cloud-kernel", "busybox-static");
const loadersAreMissing = missing("shim", "sbsign", "objcopy", "grub", "grub-uefi", "grub-signed", "openssl");
const isNotAskedFor = missing("all-firmware");
const isEnabled = "secureboot: Secure boot enabled";
const linux = "Linux version";

describe.skipIf(guestIsMissing || loadersAreMissing || missing("network-namespace", "dnsmasq"))(
  "with Secure Boot, by HTTP Boot, a machine",
  () => {
    let network: LanServer;
    let loaders: SecureLoaders;

    beforeAll(async () => {
      const placed = (config: string) => config.replace("assets/ipxe.efi", "assets/shimx64.efi");
      network = await startLanServer("DHCP server", { architecture: "amd64", placed });
      const { server } = network;
      loaders = makeSecureLoaders(server.makeDirectory(), server.authoritySeenByMachine);
      cpSync(loaders.directory, server.assets, { recursive: true });
      return () => network.stop();
    }, startLimitMs);

    it("boots by shim, its team's GRUB and a kernel of Debian's", { timeout: bootTestLimitMs }, async () => {
      const loader = { kind: "lan", lan: network.lan, by: "http" } as const;
      const secureBoot = loaders.variables("db");
      const screen = await expectBoot(network.server, boots.secureHttp, loader, { secureBoot });
      expect(screen).toContain(isEnabled);
    });

    const skip = isNotAskedFor;
    it("does not start a kernel of which one byte is another", { skip, timeout: bootTestLimitMs }, async () => {
      const kernel = join(network.server.assets, "quickstart/vmlinuz");
      const bytes = readFileSync(kernel);
      const mutant = Buffer.from(bytes);
      const middle = mutant.length >> 1;
      mutant.writeUInt8(mutant.readUInt8(middle) ^ 1, middle);
      writeFileSync(kernel, mutant);
      try {
        const loader = { kind: "lan", lan: network.lan, by: "http" } as const;
        const machine = {
          ...quickstartMachine,
          firmware: "uefi",
          loader,
          secureBoot: loaders.variables("db"),
        } as const;
        const { screen } = await network.server.boot(machine);
        expectRefusedKernel(screen);
      } finally {
        writeFileSync(kernel, bytes);
      }
    });
  },
);

describe.skipIf(guestIsMissing || loadersAreMissing || isNotAskedFor)("with Secure Boot, by TFTP, a machine", () => {
  let server: BootServer;
  let loaders: SecureLoaders;

  beforeAll(async () => {
    server = await startBootServer(["--manifests", join(import.meta.dirname, "manifests")]);
    loaders = makeSecureLoaders(server.makeDirectory(), server.authoritySeenByMachine);
    return () => server.stop();
  }, startLimitMs);

  const shim = (directory = loaders.directory): Loader => ({ kind: "tftp", directory, file: "shimx64.efi" });

  /** The same files, but another GRUB. */
  function withGrub(file: string): string {
    const directory = server.makeDirectory();
    cpSync(loaders.directory, directory, { recursive: true });
    copyFileSync(file, join(directory, "grubx64.efi"));
    return directory;
  }

  /** @returns the screen of a machine that is switched off when it shows a text. */
  async function refused(loader: Loader, trust: Trust | undefined, text: string): Promise<string> {
    const machine = { ...quickstartMachine, firmware: "uefi", loader, secureBoot: loaders.variables(trust) } as const;
    const { screen } = await server.boot(machine, leaveAt(text));
    expect(screen).not.toContain(linux);
    return screen;
  }

  it.each([
    { trust: "db", boot: boots.secureTftp },
    { trust: "MokList", boot: boots.secureMok },
  ] as const)("boots with the team's certificate in $trust", { timeout: bootTestLimitMs }, async ({ trust, boot }) => {
    const screen = await expectBoot(server, boot, shim(), { secureBoot: loaders.variables(trust) });
    expect(screen).toContain(isEnabled);
  });

  it("does not start a kernel without a signature", { timeout: bootTestLimitMs }, async () => {
    const kernel = join(server.assets, "quickstart/vmlinuz");
    const bytes = readFileSync(kernel);
    execFileSync("sbattach", ["--remove", kernel], { stdio: "pipe" });
    expect(readFileSync(kernel).equals(bytes)).toBe(false);
    const machine = { ...quickstartMachine, firmware: "uefi", loader: shim() } as const;
    const { screen } = await server
      .boot({ ...machine, secureBoot: loaders.variables("db") })
      .finally(() => writeFileSync(kernel, bytes));
    expectRefusedKernel(screen);
  });

  it("boots a kernel that only the team has signed", { timeout: bootTestLimitMs }, async () => {
    const kernel = join(server.assets, "quickstart/vmlinuz");
    const bytes = readFileSync(kernel);
    execFileSync("sbattach", ["--remove", kernel], { stdio: "pipe" });
    loaders.sign(kernel);
    const machine = { ...quickstartMachine, firmware: "uefi", loader: shim() } as const;
    const { screen } = await server
      .boot({ ...machine, secureBoot: loaders.variables("db") })
      .finally(() => writeFileSync(kernel, bytes));
    expectOwnConfigs(screen);
    expect(screen).toContain(isEnabled);
  });

  const violation = "Verification failed: (0x1A) Security Violation";

  it("does not start a GRUB without a signature by shim", { timeout: bootTestLimitMs }, async () => {
    const screen = await refused(shim(withGrub(loaders.unsignedGrub)), "db", violation);
    expect(screen).not.toContain("Welcome to GRUB");
  });

  it("does not start the team's GRUB before it trusts the certificate", { timeout: bootTestLimitMs }, async () => {
    const screen = await refused(shim(), undefined, violation);
    expect(screen).not.toContain("Welcome to GRUB");
  });

  it("does not start a GRUB without a signature by its firmware", { timeout: bootTestLimitMs }, async () => {
    const directory = withGrub(loaders.unsignedGrub);
    const screen = await refused({ kind: "tftp", directory, file: "grubx64.efi" }, "db", "Access Denied");
    expect(screen).toMatch(/failed to load Boot0001 .*: Access Denied/);
    expect(screen).not.toContain("Welcome to GRUB");
  });

  it("does not get to davit by the GRUB that Debian has signed", { timeout: bootTestLimitMs }, async () => {
    const directory = withGrub("/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed");
    fillGrubDirectory(directory, "uefi", "insmod http\necho goes on\nsleep 5\n");
    const screen = await refused(shim(directory), undefined, "goes on");
    expect(screen).toContain("prohibited by secure boot policy");
  });
});

describe.skipIf(guestIsMissing || loadersAreMissing || isNotAskedFor || missing("gpg"))(
  "with Secure Boot and check_signatures=enforce, a machine",
  () => {
    let gpg: Gpg;
    let server: BootServer;
    let loaders: SecureLoaders;

    beforeAll(async () => {
      const folder = mkdtempSync(join(tmpdir(), "davit-enforce-"));
      const [keyFile, publicKeyFile] = [join(folder, "signing.key"), join(folder, "signing-key.gpg")];
      gpg = new Gpg();
      const fingerprint = gpg.makeKey("rack <rack@example.com>", { algorithm: "rsa3072" });
      writeFileSync(keyFile, gpg.exportSecret(fingerprint), { mode: 0o600 });
      writeFileSync(publicKeyFile, gpg.exportPublic(fingerprint));
      const manifests = join(import.meta.dirname, "manifests");
      server = await startBootServer(["--manifests", manifests, "--signing-key", keyFile]);
      for (const name of ["vmlinuz", "initrd.gz"]) gpg.signFile(join(server.assets, "quickstart", name));
      loaders = makeSecureLoaders(server.makeDirectory(), server.authoritySeenByMachine);
      loaders.enforce(publicKeyFile);
      return async () => {
        await server.stop();
        gpg.stop();
        rmSync(folder, { recursive: true });
      };
    }, startLimitMs);

    const machine = () =>
      ({
        ...quickstartMachine,
        firmware: "uefi",
        loader: { kind: "tftp", directory: loaders.directory, file: "shimx64.efi" },
        secureBoot: loaders.variables("db"),
      }) as const;

    it("boots what is signed", { timeout: bootTestLimitMs }, async () => {
      const { screen } = await server.boot(machine());
      expectOwnConfigs(screen);
      expect(screen).toContain(isEnabled);
    });

    it("refuses another initrd", { timeout: bootTestLimitMs }, async () => {
      appendFileSync(join(server.assets, "quickstart/initrd.gz"), "more");
      const { screen } = await server.boot(machine(), leaveAt("bad signature"));
      expect(screen).toContain("bad signature");
      expect(screen).not.toContain("DAVIT-CHECK");
    });
  },
);

/** The machine said so, and rebooted, which ends QEMU. */
function expectRefusedKernel(screen: string): void {
  const [, after = ""] = screen.split("Loading kernel\n");
  expect(after).toContain(
    "error: bad shim signature.\ndavit: GRUB did not load the kernel.\nRebooting in 10 seconds\n",
  );
  expect(after).not.toContain("Loading initrd");
  expect(screen).not.toContain(linux);
}

function leaveAt(waitsFor: string) {
  return { waitsFor, does: ({ switchOff }: { switchOff: () => void }) => switchOff() };
}

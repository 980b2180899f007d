/** A machine that boots nothing but what davit's key, and the same key's owner for assets, has signed. */

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFailed } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { hostSeenByMachine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { Gpg } from "../helpers/gpg.ts";
import { missing } from "../helpers/requirements.ts";
import { checkArguments, expectCommandLine, expectOwnConfigs } from "./guest-checks.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";
import { type Controls, type Onlooker, powerOn, tail } from "./power-on.ts";
import { makeSignedGrubLoader, type SignedFirmware, signedGrubConfig, signedGrubModules } from "./signed-grub.ts";

const programsAreMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "gpg", "grub");
const bootLimitMs = 180_000;
const assetNames = ["vmlinuz", "initrd.gz", "more.gz"];

describe.skipIf(programsAreMissing)("under check_signatures=enforce", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-signed-"));
  const assets = join(folder, "assets/quickstart");
  const publicKeyFile = join(folder, "signing-key.gpg");
  let gpg: Gpg;
  let davit: DavitProcess;

  beforeAll(async () => {
    gpg = new Gpg();
    const fingerprint = gpg.makeKey("rack <rack@example.com>", { algorithm: "rsa3072" });
    const keyFile = join(folder, "signing.key");
    writeFileSync(keyFile, gpg.exportSecret(fingerprint), { mode: 0o600 });
    writeFileSync(publicKeyFile, gpg.exportPublic(fingerprint));
    execFileSync(join(import.meta.dirname, "../../tools/firmware/boot-assets.sh"), [assets]);
    copyFileSync(join(assets, "initrd.gz"), join(assets, "more.gz"));
    for (const name of assetNames) gpg.signFile(join(assets, name));
    davit = await startDavit({
      manifests: writeManifests(),
      dataDir: join(folder, "data"),
      args: ["--assets-dir", join(folder, "assets"), "--signing-key", keyFile],
    });
  }, startLimitMs);

  afterAll(async () => {
    await davit?.stop();
    gpg?.stop();
    rmSync(folder, { recursive: true });
  });

  /** Those of the other machines, with a second initrd. */
  function writeManifests(): string {
    const text = readFileSync(join(import.meta.dirname, "manifests/check.yaml"), "utf8");
    const directory = join(folder, "manifests");
    mkdirSync(directory);
    const two = text.replace("initrd.gz]", "initrd.gz, /assets/quickstart/more.gz]");
    // An Install, whose entry is for the machine that asks.
    writeFileSync(join(directory, "check.yaml"), two.replace("spec:\n  boot:", "spec:\n  effect: Install\n  boot:"));
    return directory;
  }

  async function boot(
    firmware: SignedFirmware,
    port = davit.bootUrl.split(":").at(-1),
    onlooker?: Onlooker,
  ): Promise<string> {
    const directory = mkdtempSync(join(folder, "tftp-"));
    const authority = `${hostSeenByMachine}:${port}`;
    const loader = makeSignedGrubLoader({ directory, firmware, authority, publicKeyFile });
    const how = { timeoutMs: bootLimitMs, ...(onlooker && { onlooker }) };
    const { screen } = await powerOn({ ...quickstartMachine, firmware, loader }, how);
    onTestFailed(() => void process.stderr.write(`${tail(screen)}\n`));
    return screen;
  }

  it.skipIf(missing("grub-bios"))(
    "a BIOS machine boots the rendered config, its kernel and its two initrds",
    async () => {
      const transcript = await boot("bios");

      const args = `${checkArguments(new URL(davit.bootUrl).host)} "note=two words" price=$5 list=1&2;3`;
      expectCommandLine(transcript, `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args}`);
      expectOwnConfigs(transcript);
      const signatures = davit.log.filter(({ path, status }) => status === 200 && String(path).endsWith(".sig"));
      expect(signatures.map(({ path }) => path)).toEqual(assetNames.map((name) => `/assets/quickstart/${name}.sig`));
      const { mac, uuid } = quickstartMachine;
      expect(davit.log.filter(({ signature }) => signature === true)).toEqual([
        expect.objectContaining({ path: "/grub", status: 200, group: "default/this-machine", mac, uuid }),
      ]);
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("grub-bios", "all-firmware"))(
    "a machine refuses an initrd of which one byte is another",
    async () => {
      const path = join(assets, "more.gz");
      const bytes = readFileSync(path);
      const changed = Buffer.from(bytes);
      const middle = changed.length >> 1;
      changed.writeUInt8((changed.readUInt8(middle) + 1) % 256, middle);
      writeFileSync(path, changed);
      const leave = { waitsFor: "Press any key", does: ({ switchOff }: Controls) => switchOff() };
      const transcript = await boot("bios", undefined, leave);
      writeFileSync(path, bytes);
      expect(transcript).toContain("bad signature");
      expect(transcript).not.toContain("KERNEL-COMMAND-LINE");
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("grub-bios"))(
    "a machine refuses a config that was changed on its way",
    async () => {
      const proxy = await changingProxy(Number(new URL(davit.bootUrl).port), "role=web", "role=bad");
      const leave = { waitsFor: "bad signature", does: ({ switchOff }: Controls) => switchOff() };
      const transcript = await boot("bios", proxy.port, leave).finally(proxy.close);
      expect(proxy.changes).toBeGreaterThan(0);
      expect(transcript).toContain("bad signature");
      expect(transcript).not.toContain("Loading kernel");
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("grub-uefi", "ovmf", "all-firmware"))(
    "a UEFI machine boots the same",
    async () => {
      const transcript = await boot("uefi");
      expectOwnConfigs(transcript);
    },
    bootTestLimitMs,
  );
});

interface ChangingProxy {
  readonly port: string;
  /** How often something was changed. */
  readonly changes: number;
  readonly close: () => void;
}

/** Hands everything on to a port of this computer, and one text of the answers as another of the same length. */
async function changingProxy(target: number, from: string, to: string): Promise<ChangingProxy> {
  let changes = 0;
  const server: Server = createServer((client) => {
    const upstream = connectTo(target, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      const text = chunk.toString("latin1");
      if (text.includes(from)) changes++;
      client.write(Buffer.from(text.replace(from, to), "latin1"));
    });
    upstream.on("end", () => client.end()).on("error", () => client.destroy());
    client.on("error", () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: String(typeof address === "object" ? address?.port : ""),
    get changes() {
      return changes;
    },
    close: () => void server.close(),
  };
}

it("docs/use/signing.md shows the GRUB image that is booted here", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/use/signing.md"), "utf8");
  expect(page).toContain(signedGrubConfig("DAVIT:8080").replaceAll(/^(?=.)/gm, " ".repeat(7)));
  expect(page.replaceAll(/\s+\\?\s*/g, " ")).toContain(signedGrubModules);
});

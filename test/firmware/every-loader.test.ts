import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { grubConfig, makeGrubLoader } from "./grub-netboot.ts";
import { type Firmware, type Loader, quickstartMachine } from "./machine.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

const { mac, uuid } = quickstartMachine;
const guestIsMissing = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");

interface Row {
  readonly name: string;
  readonly isMissing: boolean;
  readonly firmware: Firmware;
  readonly loader: (server: BootServer) => Loader;
  /** The kernel's command line, made of the Profile's arguments in the spelling of the loader. */
  readonly commandLine: (args: string) => string;
}

// iPXE hands arguments on as they are. GRUB quotes a whole word again; the kernel reads both alike.
const ipxeNote = `note="two words"`;
const grubNote = `"note=two words"`;

const rows: readonly Row[] = [
  {
    name: "BIOS and iPXE",
    isMissing: false,
    firmware: "bios",
    loader: ipxe,
    commandLine: (args) => `${args} ${ipxeNote} price=$5 list=1&2;3 initrd=initrd.gz`,
  },
  {
    name: "UEFI and iPXE",
    isMissing: missing("ovmf"),
    firmware: "uefi",
    loader: ipxe,
    commandLine: (args) => `vmlinuz ${args} ${ipxeNote} price=$5 list=1&2;3 initrd=initrd.gz`,
  },
  {
    name: "BIOS and GRUB",
    isMissing: missing("grub", "grub-bios"),
    firmware: "bios",
    loader: (server) => makeGrubLoader(server.makeDirectory(), "bios", server.authoritySeenByMachine),
    commandLine: (args) => `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args} ${grubNote} price=$5 list=1&2;3`,
  },
  {
    name: "UEFI and GRUB",
    isMissing: missing("ovmf", "grub", "grub-uefi"),
    firmware: "uefi",
    loader: (server) => makeGrubLoader(server.makeDirectory(), "uefi", server.authoritySeenByMachine),
    commandLine: (args) => `BOOT_IMAGE=/assets/quickstart/vmlinuz ${args} ${grubNote} price=$5 list=1&2;3`,
  },
];

describe.skipIf(guestIsMissing)("one Profile boots Linux, which finds its own configs,", () => {
  let server: BootServer;

  beforeAll(async () => {
    server = await startBootServer(join(import.meta.dirname, "manifests"));
    return () => server.stop();
  }, startLimitMs);

  for (const { name, isMissing, firmware, loader, commandLine } of rows) {
    it.skipIf(isMissing)(
      `on a machine with ${name}`,
      async () => {
        const transcript = await server.boot({ ...quickstartMachine, firmware, loader: loader(server) });

        const args =
          `console=ttyS0 panic=-1 davit.url=http://${server.authority} davit.check=1 role=web ` +
          `booted=${mac.replaceAll(":", "-")}`;
        expect(linesWith(transcript, "KERNEL-COMMAND-LINE")).toEqual([`KERNEL-COMMAND-LINE ${commandLine(args)}`]);
        expectOwnConfigs(transcript);
      },
      bootTestLimitMs,
    );
  }
});

it("docs/firmware.md shows the GRUB config that is booted here", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/firmware.md"), "utf8");
  const shown = grubConfig("DAVIT:8080").replaceAll(/^(?=.)/gm, "    ");
  expect(page).toContain(shown);
});

function ipxe({ authoritySeenByMachine }: BootServer): Loader {
  return { kind: "ipxe", url: `http://${authoritySeenByMachine}/boot.ipxe` };
}

/** What every guest must have got, whatever started it. */
function expectOwnConfigs(transcript: string): void {
  expect(linesWith(transcript, "CHECK failed")).toEqual([]);
  expect(transcript).toContain("DAVIT-CHECK PASSED");
  expect(JSON.parse(body(transcript, "ignition"))).toEqual({ ignition: { version: "3.4.0" }, role: "web" });
  expect(JSON.parse(body(transcript, "generic"))).toEqual({ uuid, mac, rawQuery: `uuid=${uuid}&mac=${mac}` });
  expect(body(transcript, "metadata").split("\n")).toEqual([
    "RACK_ROW=7",
    "ROLE=web",
    `MAC=${mac}`,
    `REQUEST_QUERY_MAC=${mac}`,
    `REQUEST_QUERY_UUID=${uuid}`,
    `REQUEST_RAW_QUERY=uuid=${uuid}&mac=${mac}`,
  ]);
}

function linesWith(transcript: string, text: string): readonly string[] {
  return transcript.split("\n").filter((line) => line.includes(text));
}

/** What the guest got for one of its requests. */
function body(transcript: string, name: string): string {
  const [, text = ""] = new RegExp(`^BEGIN ${name}\n(.*?)\nEND ${name}$`, "ms").exec(transcript) ?? [];
  return text.trimEnd();
}

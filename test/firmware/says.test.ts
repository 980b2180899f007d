import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { guestInitrd } from "./guest-initrd.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const manifests = join(import.meta.dirname, "guests/says");
const grubIsMissing = missing("grub", "grub-bios");

const notes = ["two words", "two  words", "$5 & {x}", "a && poweroff", "x ; reboot # y", "|| shell", "#1", "${x"];
const quotes = ["it's", String.raw`back\slash`, 'say "hi" now', "à la carte", "à"];

/** What the notes are as arguments, as Linux reads them. */
function numbered(values: readonly string[]): readonly string[] {
  return values.map((value, at) => `n${at}=${value}`);
}

const ofProfile = numbered(notes);
const ofGroup = ["place=rack 4, left", "last=rack 4, left"];

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("a machine", () => {
  let server: LinedServer;

  beforeAll(async () => {
    server = await startLinedServer(["--manifests", manifests]);
    const folder = join(server.assets, "guests");
    mkdirSync(folder);
    writeFileSync(join(folder, "says.gz"), guestInitrd({ name: "says" }));
    return () => server.stop();
  }, startLimitMs);

  beforeEach(() => server.line.expect());

  it(
    "gets values as single arguments by iPXE, whatever is in them",
    async () => {
      const { commandLine, read } = await boot("ipxe");
      expect(commandLine).toContain('"n0=two words" "n1=two  words" "n2=$5 & {x}"');
      expect(read).toEqual(expect.arrayContaining([...ofProfile, ...ofGroup]));
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("all-firmware"))(
    "gets quotes, backslashes and letters that Linux takes for blanks by iPXE",
    async () => {
      const { read } = await boot("ipxe", "quotes");
      expect(read).toEqual(expect.arrayContaining([...numbered(quotes)]));
    },
    bootTestLimitMs,
  );

  it.skipIf(grubIsMissing)(
    "gets values as single arguments by GRUB",
    async () => {
      const { commandLine, read } = await boot("grub");
      expect(commandLine).toContain('"n0=two words" "n1=two  words" "n2=$5 & {x}"');
      expect(read).toEqual(expect.arrayContaining([...ofProfile, ...ofGroup]));
    },
    bootTestLimitMs,
  );

  it("gets nothing of what GRUB would hand on with a backslash more", async () => {
    const answer = await fetch(`http://${server.authority}/grub?mac=${quickstartMachine.mac}&serial=quotes`);
    expect({ status: answer.status, body: await answer.text() }).toEqual({
      status: 500,
      body: "# 500 config broken\nset davit_answered=yes\n",
    });
  });

  it.skipIf(missing("all-firmware"))(
    "boots from a script of its Profile's by iPXE",
    async () => {
      const { read, screen } = await boot("ipxe", "scripts");
      expect(screen).toContain("This is node-1");
      expect(read).toEqual(expect.arrayContaining(["by=script", `mac=${quickstartMachine.mac.replaceAll(":", "-")}`]));
    },
    bootTestLimitMs,
  );

  it.skipIf(grubIsMissing || missing("all-firmware"))(
    "boots from a config of its Profile's by GRUB",
    async () => {
      const { read, screen } = await boot("grub", "scripts");
      expect(screen).toContain("This is node-1");
      expect(read).toContain("by=grubScript");
    },
    bootTestLimitMs,
  );

  async function boot(loader: "ipxe" | "grub", serial = "none") {
    const authority = server.authoritySeenByMachine;
    const { screen } = await server.boot({
      ...quickstartMachine,
      firmware: "bios",
      serial,
      loader:
        loader === "ipxe"
          ? server.loader
          : makeGrubLoader(server.makeDirectory(), "bios", authority, `&serial=${serial}`),
    });
    // The serial line's bytes come one by one.
    const shown = Buffer.from(screen, "latin1").toString("utf8");
    const after = (mark: string) => linesWith(shown, mark).map((line) => line.slice(mark.length));
    return { screen, commandLine: after("KERNEL-COMMAND-LINE ").join("\n"), read: after("LINUX-READS ") };
  }
});

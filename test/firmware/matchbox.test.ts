/** A machine of a matchbox site boots the same from davit, after an import. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { hostSeenByMachine, quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { runImport } from "../import-matchbox/import-command.ts";
import { startMatchbox } from "../import-matchbox/matchbox-process.ts";
import { writeTree } from "../import-matchbox/site.ts";
import { type BootServer, bootTestLimitMs, startBootServer, startLimitMs } from "./machine-boot.ts";

// What the machine's kernel was told, but for what the boot client adds.
const shownCommandLine = /davit\.role=\S+ site="two words" uuid=\S+/;

const boot = {
  kernel: "/assets/quickstart/vmlinuz",
  initrd: ["/assets/quickstart/initrd.gz"],
  args: ["console=ttyS0", "davit.role=lookout", 'site="two words"', "uuid=\u0024{uuid}"],
};

const site = {
  "groups/node.json": { id: "node", profile: "linux", selector: { mac: quickstartMachine.mac } },
  "groups/default.json": { id: "default", profile: "none" },
  "profiles/linux.json": { id: "linux", name: "Linux", boot },
  "profiles/none.json": { id: "none", boot: { kernel: "/assets/none" } },
};

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("a machine of a matchbox", () => {
  let folder: string;
  let server: BootServer;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "davit-matchbox-"));
    writeTree(join(folder, "matchbox"), site);
    const { code } = await runImport("matchbox", join(folder, "matchbox"), "--out", join(folder, "manifests"));
    expect(code).toBe(0);
    server = await startBootServer(["--manifests", join(folder, "manifests")]);
    return async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    };
  }, startLimitMs);

  async function commandLineFrom(authority: string): Promise<string | undefined> {
    const loader = { kind: "ipxe", url: `http://${authority}/boot.ipxe` } as const;
    const { screen } = await server.boot(
      { ...quickstartMachine, firmware: "bios", loader },
      { waitsFor: "davit:/# ", does: ({ type }) => type("cat /proc/cmdline; exit\n") },
    );
    return shownCommandLine.exec(screen.slice(screen.indexOf("cat /proc/cmdline")))?.[0];
  }

  it.skipIf(missing("all-firmware"))(
    "boots from davit with the arguments of its profile",
    async () => {
      const line = `davit.role=lookout site="two words" uuid=${quickstartMachine.uuid}`;
      expect(await commandLineFrom(server.authoritySeenByMachine)).toBe(line);
    },
    bootTestLimitMs,
  );

  it.skipIf(missing("matchbox"))(
    "boots from matchbox with the same",
    async () => {
      const matchbox = await startMatchbox(process.env.MATCHBOX ?? "", join(folder, "matchbox"), server.assets);
      try {
        const theirs = await commandLineFrom(`${hostSeenByMachine}:${matchbox.port}`);
        expect(theirs).toBeDefined();
        expect(await commandLineFrom(server.authoritySeenByMachine)).toBe(theirs);
      } finally {
        await matchbox.stop();
      }
    },
    2 * bootTestLimitMs,
  );
});

/** An iPXE that DHCP sends to `/chain.ipxe`: labels of its URL and of its firmware select the Group. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { missing } from "../helpers/requirements.ts";
import { linesWith } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const { mac, uuid } = quickstartMachine;
const rows = [
  { firmware: "bios", buildarch: "i386", platform: "pcbios", isMissing: false },
  { firmware: "uefi", buildarch: "x86_64", platform: "efi", isMissing: missing("ovmf", "all-firmware") },
] as const;

describe.skipIf(missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static"))("a machine behind /chain.ipxe", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-chain-"));
  const directory = join(folder, "manifests");
  let server: LinedServer;

  beforeAll(async () => {
    mkdirSync(directory);
    writeFileSync(join(directory, "chain.yaml"), objects());
    server = await startLinedServer(["--manifests", directory]);
    return async () => {
      await server.stop();
      rmSync(folder, { recursive: true });
    };
  }, startLimitMs);

  for (const { firmware, buildarch, platform, isMissing } of rows) {
    it.skipIf(isMissing)(
      `gets the Group of its zone and its buildarch by ${firmware}`,
      async () => {
        const url = `http://${server.authoritySeenByMachine}/chain.ipxe?zone=a`;
        server.line.expect();
        const { screen } = await server.boot({ ...quickstartMachine, firmware, loader: { kind: "ipxe", url } });

        const [line = ""] = linesWith(screen, "KERNEL-COMMAND-LINE");
        expect(line).toContain(` zone-a-${buildarch}`);
        const [script, ipxe] = server.line.asked.map(({ target }) => target);
        expect(script).toBe("/chain.ipxe?zone=a");
        const sent = labelsFromQuery(ipxe?.split("?")[1] ?? "");
        expect(Object.fromEntries(sent)).toMatchObject({ uuid, mac, zone: "a", arch: "x86_64", buildarch, platform });
        expect(sent.get("net0/mac")).toBe(mac.replaceAll(":", "-"));
      },
      bootTestLimitMs,
    );
  }
});

/** Groups for each buildarch of two zones, and one for everybody. Each adds its name as an argument. */
function objects(): string {
  const [profile = ""] = readFileSync(join(import.meta.dirname, "manifests/check.yaml"), "utf8").split("---\n");
  const selectors = [
    { name: "everybody", spec: "matchAll: true" },
    ...["a", "b"].flatMap((zone) => [
      { name: `zone-${zone}`, spec: `selector: {matchLabels: {zone: ${zone}}}` },
      ...["i386", "x86_64"].map((arch) => ({
        name: `zone-${zone}-${arch}`,
        spec: `selector: {matchLabels: {zone: ${zone}, buildarch: ${arch}}}`,
      })),
    ]),
  ];
  const groups = selectors.map(
    ({ name, spec }) =>
      `apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: ${name.replace("_", "-")}}\n` +
      `spec:\n  profileRef: {name: check}\n  metadata: {role: web}\n  args: [${name}]\n  ${spec}\n`,
  );
  return [profile, ...groups].join("---\n");
}

/** The DHCP lines of docs/use/secure-boot.md: with them, the servers of docs/operate/dhcp.md name shim to UEFI machines. */

import { describe, expect, it } from "vitest";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import type { Firmware } from "./dhcp-message.ts";
import { dnsmasq, kea, offersOf } from "./dhcp-servers.ts";

const servers = [
  { name: "dnsmasq", server: dnsmasq, kind: "dnsmasq server", lines: "dnsmasq", isMissing: missing("dnsmasq") },
  { name: "Kea", server: kea, kind: "jsonc kea", lines: "jsonc", isMissing: missing("kea-dhcp4") },
] as const;
const shimUrl = "http://192.168.1.20:8080/assets/shimx64.efi";

describe.each(servers)("$name with shim instead of iPXE", ({ server, kind, lines, isMissing }) => {
  const [config = ""] = blocksOf(readPage("operate/dhcp.md"), kind);
  const changed = config.replaceAll("snponly.efi", "shimx64.efi").replace("/assets/ipxe.efi", "/assets/shimx64.efi");

  it("has the page's lines", () => {
    const [shown = ""] = blocksOf(readPage("use/secure-boot.md"), lines);
    expect(shown.split("\n")).toHaveLength(2);
    for (const line of shown.split("\n")) expect(changed).toContain(line);
  });

  it.skipIf(missing("network-namespace") || isMissing)("names it to UEFI machines alone", async () => {
    const machines: readonly Firmware[] = [
      { architecture: 0 },
      { architecture: 7 },
      { architecture: 9 },
      { architecture: 16, vendorClass: "HTTPClient" },
    ];
    expect(await offersOf(server, changed, machines)).toMatchObject([
      { file: "undionly.kpxe" },
      { file: "shimx64.efi", nextServer: "192.168.1.10" },
      { file: "shimx64.efi", nextServer: "192.168.1.10" },
      { file: shimUrl, vendorClass: "HTTPClient" },
    ]);
  });
});

/** The network of docs/reference/firmware.md, with a dnsmasq that is configured as that page says, and a davit. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Architecture } from "../../tools/firmware/boot-assets.ts";
import { type Lan, startLan } from "../../tools/firmware/lan.ts";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { type BootServer, startBootServer } from "./machine-boot.ts";

export interface LanServer {
  readonly lan: Lan;
  readonly server: BootServer;
  /** What dnsmasq offers by TFTP. */
  readonly tftp: string;
  stop(): Promise<void>;
}

/** The configs that the page shows, in its order. */
export const dnsmasqRoles = ["DHCP server", "proxy-DHCP", "DHCPv6 server"] as const;
type DnsmasqRole = (typeof dnsmasqRoles)[number];

export interface LanServerOptions {
  readonly architecture: Architecture;
  /** The directory of davit's objects; `manifests` beside this file unless given. */
  readonly manifests?: string;
  /** Further words of davit's command line. */
  readonly args?: readonly string[];
  /** Changes the page's config. */
  readonly placed?: (config: string) => string;
}

const ownManifests = join(import.meta.dirname, "manifests");

/** Starts all of it. As proxy-DHCP dnsmasq has a router beside it, which gives the addresses. */
export async function startLanServer(
  role: DnsmasqRole,
  { architecture, manifests = ownManifests, args = [], placed = (config) => config }: LanServerOptions,
): Promise<LanServer> {
  const folder = mkdtempSync(join(tmpdir(), "davit-lan-"));
  const tftp = join(folder, "tftp");
  mkdirSync(tftp);
  const lan = await startLan(folder, role === "DHCPv6 server" ? "IPv6" : "IPv4");
  const stop = async () => {
    await lan.stop();
    rmSync(folder, { recursive: true });
  };
  try {
    if (role === "proxy-DHCP") await lan.startRouter();
    await lan.startDnsmasq(placed(configOf(role)).replace("/srv/tftp", tftp));
    const server = await startBootServer(["--manifests", manifests, ...args], { architecture, lan });
    return { lan, server, tftp, stop: () => server.stop().then(stop) };
  } catch (cause) {
    await stop();
    throw cause;
  }
}

function configOf(role: DnsmasqRole): string {
  const config = blocksOf(readPage("reference/firmware.md"), "dnsmasq")[dnsmasqRoles.indexOf(role)];
  if (config === undefined) throw new Error(`docs/reference/firmware.md shows no dnsmasq as ${role}`);
  return `${config}\n`;
}

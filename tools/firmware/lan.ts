/**
 * A network like the one that docs/reference/firmware.md configures, in kernel namespaces of its own: davit and dnsmasq
 * on a host that is 192.168.1.10 and has the network on `eth0`, and beside them, if wanted, a router at 192.168.1.1 that
 * gives addresses and knows nothing of booting. With IPv6 the host is fd00::10, and nobody has an IPv4 address. A machine
 * joins it by the network device `tap0`.
 *
 * Needs no root where users may make namespaces. Nothing outside is changed, and when the processes inside have ended,
 * the kernel removes it all.
 */

import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ChildProgram, end, says } from "../child-program.ts";

/** The DHCP server of the router. */
type RouterServer = "dnsmasq" | "Kea";

export type IpVersion = "IPv4" | "IPv6";

export interface Lan {
  readonly version: IpVersion;
  /** davit's boot service, to be started there. */
  readonly authority: string;
  /** The network device of a machine's card. */
  readonly tap: string;
  /** Words before a command that runs it on davit's host. */
  readonly enter: readonly string[];
  /** Starts dnsmasq on davit's host. Resolves when it answers. */
  startDnsmasq(config: string): Promise<void>;
  /** Starts the router. Resolves when it gives addresses. */
  startRouter(server?: RouterServer): Promise<void>;
  /** Ends the router, and waits until it is gone. */
  stopRouter(): Promise<void>;
  /** Ends what was started and waits until it is gone. */
  stop(): Promise<void>;
}

/** A host's network namespace, and the names of the network devices to be made there. */
export interface LanHost {
  /** Words before a command that runs it there. */
  readonly enter: readonly string[];
  readonly bridge: string;
  readonly tap: string;
  /** The host's end of the cable to the router. */
  readonly cable: string;
}

const hosts = {
  IPv4: { address: "192.168.1.10/24", authority: "192.168.1.10:8080" },
  // Without the search for duplicates, for which the network would have to be there already.
  IPv6: { address: "fd00::10/64 nodad", authority: "[fd00::10]:8080" },
} as const;

const hostScript = ({ bridge, tap }: Omit<LanHost, "enter">, version: IpVersion) => `
set -e
ip link add ${bridge} type bridge
ip tuntap add ${tap} mode tap
ip link set ${tap} master ${bridge} up
ip addr add ${hosts[version].address} dev ${bridge}
ip link set ${bridge} up
echo ready
exec cat`;

const routerConfig = `port=0
interface=eth0
bind-interfaces
dhcp-range=192.168.1.100,192.168.1.199
`;

const keaConfig = (folder: string) => ({
  Dhcp4: {
    "interfaces-config": { interfaces: ["eth0"] },
    "lease-database": { type: "memfile", name: join(folder, "kea-leases4.csv") },
    subnet4: [{ id: 1, subnet: "192.168.1.0/24", pools: [{ pool: "192.168.1.100 - 192.168.1.199" }] }],
  },
});

/**
 * Makes the network, with a host of its own.
 * @param folder where the files of its servers are.
 * @throws {Error} with what a command wrote that failed.
 */
export async function startLan(folder: string, version: IpVersion = "IPv4"): Promise<Lan> {
  const names = { bridge: "eth0", tap: "tap0", cable: "router" };
  // `cat` ends with this process, however that ends, and the network with it.
  const script = `ip link set lo up\n${hostScript(names, version)}`;
  const host = await start([...unshare, "--map-root-user", "sh", "-c", script], "ready");
  const lan = lanOf(folder, { ...names, enter: enterNamespace(host, true) }, [host], true);
  return { ...lan, version, authority: hosts[version].authority };
}

/**
 * Makes the network at a host that is there, such as a node of a cluster. Needs root.
 * @throws {Error} with what a command wrote that failed.
 */
export async function startLanAt(folder: string, host: LanHost): Promise<Lan> {
  const script = await start([...host.enter, "sh", "-c", hostScript(host, "IPv4")], "ready");
  const lan = lanOf(folder, host, [script], false);
  return {
    ...lan,
    stop: async () => {
      await lan.stop();
      for (const device of [host.tap, host.bridge]) run([...host.enter, "ip", "link", "delete", device]);
    },
  };
}

/** @param hasUsers whether the host has a namespace of users, too. */
function lanOf(folder: string, host: LanHost, children: ChildProgram[], hasUsers: boolean): Lan {
  const { enter, tap } = host;
  let router: readonly ChildProgram[] = [];
  const startDnsmasq = async (name: string, config: string, within: readonly string[]) => {
    const file = join(folder, `${name}.conf`);
    writeFileSync(file, config);
    const own = [`--conf-file=${file}`, `--dhcp-leasefile=${join(folder, `${name}.leases`)}`, "--pid-file="];
    return await start([...within, "dnsmasq", "--no-daemon", ...own], "started, version");
  };
  const stopRouter = async () => {
    for (const child of router) await end(child);
    router = [];
  };
  return {
    version: "IPv4",
    authority: hosts.IPv4.authority,
    tap,
    enter,
    startDnsmasq: async (config) => void children.unshift(await startDnsmasq("dnsmasq", config, enter)),
    startRouter: async (server = "dnsmasq") => {
      const own = await start([...enter, ...unshare, "sh", "-c", "echo ready; exec cat"], "ready");
      router = [own];
      const enterRouter = enterNamespace(own, hasUsers);
      plugIn(host, own, enterRouter);
      const serves = () =>
        server === "Kea" ? startKea(folder, enterRouter) : startDnsmasq("router", routerConfig, enterRouter);
      router = [await serves(), own];
    },
    stopRouter,
    stop: async () => {
      await stopRouter();
      for (const child of children) await end(child);
    },
  };
}

/** Kea, without a boot file: as a router that knows nothing of booting. */
async function startKea(folder: string, enterRouter: readonly string[]): Promise<ChildProgram> {
  const file = join(folder, "kea.json");
  writeFileSync(file, JSON.stringify(keaConfig(folder)));
  const places = ["env", `KEA_PIDFILE_DIR=${folder}`, `KEA_LOCKFILE_DIR=${folder}`];
  return await start([...enterRouter, ...places, "kea-dhcp4", "-c", file], "DHCP4_STARTED");
}

const unshare = ["unshare", "--net"];

function enterNamespace({ pid }: ChildProgram, hasUsers: boolean): readonly string[] {
  return ["nsenter", `--target=${pid}`, "--net", ...(hasUsers ? ["--user", "--preserve-credentials"] : [])];
}

/** A cable from the host's bridge to the router. */
function plugIn({ enter, bridge, cable }: LanHost, { pid }: ChildProgram, enterRouter: readonly string[]): void {
  const host = (...words: readonly string[]) => run([...enter, "ip", ...words]);
  const atRouter = (...words: readonly string[]) => run([...enterRouter, "ip", ...words]);
  host("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", String(pid));
  host("link", "set", cable, "master", bridge, "up");
  atRouter("addr", "add", "192.168.1.1/24", "dev", "eth0");
  atRouter("link", "set", "eth0", "up");
}

async function start([program = "", ...words]: readonly string[], ready: string): Promise<ChildProgram> {
  const child = spawn(program, words, { stdio: "pipe" });
  await says(child, ready);
  return child;
}

function run([program = "", ...words]: readonly string[]): void {
  execFileSync(program, words, { stdio: "pipe" });
}

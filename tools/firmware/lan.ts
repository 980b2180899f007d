/**
 * A network like the one that docs/reference/firmware.md configures, in kernel namespaces of its own: davit and dnsmasq on a host
 * that is 192.168.1.10 and has the network on `eth0`, and beside them, if wanted, a router at 192.168.1.1 that gives
 * addresses and knows nothing of booting. A machine joins it by the network device `tap0`.
 *
 * Needs no root where users may make namespaces. Nothing outside is changed, and when the processes inside have ended,
 * the kernel removes it all.
 */

import { execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ChildProgram, end, says } from "../child-program.ts";

export interface Lan {
  /** davit's boot service, to be started there. */
  readonly authority: string;
  /** The network device of a machine's card. */
  readonly tap: string;
  /** Words before a command that runs it on davit's host. */
  readonly enter: readonly string[];
  /** Starts dnsmasq on davit's host. Resolves when it answers. */
  startDnsmasq(config: string): Promise<void>;
  /** Starts the router. Resolves when it gives addresses. */
  startRouter(): Promise<void>;
  /** Ends what was started and waits until it is gone. */
  stop(): Promise<void>;
}

const hostScript = `
set -e
ip link set lo up
ip link add eth0 type bridge
ip tuntap add tap0 mode tap
ip link set tap0 master eth0 up
ip addr add 192.168.1.10/24 dev eth0
ip link set eth0 up
echo ready
exec cat`;

const routerConfig = `port=0
interface=eth0
bind-interfaces
dhcp-range=192.168.1.100,192.168.1.199
`;

/**
 * Makes the network.
 * @param folder where the files of its servers are.
 * @throws {Error} with what a command wrote that failed.
 */
export async function startLan(folder: string): Promise<Lan> {
  const children: ChildProgram[] = [];
  const start = async (words: readonly string[], ready: string) => {
    const child = launch(words);
    children.unshift(child);
    await says(child, ready);
    return child;
  };
  // `cat` ends with this process, however that ends, and the network with it.
  const host = await start([...unshare, "--map-root-user", "sh", "-c", hostScript], "ready");
  const enter = enterNamespace(host);
  const dnsmasq = (name: string, config: string, within: readonly string[]) => {
    const file = join(folder, `${name}.conf`);
    writeFileSync(file, config);
    const own = [`--conf-file=${file}`, `--dhcp-leasefile=${join(folder, `${name}.leases`)}`, "--pid-file="];
    return start([...within, "dnsmasq", "--no-daemon", ...own], "started, version");
  };
  return {
    authority: "192.168.1.10:8080",
    tap: "tap0",
    enter,
    startDnsmasq: async (config) => void (await dnsmasq("dnsmasq", config, enter)),
    startRouter: async () => {
      const router = await start([...enter, ...unshare, "sh", "-c", "echo ready; exec cat"], "ready");
      plugIn(enter, router);
      await dnsmasq("router", routerConfig, enterNamespace(router));
    },
    stop: async () => {
      for (const child of children) await end(child);
    },
  };
}

const unshare = ["unshare", "--net"];

function enterNamespace({ pid }: ChildProgram): readonly string[] {
  return ["nsenter", `--target=${pid}`, "--user", "--net", "--preserve-credentials"];
}

/** A cable from the host's bridge to the router. */
function plugIn(enter: readonly string[], router: ChildProgram): void {
  const host = (...words: readonly string[]) => run([...enter, "ip", ...words]);
  const atRouter = (...words: readonly string[]) => run([...enterNamespace(router), "ip", ...words]);
  host("link", "add", "router", "type", "veth", "peer", "name", "eth0", "netns", String(router.pid));
  host("link", "set", "router", "master", "eth0", "up");
  atRouter("addr", "add", "192.168.1.1/24", "dev", "eth0");
  atRouter("link", "set", "eth0", "up");
}

function run([program = "", ...words]: readonly string[]): void {
  execFileSync(program, words, { stdio: "pipe" });
}

function launch([program = "", ...words]: readonly string[]): ChildProgram {
  return spawn(program, words, { stdio: "pipe" });
}

/** Resolves once the process wrote a text, to either output. */

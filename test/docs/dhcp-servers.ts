/**
 * DHCP servers with the configs of docs/operate/dhcp.md, each in a network of its own: the server is 192.168.1.10 on `eth0`,
 * and a relay at 192.168.1.1 asks it for machines. Nothing outside is changed, and when the processes inside have ended,
 * the kernel removes it all.
 */

import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type ChildProgram, end, says } from "../../tools/child-program.ts";
import type { BootOffer, Firmware } from "./dhcp-message.ts";

/** A program, and how it is run on a config. */
export interface DhcpServer {
  /** @param folder for files of its own. */
  readonly words: (folder: string, config: string) => readonly string[];
  /** The config with the folder instead of places of the system. */
  readonly placed?: (text: string, folder: string) => string;
  /** What it writes once it answers. */
  readonly ready: string;
}

export const dnsmasq: DhcpServer = {
  words: (folder, config) => [
    "dnsmasq",
    "--no-daemon",
    "--no-ping",
    `--conf-file=${config}`,
    `--dhcp-leasefile=${folder}/leases`,
    "--pid-file=",
  ],
  placed: (text, folder) => text.replace(/^tftp-root=.*$/m, `tftp-root=${folder}`),
  ready: "started, version",
};

export const kea: DhcpServer = {
  words: (folder, config) => [
    "env",
    `KEA_PIDFILE_DIR=${folder}`,
    `KEA_LOCKFILE_DIR=${folder}`,
    "kea-dhcp4",
    "-c",
    config,
  ],
  placed: (text, folder) => text.replaceAll("/var/lib/kea", folder),
  ready: "DHCP4_STARTED",
};

export const dhcpd: DhcpServer = {
  words: (folder, config) => {
    writeFileSync(join(folder, "leases"), "");
    return ["dhcpd", "-f", "-d", "-cf", config, "-lf", `${folder}/leases`, "-pf", `${folder}/pid`, "eth0"];
  },
  ready: "Server starting service",
};

const addresses = { server: "192.168.1.10", relay: "192.168.1.1" };

const makeNetwork = `
set -e
ip link set lo up
ip link add eth0 type veth peer name relay
ip addr add ${addresses.server}/24 dev eth0
ip link set eth0 up
echo ready
exec cat`;

/**
 * What the server offers to each firmware.
 * @throws {Error} with what a program wrote that ended.
 */
export async function offersOf(
  server: DhcpServer,
  config: string,
  firmware: readonly Firmware[],
): Promise<readonly BootOffer[]> {
  const folder = mkdtempSync(join(tmpdir(), "davit-dhcp-"));
  const file = join(folder, "config");
  writeFileSync(file, `${server.placed?.(config, folder) ?? config}\n`);
  const children: ChildProgram[] = [];
  const start = async (words: readonly string[], ready: string) => {
    const child = launch(words);
    children.unshift(child);
    await says(child, ready);
    return child;
  };
  try {
    // `cat` ends with this process, however that ends, and the network with it.
    const host = await start(["unshare", "--map-root-user", "--net", "sh", "-c", makeNetwork], "ready");
    const onHost = enterNamespace(host);
    const relay = await start([...onHost, "unshare", "--net", "sh", "-c", "echo ready; exec cat"], "ready");
    plugIn(onHost, relay);
    await start([...onHost, ...server.words(folder, file)], server.ready);
    return await ask(enterNamespace(relay), firmware);
  } finally {
    for (const child of children) await end(child);
    rmSync(folder, { recursive: true });
  }
}

function enterNamespace({ pid }: ChildProgram): readonly string[] {
  return ["nsenter", `--target=${pid}`, "--user", "--net", "--preserve-credentials"];
}

/** The other end of the server's cable goes to the relay. */
function plugIn(onHost: readonly string[], relay: ChildProgram): void {
  run([...onHost, "ip", "link", "set", "relay", "netns", String(relay.pid)]);
  const atRelay = enterNamespace(relay);
  run([...atRelay, "ip", "addr", "add", `${addresses.relay}/24`, "dev", "relay"]);
  run([...atRelay, "ip", "link", "set", "relay", "up"]);
}

async function ask(atRelay: readonly string[], firmware: readonly Firmware[]): Promise<readonly BootOffer[]> {
  const [program = "", ...words] = atRelay;
  const client = [process.execPath, join(import.meta.dirname, "dhcp-client-worker.ts")];
  const questions = firmware.map((each) => JSON.stringify(each));
  const all = [...words, ...client, addresses.relay, addresses.server, ...questions];
  const { stdout } = await promisify(execFile)(program, all, { timeout: 15_000 });
  return JSON.parse(stdout);
}

function run([program = "", ...words]: readonly string[]): void {
  execFileSync(program, words, { stdio: "pipe" });
}

function launch([program = "", ...words]: readonly string[]): ChildProgram {
  // Servers are not on every user's PATH.
  return spawn(program, words, { stdio: "pipe", env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` } });
}

/** Resolves once the process wrote a text, to either output. */

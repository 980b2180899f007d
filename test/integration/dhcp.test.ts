/** `davit serve --dhcp` and `davit doctor` as processes, in a network of their own. */

import { type ChildProcess, execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { davitProgram, startDavit } from "../../tools/davit-process.ts";
import { type Lan, startLan } from "../../tools/firmware/lan.ts";
import { missing } from "../helpers/requirements.ts";

const manifests = join(import.meta.dirname, "../../manifests/quickstart");
// Most of it is for a machine that is busy with other suites.
const limitMs = 180_000;
const range = ["--dhcp", "192.168.1.100,192.168.1.199", "--dhcp-interface", "eth0"];
const proxy = ["--dhcp", "proxy", "--dhcp-interface", "eth0"];

let folder: string;
let lan: Lan;

describe.skipIf(missing("network-namespace", "dnsmasq", "ipxe", "kea-dhcp4"))("davit serve --dhcp", () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "davit-dhcp-test-"));
    lan = await startLan(folder);
  });

  afterAll(async () => {
    await lan.stop();
    rmSync(folder, { recursive: true });
  });

  it(
    "answers machines while dnsmasq is dead, says so, starts it again, and ends it",
    async () => {
      const davit = await serve(range);
      expect(doctorTable(await doctor())).toMatchObject({
        "BIOS, PXE": expect.stringMatching(/undionly\.kpxe by TFTP from 192\.168\.1\.10$/),
        "UEFI, PXE": expect.stringMatching(/snponly\.efi by TFTP from 192\.168\.1\.10$/),
        "UEFI, iPXE": expect.stringMatching(/http:\/\/192\.168\.1\.10:8080\/chain\.ipxe$/),
        "UEFI, HTTP Boot": expect.stringMatching(/http:\/\/192\.168\.1\.10:8080\/loaders\/ipxe\.efi$/),
      });
      const [dnsmasq = 0, ...others] = childrenOf(davit.pid);
      expect(others).toEqual([]);
      process.kill(dnsmasq, "SIGKILL");
      await until(() => davit.log.some(({ msg }) => String(msg).startsWith("dnsmasq has ended")));
      const [script, ready] = [await get("192.168.1.10:8080/boot.ipxe"), await get("127.0.0.1:8081/readyz?verbose")];
      expect(script).toContain("#!ipxe");
      expect(ready).toMatch(/dhcp: dnsmasq has ended: .*; davit starts it again, and answers machines meanwhile/);
      expect(ready).toContain("[+] boot ok");
      await until(() => childrenOf(davit.pid).length === 1);
      const [again = 0] = childrenOf(davit.pid);
      await until(() => davit.log.filter(({ line }) => String(line).startsWith("started, version")).length === 2);
      expect(await get("127.0.0.1:8081/readyz?verbose")).not.toContain("dhcp:");
      expect(await davit.stop()).toBe(0);
      expect(isAlive(again)).toBe(false);
      expect(davit.log.filter(({ level }) => Number(level) >= 50)).toHaveLength(1);
    },
    limitMs,
  );

  it(
    "shows the file name of a foreign machine inert, in the log of dnsmasq's lines",
    async () => {
      const davit = await serve(range);
      const request = Buffer.from("\0\x01\x1b[2Jevil\x9b31m\r\nline\0octet\0", "latin1");
      await output([process.execPath, "--eval", sendScript(request)]);
      const lines = () => davit.log.map(({ line }) => String(line)).filter((line) => line.includes("evil"));
      await until(() => lines().length > 0);
      expect(lines().filter((line) => /\p{C}/u.test(line))).toEqual([]);
      await davit.stop();
    },
    limitMs,
  );

  it(
    "ends dnsmasq even if it is killed itself",
    async () => {
      const davit = await serve(proxy);
      const [dnsmasq = 0] = childrenOf(davit.pid);
      await davit.stop("SIGKILL");
      await until(() => !isAlive(dnsmasq));
      expect(isAlive(dnsmasq)).toBe(false);
    },
    limitMs,
  );

  it(
    "gives no addresses beside a DHCP server, but names what to boot beside it",
    async () => {
      await lan.startRouter("Kea");
      await expect(serve(range)).rejects.toThrow(
        'Two DHCP servers: 192.168.1.1 already gives addresses on "eth0": give --dhcp proxy, or stop that server',
      );
      const davit = await serve(proxy);
      const table = await doctor();
      await davit.stop();
      await lan.stopRouter();
      expect(table).toMatch(/^UEFI, PXE +192\.168\.1\.1 +192\.168\.1\.1\d\d$/m);
      expect(table).toMatch(/^UEFI, PXE +192\.168\.1\.10 +snponly\.efi by TFTP from 192\.168\.1\.10$/m);
      expect(table).toMatch(/^BIOS, iPXE +192\.168\.1\.10 +http:\/\/192\.168\.1\.10:8080\/chain\.ipxe$/m);
      expect(table).not.toContain("Several servers");
    },
    limitMs,
  );

  it.each([
    ["an interface without an address", ["--dhcp", "proxy", "--dhcp-interface", "eth9"], "No IPv4 address on the"],
    ["a range of another network", ["--dhcp", "10.0.0.1,10.0.0.9", "--dhcp-interface", "eth0"], "Cannot use 10.0.0.1"],
    [
      "a boot address that machines do not reach",
      [...proxy, "--boot-address", "127.0.0.1:8080"],
      'Machines on "eth0" cannot reach --boot-address "127.0.0.1:8080": give 192.168.1.10:8080',
    ],
    [
      "an advertised address with a comma",
      [...proxy, "--advertise-address", "a,192.168.1.66:80"],
      'Cannot write "a,192.168.1.66:80" into the configuration of dnsmasq',
    ],
  ])(
    "does not start with %s",
    async (_name, options, told) => {
      await expect(serve(options)).rejects.toThrow(told);
    },
    limitMs,
  );

  it.each([
    ["67", range],
    ["4011", proxy],
  ])(
    "does not start while another program has UDP port %s",
    async (port, options) => {
      const script = `require("node:dgram").createSocket("udp4").bind(${port}, () => console.log("bound"))`;
      const other = within([process.execPath, "--eval", script]);
      await new Promise((resolve) => other.stdout?.once("data", resolve));
      const failed = expect(serve(options)).rejects.toThrow(`UDP port ${port} is in use`);
      await failed.finally(() => other.kill("SIGKILL"));
    },
    limitMs,
  );
});

describe.skipIf(missing("network-namespace"))("davit doctor", () => {
  it(
    "says that nobody answers, and what to do",
    async () => {
      const own = mkdtempSync(join(tmpdir(), "davit-doctor-test-"));
      lan = await startLan(own);
      const table = await doctor();
      await lan.stop();
      rmSync(own, { recursive: true });
      expect(table).toMatch(/^BIOS, PXE +nobody$/m);
      expect(table).toContain("No server gives addresses: start a DHCP server, or davit serve --dhcp FROM,TO");
    },
    limitMs,
  );
});

async function serve(options: readonly string[]) {
  const dataDir = mkdtempSync(join(folder, "data-"));
  const fixed = { "--boot-address": "0.0.0.0:8080", "--store-address": "none", "--ops-address": "127.0.0.1:8081" };
  const addresses = Object.entries(fixed).filter(([name]) => !options.includes(name));
  return await startDavit({ manifests, dataDir, args: [...addresses.flat(), ...options], within: lan.enter });
}

/** What it prints, whatever its exit code is. */
async function doctor(): Promise<string> {
  return await output([process.execPath, davitProgram, "doctor", "--interface", "eth0"]);
}

/** What the only server answers to each kind of firmware. */
function doctorTable(text: string): Record<string, string> {
  const rows = [...text.matchAll(/^(\S+, .*?) {2,}(.*)$/gm)];
  return Object.fromEntries(rows.map(([, kind = "", rest = ""]) => [kind, rest]));
}

async function get(url: string): Promise<string> {
  return await output(["curl", "--silent", "--max-time", "10", `http://${url}`]);
}

function within(words: readonly string[]): ChildProcess {
  const [program = "", ...rest] = [...lan.enter, ...words];
  return execFile(program, rest);
}

async function output(words: readonly string[]): Promise<string> {
  const child = within(words);
  let text = "";
  child.stdout?.on("data", (more: string) => {
    text += more;
  });
  await new Promise((resolve) => child.once("close", resolve));
  return text;
}

/** A program that sends a message to the TFTP server. */
function sendScript(message: Buffer): string {
  const bytes = `Buffer.from("${message.toString("hex")}", "hex")`;
  return `
    const socket = require("node:dgram").createSocket("udp4");
    socket.send(${bytes}, 69, "192.168.1.10", () => socket.close());`;
}

/** The processes that a process has started. */
function childrenOf(pid: number): readonly number[] {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((each) => statusOf(each)?.includes(`\nPPid:\t${pid}\n`));
}

function isAlive(pid: number): boolean {
  const status = statusOf(pid);
  return status !== undefined && !/^State:\s*Z/m.test(status);
}

function statusOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return undefined;
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await setTimeout(20);
}

/** The fleet of the console's pictures: objects as a team of a data centre has them, and what its machines do. */

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { finished } from "node:stream/promises";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { DavitProcess } from "../davit-process.ts";

const maxWaitMs = 30_000;
const apiVersion = "davit.dev/v1alpha1";
export const namespace = "racks";

interface FleetMachine {
  readonly name: string;
  readonly mac: string;
  readonly address: string;
}

function machines(name: string, count: number, vendor: string, subnet: number): readonly FleetMachine[] {
  return Array.from({ length: count }, (_, at) => ({
    name: `${name}-${String(at + 1).padStart(2, "0")}`,
    mac: `${vendor}:${(0x1a + 7 * at).toString(16).padStart(2, "0")}`,
    address: `127.20.${subnet}.${11 + at}`,
  }));
}

export const racks = {
  control: machines("control", 3, "3c:ec:ef:5b:20", 1),
  worker: machines("worker", 12, "b4:96:91:c4:07", 2),
  storage: machines("storage", 4, "b4:96:91:d0:11", 3),
  gpu: machines("gpu", 2, "a0:36:9f:77:e1", 4),
  edge: machines("edge", 3, "00:30:64:2a:9c", 9),
  stranger: machines("localhost", 2, "d4:5d:64:08:31", 2),
} as const;
export type RackName = keyof typeof racks;

/** The machine of a rack with this number, from 1 on. */
export function machineOf(rack: RackName, number: number): FleetMachine {
  const found = racks[rack][number - 1];
  if (found === undefined) throw new Error(`No machine ${number} in ${rack}`);
  return found;
}

/** Every object, as `kubectl apply` reads them. */
export function fleetObjects(): string {
  const items = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    profile("flatcar", {
      displayName: "Flatcar, live",
      boot: {
        kernel: "/assets/flatcar/4230.2.2/vmlinuz",
        initrd: ["/assets/flatcar/4230.2.2/image.cpio.gz"],
        efiInitrd: true,
        args: ["flatcar.first_boot=1", "console=ttyS0,115200n8"],
      },
      metadata: { dns: ["10.20.0.53"] },
      ignition: { inline: '{"ignition": {"version": "3.3.0"}, "passwd": {}}' },
    }),
    profile("talos-control", {
      displayName: "Talos, control plane",
      effect: "Boot",
      boot: {
        kernel: "/assets/talos/1.11.3/vmlinuz",
        initrd: ["/assets/talos/1.11.3/initramfs.xz"],
        efiInitrd: true,
        args: ["talos.platform=metal", "talos.config={{davit.url}}/generic"],
      },
      generic: { inline: "machine:\n  type: controlplane\n" },
    }),
    profile("ubuntu-24-04", {
      displayName: "Ubuntu 24.04, unattended",
      effect: "Install",
      install: { then: "exit", timeout: "2h" },
      boot: {
        kernel: "/assets/ubuntu/24.04/linux",
        initrd: ["/assets/ubuntu/24.04/initrd"],
        efiInitrd: true,
        args: ["autoinstall"],
      },
      genericParts: [{ name: "user-data", inline: "#cloud-config\n# {{davit.report}}\n" }],
    }),
    profile("gpu-node", gpuSpec("hostname: {{json hostname}}")),
    group("control-plane", "talos-control", "control"),
    group("workers", "flatcar", "worker"),
    group("storage", "ubuntu-24-04", "storage"),
    group("gpu", "gpu-node", "gpu", { metadata: { hostname: "gpu" } }),
    group("edge", "flatcar", "edge", { approval: "Required" }),
    ...racks.control.map((each) => machineObject(each, { approved: true })),
    ...racks.storage.map((each) => machineObject(each, {})),
    ...racks.edge.map((each, at) => machineObject(each, at === 2 ? { approved: true } : {})),
    machineObject(machineOf("worker", 9), { hold: true }),
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** The Profile of GPU nodes after an edit that forgot the end of a block. */
export function brokenProfile(): string {
  return JSON.stringify(
    profile("gpu-node", gpuSpec("hostname: {{json hostname}}\n{{#if fabric}}\nfabric: {{fabric}}")),
  );
}

/** The grant that installs the storage machines. */
export function grantedGroup(ledger: string, until: string): string {
  const install = { generation: 1, ledger, until, scope: "NeverInstalled" };
  return JSON.stringify(group("storage", "ubuntu-24-04", "storage", { install }));
}

function gpuSpec(cloudConfig: string): object {
  return {
    displayName: "Debian with GPU drivers",
    boot: { kernel: "/assets/debian/13/vmlinuz", initrd: ["/assets/debian/13/initrd.gz"], efiInitrd: true },
    cloudConfig: { inline: `#cloud-config\n${cloudConfig}\n` },
  };
}

function profile(name: string, spec: object): object {
  return { apiVersion, kind: "Profile", metadata: { name, namespace }, spec };
}

function group(name: string, profileName: string, rack: RackName, more: object = {}): object {
  const values = racks[rack].map(({ mac }) => mac);
  const selector = { matchExpressions: [{ key: "mac", operator: "In", values }] };
  const spec = { profileRef: { name: profileName }, selector, ...more };
  return { apiVersion, kind: "Group", metadata: { name, namespace }, spec };
}

function machineObject({ name, mac }: FleetMachine, more: object): object {
  const spec = { identity: { macs: [mac] }, ...more };
  return { apiVersion, kind: "Machine", metadata: { name, namespace }, spec };
}

/** The files that machines load, with the sizes of real ones in bytes. One is missing: the initrd of the GPU nodes. */
export const assets: Readonly<Record<string, number>> = {
  "flatcar/4230.2.2/vmlinuz": 48_312_320,
  "flatcar/4230.2.2/image.cpio.gz": 61_204_480,
  "talos/1.11.3/vmlinuz": 19_202_048,
  "talos/1.11.3/initramfs.xz": 80_117_760,
  "ubuntu/24.04/linux": 15_012_232,
  "ubuntu/24.04/initrd": 71_401_930,
  "debian/13/vmlinuz": 12_124_096,
};

/** Asks as a machine does, from the machine's address. @returns the answer's status and text. */
export async function ask(davit: DavitProcess, machine: FleetMachine, path: string): Promise<[number, string]> {
  const labels = new URLSearchParams({ mac: machine.mac, hostname: machine.name });
  return await send(davit, machine, path.startsWith("/assets/") ? path : `${path}?${labels}`);
}

async function send(
  { bootUrl }: DavitProcess,
  { address }: FleetMachine,
  target: string,
  form?: URLSearchParams,
): Promise<[number, string]> {
  const headers = form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" };
  const method = form === undefined ? "GET" : "POST";
  const sent = request(`${bootUrl}${target}`, { method, headers, localAddress: address, agent: false });
  sent.end(form?.toString());
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  // An asset is loaded, and not kept.
  if (target.startsWith("/assets/")) await finished(answer.resume());
  return [answer.statusCode ?? 0, answer.readableEnded ? "" : await text(answer)];
}

/** Boots a machine: its script, what the script names, and then these paths. */
export async function boot(davit: DavitProcess, machine: FleetMachine, paths: readonly string[] = []): Promise<void> {
  const [, script] = await ask(davit, machine, "/ipxe");
  for (const [, path = ""] of script.matchAll(/^(?:kernel|initrd) \S*?(\/assets\/\S+)/gm))
    await ask(davit, machine, path);
  for (const path of paths) await ask(davit, machine, path);
}

/** Asks for a script until there is one. */
export async function untilServed(davit: DavitProcess, machine: FleetMachine): Promise<void> {
  const endMs = Date.now() + maxWaitMs;
  for (;;) {
    const [status, text] = await ask(davit, machine, "/ipxe");
    if (status === 200) return;
    if (Date.now() > endMs) throw new Error(`${machine.name} gets ${status} ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

/** Begins an install. @returns what sends its reports. */
export async function install(davit: DavitProcess, machine: FleetMachine) {
  await untilServed(davit, machine);
  await ask(davit, machine, "/assets/ubuntu/24.04/linux");
  await ask(davit, machine, "/assets/ubuntu/24.04/initrd");
  const [, config] = await ask(davit, machine, "/generic/user-data");
  const path = /\/report\/\S+/.exec(config)?.[0];
  if (path === undefined) throw new Error(`${machine.name} gets no report's URL: ${config}`);
  return async (fields: Readonly<Record<string, string>>) => {
    const [status, answer] = await send(davit, machine, path, new URLSearchParams(fields));
    if (status !== 200) throw new Error(`${machine.name} reports ${JSON.stringify(fields)}: ${status} ${answer}`);
  };
}

/** The id of davit's ledger. */
export async function ledgerOf(davit: DavitProcess): Promise<string> {
  const ledger = parseJsonObject(await (await fetch(`${davit.opsUrl}/ledger`)).text());
  return isJsonObject(ledger) && typeof ledger.id === "string" ? ledger.id : "";
}

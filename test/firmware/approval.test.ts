/**
 * Machines that wait for their approval at the firmware's screen, and boot once somebody approves them. The output has
 * the seconds from the approval to the script.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { approvalName, approvalObjects } from "./approval-objects.ts";
import { bootSector, diskGreeting } from "./bootable-disk.ts";
import { makeGrubLoader } from "./grub-netboot.ts";
import { linesWith } from "./guest-checks.ts";
import { type LinedServer, startLinedServer } from "./lined-server.ts";
import { bootTestLimitMs, startLimitMs } from "./machine-boot.ts";

const isLeftOut = missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static");
const grubIsMissing = missing("grub", "grub-bios");
const clusterIsMissing = missing("kube-apiserver", "kubectl");

const davit = join(import.meta.dirname, "../../bin/davit");

const loaders = [
  { loader: "iPXE", path: "/ipxe", skip: false },
  { loader: "GRUB", path: "/grub", skip: grubIsMissing || missing("all-firmware") },
] as const;
type Loader = (typeof loaders)[number]["loader"];

interface Approval {
  /** Of a machine with this MAC. */
  readonly approve: (mac: string) => Promise<void>;
  readonly by: string;
  readonly loader: Loader;
  readonly path: string;
}

let count = 0;

/** Boots a machine, approves it while it waits, and expects that it boots its disk. */
async function expectApproved(server: LinedServer, mac: string, { approve, by, loader, path }: Approval) {
  const approved = Promise.withResolvers<number>();
  const booted = Promise.withResolvers<number>();
  const delivered = { path, when: "delivered" } as const;
  server.line.expect(
    // It has asked again by then: it waits.
    { ...delivered, status: 503, does: async () => {} },
    {
      ...delivered,
      status: 503,
      does: async () => {
        await approve(mac);
        approved.resolve(performance.now());
      },
    },
    { ...delivered, status: 200, does: async () => booted.resolve(performance.now()) },
  );

  const { screen } = await server.boot(newMachine(server, mac, loader));

  expect(linesWith(screen, diskGreeting)).toEqual([diskGreeting]);
  const statuses = server.line.asked.filter(({ target }) => target.startsWith(`${path}?`)).map(({ status }) => status);
  expect(statuses.slice(0, 2)).toEqual([503, 503]);
  expect(new Set(statuses.slice(0, -1))).toEqual(new Set([503]));
  expect(statuses.at(-1)).toBe(200);
  const seconds = ((await booted.promise) - (await approved.promise)) / 1_000;
  process.stdout.write(`\n${by}, ${loader}: the script ${seconds.toFixed(1)} s after the approval\n`);
}

function newMachine(server: LinedServer, mac: string, loader: Loader) {
  const directory = server.makeDirectory();
  const disk = join(directory, "machine.img");
  writeFileSync(disk, Buffer.concat([bootSector(), Buffer.alloc(1 << 20)]));
  const uuid = `a1b2c3d4-0000-4000-8000-0000000a${mac.slice(-5).replace(":", "")}`;
  const isGrub = loader === "GRUB";
  return {
    mac,
    uuid,
    firmware: "bios",
    disk,
    loader: isGrub ? makeGrubLoader(directory, "bios", server.authoritySeenByMachine) : server.loader,
  } as const;
}

async function untilRefused({ authority }: LinedServer, mac: string): Promise<void> {
  const ask = async () => (await fetch(`http://${authority}/ipxe?mac=${mac}`)).text();
  await expect.poll(ask, { timeout: 30_000 }).toBe("503 machine not approved\n");
}

function newMac(): string {
  count += 1;
  return `52:54:00:a1:9e:${count.toString(16).padStart(2, "0")}`;
}

describe.skipIf(isLeftOut || clusterIsMissing)("in a cluster, a machine that is not approved", () => {
  let cluster: Cluster;
  let server: LinedServer;

  beforeAll(async () => {
    cluster = await startCluster();
    server = await startLinedServer(["--kubernetes", "--kubeconfig", cluster.kubeconfig]);
    return async () => {
      await server.stop();
      await cluster.stop();
    };
  }, 2 * startLimitMs);

  /** A new machine, whose objects davit has read. */
  async function appliedMachine(): Promise<string> {
    const mac = newMac();
    await cluster.apply(approvalObjects(mac, false));
    await untilRefused(server, mac);
    return mac;
  }

  for (const { loader, path, skip } of loaders) {
    it(`boots after kubectl patch, by ${loader}`, { skip, timeout: bootTestLimitMs }, async () => {
      const approve = async (mac: string) => {
        const patch = ["--type=merge", "-p", '{"spec":{"approved":true}}'];
        const name = approvalName(mac);
        expect(await cluster.kubectl(["patch", "machines.davit.dev", name, ...patch])).toMatchObject({ code: 0 });
      };
      await expectApproved(server, await appliedMachine(), { approve, by: "kubectl patch", loader, path });
    });

    it(`boots after davit machine approve, by ${loader}`, {
      skip: skip || missing("all-firmware"),
      timeout: bootTestLimitMs,
    }, async () => {
      const approve = async (mac: string) => {
        const name = approvalName(mac);
        const words = ["machine", "approve", name, "--kubeconfig", cluster.kubeconfig];
        const { stdout } = await promisify(execFile)(davit, words);
        expect(stdout).toBe(`Machine default/${name} is approved\n`);
      };
      await expectApproved(server, await appliedMachine(), { approve, by: "davit machine approve", loader, path });
    });
  }
});

describe.skipIf(isLeftOut || missing("all-firmware"))("with files, a machine that is not approved", () => {
  const manifests = mkdtempSync(join(tmpdir(), "davit-approval-"));
  let server: LinedServer;

  beforeAll(async () => {
    server = await startLinedServer(["--manifests", manifests]);
    return async () => {
      await server.stop();
      rmSync(manifests, { recursive: true });
    };
  }, startLimitMs);

  for (const { loader, path, skip } of loaders) {
    it(`boots after an edit of its file, by ${loader}`, { skip, timeout: bootTestLimitMs }, async () => {
      const mac = newMac();
      // In place, as an editor may do it.
      const write = (isApproved: boolean) =>
        writeFileSync(join(manifests, `${approvalName(mac)}.yaml`), approvalObjects(mac, isApproved));
      write(false);
      await untilRefused(server, mac);
      await expectApproved(server, mac, { approve: async () => write(true), by: "edit of a file", loader, path });
    });
  }
});

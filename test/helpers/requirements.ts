/**
 * What some suites need beyond Node. A suite whose program is missing is skipped and the run's end says so with the
 * command that brings it; `DAVIT_REQUIRE=all` (or a list such as `qemu,etcd`) makes it fail instead. A suite that takes
 * too long for every run needs to be asked for: it is skipped and told in the same way, but `all` does not mean it.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import { operatorCrdsDirectory } from "../../tools/build/operator-crds.ts";
import { toolPath } from "../../tools/build/tools.ts";
import { packageCache } from "../../tools/firmware/boot-assets.ts";
import { chromiumPath } from "../../tools/generate/browser.ts";

/** Where `make cloud-init` unpacks what an installed cloud-init would have among Debian's Python packages. */
export const cloudInitPackages = join(import.meta.dirname, "../../.cache/cloud-init/usr/lib/python3/dist-packages");

/** Where `make promtool` unpacks it. */
export const promtoolPath = join(import.meta.dirname, "../../.cache/promtool/promtool");

interface Requirement {
  /** Found when any of these programs is on the PATH or any of these files exists. */
  readonly anyOf: readonly string[];
  /** What must hold beside. */
  readonly also?: () => boolean;
  readonly bringIt: string;
  /** Left out because it takes long, not because something is missing: required only by its name. */
  readonly byChoice?: true;
}

/** What a process is started with (LD_PRELOAD) to have a wall clock of its own; where Debian has it. */
export const fakeTimeLibrary = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketime.so.1`;

/** Of Debian 13's package ipxe, which is not installed but unpacked. */
export const armIpxe = packageCache("arm64", "usr/lib/ipxe/ipxe-arm64.efi");

const requirements = {
  qemu: { anyOf: ["qemu-system-x86_64"], bringIt: "apt-get install qemu-system-x86" },
  "ipxe-rom": { anyOf: ["/usr/lib/ipxe/qemu/pxe-virtio.rom"], bringIt: "apt-get install ipxe-qemu" },
  ovmf: { anyOf: ["/usr/share/OVMF/OVMF_CODE_4M.fd"], bringIt: "apt-get install ovmf" },
  ipxe: { anyOf: ["/usr/lib/ipxe/snponly.efi"], bringIt: "apt-get install ipxe" },
  // Installed, or unpacked by an earlier `make boot-assets`.
  "cloud-kernel": {
    anyOf: ["/var/lib/dpkg/info/linux-image-cloud-amd64.list", packageCache("amd64", "boot")],
    bringIt: "apt-get install linux-image-cloud-amd64, or without root: make boot-assets",
  },
  "busybox-static": {
    anyOf: [
      "/var/lib/dpkg/info/busybox-static.list",
      packageCache("amd64", "bin/busybox"),
      packageCache("amd64", "usr/bin/busybox"),
    ],
    bringIt: "apt-get install busybox-static, or without root: make boot-assets",
  },
  grub: { anyOf: ["grub-script-check"], bringIt: "apt-get install grub-common" },
  "grub-emu": { anyOf: ["grub-emu"], bringIt: "apt-get install grub-emu" },
  "grub-bios": { anyOf: ["/usr/lib/grub/i386-pc/moddep.lst"], bringIt: "apt-get install grub-pc-bin" },
  "grub-uefi": { anyOf: ["/usr/lib/grub/x86_64-efi/moddep.lst"], bringIt: "apt-get install grub-efi-amd64-bin" },
  "grub-signed": {
    anyOf: ["/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"],
    bringIt: "apt-get install grub-efi-amd64-signed",
  },
  shim: { anyOf: ["/usr/lib/shim/shimx64.efi.signed"], bringIt: "apt-get install shim-signed" },
  sbsign: { anyOf: ["sbsign"], bringIt: "apt-get install sbsigntool" },
  objcopy: { anyOf: ["objcopy"], bringIt: "apt-get install binutils" },
  vim: { anyOf: ["vim"], bringIt: "apt-get install vim" },
  rsync: { anyOf: ["rsync"], bringIt: "apt-get install rsync" },
  mtools: { anyOf: ["mcopy"], bringIt: "apt-get install mtools" },
  dnsmasq: { anyOf: ["dnsmasq"], bringIt: "apt-get install dnsmasq-base" },
  "kea-dhcp4": { anyOf: ["kea-dhcp4"], bringIt: "apt-get install kea-dhcp4-server" },
  "isc-dhcpd": { anyOf: ["dhcpd"], bringIt: "apt-get install isc-dhcp-server" },
  "network-namespace": {
    anyOf: ["ip"],
    also: mayMakeNetwork,
    bringIt: "apt-get install iproute2, and run the tests where users may make namespaces and /dev/net/tun exists",
  },
  "qemu-arm64": { anyOf: ["qemu-system-aarch64"], bringIt: "apt-get install qemu-system-arm" },
  "uefi-arm64": { anyOf: ["/usr/share/AAVMF/AAVMF_CODE.fd"], bringIt: "apt-get install qemu-efi-aarch64" },
  // Of another architecture, which need not be installed.
  "packages-arm64": { anyOf: [packageCache("arm64", "versions")], bringIt: "make boot-assets ARCH=arm64" },
  "ipxe-arm64": { anyOf: [armIpxe], bringIt: "make boot-assets ARCH=arm64" },
  ignition: { anyOf: ["/usr/lib/dracut/modules.d/30ignition/ignition"], bringIt: "apt-get install ignition" },
  matchbox: {
    anyOf: ["/"],
    also: () => existsSync(process.env.MATCHBOX ?? ""),
    bringIt: "build https://github.com/poseidon/matchbox and run with MATCHBOX=path",
    byChoice: true,
  },
  butane: {
    anyOf: ["/"],
    also: () => existsSync(process.env.BUTANE ?? ""),
    bringIt: "build https://github.com/coreos/butane and run with BUTANE=path",
    byChoice: true,
  },
  "ipxe-source": {
    anyOf: ["/"],
    also: () => existsSync(join(process.env.IPXE_SOURCE ?? "/nowhere", "config/general.h")),
    bringIt: "get https://github.com/ipxe/ipxe and run with IPXE_SOURCE=path of its src",
    byChoice: true,
  },
  etcd: { anyOf: ["etcd"], bringIt: "apt-get install etcd-server" },
  etcdctl: { anyOf: ["etcdctl"], bringIt: "apt-get install etcd-client" },
  "python-etcd": { anyOf: ["/usr/lib/python3/dist-packages/etcd/lock.py"], bringIt: "apt-get install python3-etcd" },
  "cloud-init": { anyOf: [join(cloudInitPackages, "cloudinit/version.py")], bringIt: "make cloud-init" },
  "systemd-analyze": { anyOf: ["systemd-analyze"], bringIt: "apt-get install systemd" },
  tmpfs: { anyOf: ["mount"], also: mayMount, bringIt: "run the tests as root, in a container with CAP_SYS_ADMIN" },
  "kube-apiserver": { anyOf: [toolPath("kube-apiserver")], also: hasEtcd, bringIt: "make cluster-tools" },
  kubectl: { anyOf: [toolPath("kubectl")], bringIt: "make cluster-tools" },
  "all-firmware": {
    anyOf: ["/"],
    also: () => process.env.DAVIT_TEST_FIRMWARE === "all",
    bringIt: "make test-firmware",
    byChoice: true,
  },
  "bare-debian": {
    anyOf: ["mmdebstrap"],
    also: () => process.env.DAVIT_TEST_DIST === "all" && mayMount(),
    bringIt: "make test-dist",
    byChoice: true,
  },
  cgroup2: {
    anyOf: ["/"],
    also: () => readFileSync("/proc/filesystems", "utf8").includes("\tcgroup2\n"),
    bringIt: "run the tests on a Linux with control groups of version 2",
  },
  "ignition-validate": { anyOf: ["ignition-validate"], bringIt: "apt-get install ignition" },
  helm: { anyOf: [chartToolPath("helm")], bringIt: "make chart-tools" },
  helm3: { anyOf: [chartToolPath("helm3")], bringIt: "make chart-tools-all", byChoice: true },
  actionlint: { anyOf: [chartToolPath("actionlint")], bringIt: "make chart-tools" },
  linearizable: { anyOf: [chartToolPath("linearizable")], bringIt: "make chart-tools" },
  kstatus: { anyOf: [chartToolPath("kstatus")], bringIt: "make chart-tools" },
  kubeconform: { anyOf: [chartToolPath("kubeconform")], bringIt: "make chart-tools" },
  "helm-unittest": { anyOf: [chartToolPath("helm-unittest")], bringIt: "make chart-tools" },
  "helm-docs": { anyOf: [chartToolPath("helm-docs")], bringIt: "make chart-tools-all", byChoice: true },
  "kube-score": { anyOf: [chartToolPath("kube-score")], bringIt: "make chart-tools-all", byChoice: true },
  promtool: { anyOf: [promtoolPath], bringIt: "make promtool" },
  "operator-crds": { anyOf: [operatorCrdsDirectory()], bringIt: "make chart-tools" },
  chromium: { anyOf: [chromiumPath], bringIt: "apt-get install chromium" },
  curl: { anyOf: ["curl"], bringIt: "apt-get install curl" },
  openssl: { anyOf: ["openssl"], bringIt: "apt-get install openssl" },
  faketime: { anyOf: [fakeTimeLibrary], bringIt: "apt-get install faketime" },
  gpg: { anyOf: ["gpg"], bringIt: "apt-get install gnupg" },
} as const satisfies Record<string, Requirement>;

export type RequirementName = keyof typeof requirements;

/** True when a suite that needs these has to be skipped. A missing one that `DAVIT_REQUIRE` names is an error. */
export function missing(...names: readonly RequirementName[]): boolean {
  const absent = names.filter((name) => !isMet(requirements[name]));
  const required = absent.filter(isRequired);
  if (required.length > 0) throw new Error(`DAVIT_REQUIRE names what is missing: ${required.map(describe).join("; ")}`);
  return absent.length > 0;
}

/** A line for each requirement that this machine does not meet. */
export function describeMissing(): readonly string[] {
  const names = Object.keys(requirements).filter((name): name is RequirementName => name in requirements);
  return names.filter((name) => !isMet(requirements[name])).map((name) => `skipped for want of ${describe(name)}`);
}

function isMet({ anyOf, also }: Requirement): boolean {
  return anyOf.some(isPresent) && also?.() !== false;
}

// CAP_SYS_ADMIN, which mount needs, is bit 21 (linux/capability.h).
function mayMount(): boolean {
  const [, effective = "0"] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return ((BigInt(`0x${effective}`) >> 21n) & 1n) === 1n;
}

function mayMakeNetwork(): boolean {
  const command = ["--map-root-user", "--net", "ip", "tuntap", "add", "tap0", "mode", "tap"];
  return existsSync("/dev/net/tun") && spawnSync("unshare", command).status === 0;
}

// Not the etcd above, which is the reference for another API: the one that the API server keeps its objects in.
function hasEtcd(): boolean {
  return isPresent(toolPath("etcd"));
}

function describe(name: RequirementName): string {
  const { anyOf, bringIt, byChoice }: Requirement = requirements[name];
  return byChoice ? `${name}: ${bringIt}` : `${name} (${anyOf.join(" or ")}): ${bringIt}`;
}

function isRequired(name: RequirementName): boolean {
  const { byChoice }: Requirement = requirements[name];
  const wanted = (process.env.DAVIT_REQUIRE ?? "").split(",");
  return (wanted.includes("all") && !byChoice) || wanted.includes(name);
}

function isPresent(program: string): boolean {
  if (program.startsWith("/")) return existsSync(program);
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.some((folder) => folder !== "" && existsSync(join(folder, program)));
}

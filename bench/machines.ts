/**
 * The machines, groups and Profile of the boot benchmarks. With 1,000 groups or more, each selects one machine by its
 * MAC. With fewer, each selects the machines of a row.
 */

import type { JsonObject } from "../src/model/json.ts";
import type { KernelBoot } from "../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "../test/boot/feed-documents.ts";

/** What is measured of the boot service. */
export const endpoints = ["ipxe", "ignition", "metadata"] as const;
export type Endpoint = (typeof endpoints)[number];

/** A boot section as installers have it. */
export const benchBoot: KernelBoot = {
  kernel: "/assets/debian/12/vmlinuz",
  initrd: ["/assets/debian/12/initrd.img"],
  args: [
    "console=ttyS0",
    "hostname={{hostname}}",
    `ignition.config.url={{davit.url}}/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`,
  ],
  efiInitrd: false,
};

/**
 * An Ignition config of 1.7 KB: a user, a file with the machine's name, two units.
 * @param variable how the template language prints a variable of the group.
 */
export function ignitionTemplate(variable: (name: string) => string): string {
  const unit = (name: string, contents: string) => ({ name, enabled: true, contents });
  const service = (command: string) =>
    `[Unit]\nAfter=network-online.target\n[Service]\nType=oneshot\nExecStart=${command}\n[Install]\nWantedBy=multi-user.target\n`;
  const config = {
    ignition: { version: "3.4.0" },
    passwd: { users: [{ name: "core", sshAuthorizedKeys: [`ssh-ed25519 ${"A".repeat(68)} bench`] }] },
    storage: {
      files: [
        { path: "/etc/hostname", mode: 420, contents: { source: `data:,${variable("hostname")}` } },
        { path: "/etc/rack", mode: 420, contents: { source: `data:,${variable("rack")}` } },
      ],
    },
    systemd: {
      units: [
        unit("report.service", service(`/usr/bin/logger ${variable("hostname")} in ${variable("rack")} is up`)),
        unit("install.service", service("/opt/install --disk /dev/sda --reboot")),
      ],
    },
  };
  return JSON.stringify(config, undefined, 2);
}

/** What templates may print of a machine. */
export function benchMetadata(machine: number) {
  return { hostname: `node-${machine}`, rack: `r${machine % 50}` };
}

/** How machines are selected: each by a Group of its own, all by one list, or by that beside 1,000 patterns of others. */
export const shapes = ["labels", "list", "patterns"] as const;
export type Shape = (typeof shapes)[number];

/** Documents with this many groups of one Profile, or a list of this many machines. */
export function* benchDocuments(groups: number, shape: Shape = "labels"): Generator<readonly [string, string]> {
  const ignition = { kind: "text", text: ignitionTemplate((name) => `{{${name}}}`), raw: false } as const;
  yield profileDocument("lab/linux", {
    displayName: "Linux",
    boot: { kind: "kernel", ...benchBoot },
    templates: { ignition },
  });
  if (shape === "labels") for (let at = 0; at < groups; at++) yield benchGroup(at, benchMetadata(at), groups);
  else yield* benchLists(groups, shape);
  yield syncedDocument();
}

const patternCount = 1_000;

function* benchLists(machines: number, shape: Shape): Generator<readonly [string, string]> {
  const values = Array.from({ length: machines }, (_, at) => macOf(at));
  const spec = { profile: "linux", metadata: benchMetadata(0) };
  yield groupDocument("lab/list", { ...spec, expressions: [{ key: "mac", operator: "In", values }] });
  for (let at = 0; at < (shape === "patterns" ? patternCount : 0); at++) {
    // They come before the list and match none of its machines, so that each request looks at all of them.
    const expressions = [{ key: "serial", operator: "Prefix", values: [`S-${at}-`] }] as const;
    yield groupDocument(`lab/pattern-${at}`, { ...spec, expressions });
  }
}

/** The document of a Group, one of so many. */
export function benchGroup(
  at: number,
  metadata: JsonObject,
  groups = targetCount,
): readonly [path: string, text: string] {
  return groupDocument(`lab/node-${at}`, { profile: "linux", selector: benchSelector(at, groups), metadata });
}

/** What a Group selects, one of so many. */
export function benchSelector(at: number, groups: number): Readonly<Record<string, string>> {
  return groups < targetCount ? { row: rowOf(at) } : { mac: macOf(at) };
}

function rowOf(group: number): string {
  return `row-${group}`;
}

/** How many different requests there are of each endpoint, each of a machine of its own. */
const targetCount = 1_000;

/**
 * What machines ask, as iPXE writes it: 1,000 machines, spread evenly over all groups, so that the number of groups is
 * all that differs between two runs.
 */
export function benchTargets(endpoint: Endpoint, groups: number): readonly string[] {
  return Array.from({ length: targetCount }, (_, at) => {
    const group = Math.floor((at * groups) / targetCount);
    return `/${endpoint}?${queryOf(Math.max(group, at))}&row=${rowOf(group)}`;
  });
}

/** The query that iPXE sends for a machine. */
export function queryOf(machine: number): string {
  const uuid = `a1b2c3d4-0000-4000-8000-${String(machine).padStart(12, "0")}`;
  return `uuid=${uuid}&mac=${macOf(machine, "-")}&domain=lab.test&hostname=&serial=S${machine}`;
}

export function macOf(machine: number, separator = ":"): string {
  const digits = machine.toString(16).padStart(8, "0");
  return ["52", "54", digits.slice(0, 2), digits.slice(2, 4), digits.slice(4, 6), digits.slice(6)].join(separator);
}

/** Milliseconds of a clock that all processes of this machine share and that never steps. */
export function sharedClockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

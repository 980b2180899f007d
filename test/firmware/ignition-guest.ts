/** What the machine of `guests/ignition` needs beside the quickstart's Linux, and what it must have become. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";
import { linesWith, shown } from "./guest-checks.ts";
import { guestInitrd } from "./guest-initrd.ts";

const { mac, uuid } = quickstartMachine;

const tool = "#!/bin/sh\necho row $1\n";
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample operator@example.org";

/** Writes Ignition's initrd, and a file that its config names by URL, below the directory that davit serves. */
export function addIgnitionAssets(assets: string): void {
  const folder = join(assets, "guests");
  mkdirSync(folder, { recursive: true });
  // Ignition makes users with useradd.
  const programs = ["/usr/lib/dracut/modules.d/30ignition/ignition", "/usr/sbin/useradd"];
  writeFileSync(join(folder, "ignition.gz"), guestInitrd({ name: "ignition", programs }));
  writeFileSync(join(folder, "tool"), tool);
}

/** Ignition ran through all its stages, and each thing of the config is where and as it should be. */
export function expectProvisioned(transcript: string): void {
  const stages = ["fetch", "disks", "mount", "files", "umount"];
  expect(linesWith(transcript, "IGNITION ")).toEqual(stages.map((stage) => `IGNITION ${stage} ended with 0`));
  for (const [path, [modeAndOwner, content]] of Object.entries(written)) {
    expect(linesWith(transcript, `THERE ${path} `)).toEqual([`THERE ${path} ${modeAndOwner}`]);
    expect(shown(transcript, path)).toBe(content);
  }
  expect(shown(transcript, "/etc/passwd")).toMatch(/^core:x:1500:1500:[^:]*:\/home\/core:/m);
}

const unit = "[Service]\nExecStart=/opt/tool 7\n[Install]\nWantedBy=multi-user.target";

/** Mode, owner and group, and the content without white space at its end. */
const written: Readonly<Record<string, readonly [string, string]>> = {
  "/etc/hostname": ["644 0:0", "node-7"],
  "/etc/motd": ["600 1500:0", `Rack 7, "left" & <green>`],
  "/etc/asked": ["644 0:0", `${uuid} ${mac}`],
  "/opt/tool": ["755 0:0", tool.trimEnd()],
  "/etc/localtime": ["777 0:0", "/usr/share/zoneinfo/Europe/Lisbon"],
  "/etc/systemd/system/hello.service": ["644 0:0", unit],
  "/etc/systemd/system/hello.service.d/10-slow.conf": ["644 0:0", "[Service]\nNice=10"],
  "/etc/systemd/system-preset/20-ignition.preset": ["644 0:0", "enable hello.service"],
  "/home/core/.ssh/authorized_keys.d/ignition": ["600 1500:1500", key],
};

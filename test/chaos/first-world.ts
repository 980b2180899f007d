/** The objects with which a run begins. */

import type { ChaosGroup, ChaosMachine, ChaosProfile, Machine, World } from "./world.ts";

/** The kernels of the Profiles that install: by a permit, but the first one. */
export const installers = ["installer", "careful", "wiper"] as const;
export const profileNames = ["work", "spare", ...installers] as const;
export const catchAllName = "everybody";

// Every so many machines one has no Group of its own: only the catch-all installs it.
const strangers = 5;

/** The objects at the beginning: Groups for most machines, and a catch-all that installs the others. */
export function firstWorld(machines: readonly Machine[]): World {
  const named = machines.flatMap((machine, at): readonly (readonly [string, ChaosGroup])[] =>
    at % strangers === 0 ? [] : [[machine.name, ownGroup(machine, at)]],
  );
  const groups = new Map<string, ChaosGroup>(named);
  groups.set(catchAllName, catchAll(false));
  for (const [role, profile] of Object.entries(roles)) {
    groups.set(`role-${role}`, { labels: { role }, priority: 0, hold: false, profile });
  }
  const objects = machines.flatMap((machine, at) =>
    at % (strangers * 2) === 0 ? [[machine.name, machineObject(machine)] as const] : [],
  );
  const profiles = new Map(profileNames.map((name) => [name as string, wholeProfile(name, 0)]));
  return { groups, profiles, machines: new Map(objects), configMap: 1 };
}

/** By the role of a Machine, the Profile of its Group. */
export const roles = { web: "work", db: "careful", old: "wiper" } as const;

export function machineObject({ labels }: Machine): ChaosMachine {
  return { labels, role: "web", hold: false };
}

export function wholeProfile(name: string, revision: number): ChaosProfile {
  const isInstall = installers.some((each) => each === name);
  const needsPermit = isInstall && name !== "installer";
  const usesConfigMap = isInstall && name !== "wiper";
  return { kernel: name, isInstall, isLocal: false, usesConfigMap, needsPermit, revision };
}

// Half by mac, a quarter each by serial and uuid.
export const ownLabels = ["mac", "mac", "serial", "uuid"] as const;

export function ownGroup({ labels }: Machine, at: number): ChaosGroup {
  const label = ownLabels[at % ownLabels.length] ?? "mac";
  // Many are installed: what takes an install away is what may go wrong.
  const profile = (["work", "installer", "careful"] as const)[at % 3] ?? "work";
  return { labels: { [label]: labels[label] ?? "" }, priority: 0, hold: false, profile };
}

export function catchAll(hold: boolean): ChaosGroup {
  return { labels: {}, matchAll: true, priority: 0, hold, profile: "installer" };
}

import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { MachineSpec } from "../../src/model/objects/machine.ts";
import type { Boot, ProfileSpec } from "../../src/model/objects/profile.ts";
import type {
  ConfigMapObject,
  GroupObject,
  MachineObject,
  ProfileObject,
  SecretObject,
} from "../../src/model/objects/source.ts";

/** Objects as a source hands them out, with what a test leaves unsaid filled in. */

const meta = { namespace: "default", uid: "uid-1", generation: 1, origin: "web.yaml, document 1 (line 1)" };

export const kernelBoot = {
  kind: "kernel",
  kernel: "/assets/vmlinuz",
  initrd: [],
  args: [],
  efiInitrd: false,
} as const satisfies Boot;

export function profileObject(spec: Partial<ProfileSpec> = {}, name = "web"): ProfileObject {
  return { kind: "Profile", ...meta, name, spec: { boot: kernelBoot, templates: {}, ...spec } };
}

export function groupSpec(spec: Partial<GroupSpec> = {}): GroupSpec {
  const selector = { mac: "52:54:00:a1:9c:ae" };
  return { profile: "web", selector, matchAll: false, priority: 0, hold: false, metadata: {}, ...spec };
}

export function groupObject(spec: Partial<GroupSpec> = {}, name = "node1"): GroupObject {
  return { kind: "Group", ...meta, name, spec: groupSpec(spec) };
}

export function configMapObject(data: Record<string, string>, name = "templates"): ConfigMapObject {
  return { kind: "ConfigMap", ...meta, name, data };
}

export function secretObject(data: Record<string, string>, allowsTemplate = true): SecretObject {
  return { kind: "Secret", ...meta, name: "secrets", data, allowsTemplate };
}

export function machineObject(spec: Partial<MachineSpec> = {}, name = "node1"): MachineObject {
  const identities = ["mac/52:54:00:a1:9c:ae"];
  const whole = { identities, approved: false, hold: false, labels: {}, metadata: {}, ...spec };
  return { kind: "Machine", ...meta, name, spec: whole };
}

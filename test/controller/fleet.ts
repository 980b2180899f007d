/** A fleet of 20 machines with a Group each and one Profile. */

import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileSpec, TemplateSource } from "../../src/model/objects/profile.ts";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { groupObject, profileObject } from "./objects.ts";

export const web = { kind: "Profile", namespace: "default", name: "web" } as const satisfies ObjectName;
export const fleet = Array.from({ length: 20 }, (_, at) => `n${String(at).padStart(2, "0")}`);
export const first: ObjectName = { kind: "Group", namespace: "default", name: "n00" };

export function inline(text: string): TemplateSource {
  return { kind: "inline", text, raw: false };
}

export function profile(generic: string | TemplateSource, spec: Partial<ProfileSpec> = {}) {
  return profileObject({ templates: { generic: typeof generic === "string" ? inline(generic) : generic }, ...spec });
}

export function groupOf(name: string, spec: Partial<GroupSpec> = {}) {
  return groupObject({ selector: { serial: name }, metadata: { disk: "sda" }, ...spec }, name);
}

/** What every machine of the fleet got, one after the other. */
export function all(...texts: readonly string[]) {
  return fleet.map(() => texts);
}

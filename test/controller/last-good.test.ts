/** How far the last good version of an object goes, and what its machines get beyond that: at every moment. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ProfileSpec, TemplateSource } from "../../src/model/profile.ts";
import type { OwnName } from "../../src/model/source.ts";
import { parseTemplate } from "../../src/render/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, kernelBoot, profileObject } from "./objects.ts";

const profile = { kind: "Profile", namespace: "default", name: "web" } as const satisfies OwnName;
const group = { kind: "Group", namespace: "default", name: "node1" } as const satisfies OwnName;
const machine = { mac: "52:54:00:a1:9c:ae" };
const missing: TemplateSource = { kind: "configMap", name: "missing", key: "k", raw: false };
const disk = { boot: { kind: "local", local: "exit" } } as const satisfies Partial<ProfileSpec>;

let under: ControllerUnderTest;
let boots: readonly string[];

beforeEach(async () => {
  under = await ControllerUnderTest.start({
    checkTemplate: (text) => {
      if (text.includes("trap")) throw new TypeError("trapped");
      return parseTemplate(text);
    },
  });
  under.source.put(profileObject(installing("/assets/wipe")), groupObject());
  under.source.put(profileObject(installing("/assets/wipe-all"), "catch-all"));
  under.source.put(groupObject({ profile: "catch-all", selector: {}, matchAll: true }, "everything"));
  under.source.tellListed();
  await under.synced;
  expect(under.boots(machine)).toBe("kernel /assets/wipe");
  boots = under.watchBoots(machine);
});

afterEach(() => under.stop());

function installing(kernel: string): Partial<ProfileSpec> {
  return { boot: { ...kernelBoot, kernel } };
}

/** Waits for the status of a version. */
async function told(name: string, reason: string): Promise<void> {
  await expect.poll(() => under.statuses.ready(name)).toBe(reason);
}

describe("a Profile that was deleted and created anew in one step", () => {
  const newProfile = (spec: Partial<ProfileSpec>) => ({ ...profileObject(spec), uid: "uid-2" });

  it("and is broken in a part gives its machines nothing of the one that is gone", async () => {
    under.source.put(newProfile({ ...disk, templates: { ignition: missing } }));
    under.source.tellChanged(profile);
    await told("Profile/web", "TemplateNotFound");
    expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
  });

  it("and is refused has its machines wait", async () => {
    under.source.drop(profile).refuse(profile, "spec.bot: unknown", { uid: "uid-2" });
    under.source.tellChanged(profile);
    await told("Profile/web", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "failed"]);
  });

  it("and is not known as a whole yet has its machines wait until it is", async () => {
    under.source.drop(profile).pending = { ...newProfile(disk) };
    under.source.tellChanged(profile);
    await expect.poll(() => boots).toEqual(["kernel /assets/wipe", "failed"]);
    under.source.pending = undefined;
    under.source.put(newProfile(disk)).tellChanged(profile);
    await expect.poll(() => boots).toEqual(["kernel /assets/wipe", "failed", "local exit"]);
    await told("Group/node1", "Ready");
  });

  it("and makes davit fail has its machines wait", async () => {
    under.source.put(newProfile({ templates: { generic: { kind: "inline", text: "trap", raw: false } } }));
    under.source.tellChanged(profile);
    await told("Profile/web", "InternalError");
    expect(boots).toEqual(["kernel /assets/wipe", "failed"]);
  });
});

describe("a Group that was deleted and created anew in one step", () => {
  it("and is refused has its machines wait, whatever selector it has", async () => {
    const refusal = "spec.hodl: unknown";
    under.source.put({ ...groupObject(), uid: "uid-2", refusal }).refuse(group, refusal, { uid: "uid-2" });
    under.source.tellChanged(group);
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
  });

  it("and has a selector that cannot be read has the machines of the one that is gone wait", async () => {
    under.source.drop(group).refuse(group, "spec.selector: unknown", { uid: "uid-2" });
    under.source.tellChanged(group);
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
  });
});

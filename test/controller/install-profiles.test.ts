/** The new fields of Profiles and Groups in the store: what takes effect, and what an older version may still do. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { decodeGroup, decodeProfile } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileSpec } from "../../src/model/objects/profile.ts";
import type { OwnName, SourceObject } from "../../src/model/objects/source.ts";
import type { InstallPlan, ReportRules } from "../../src/model/permits/permit.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const web = { kind: "Profile", namespace: "default", name: "web" } as const satisfies OwnName;
const node1 = { kind: "Group", namespace: "default", name: "node1" } as const satisfies OwnName;
const plan: InstallPlan = { then: "sanboot", timeoutSeconds: 7_200 };
const reports: ReportRules = { labels: { os: ["installed"] } };
const grant = { generation: 1, ledger: "9f3c0a52", untilMs: Date.UTC(2026, 0, 2), scope: "NeverInstalled" } as const;
const broken: Partial<ProfileSpec> = {
  templates: { generic: { kind: "configMap", name: "none", key: "a", raw: false } },
};
const installs: Partial<ProfileSpec> = { effect: "Install", install: plan };
const kernel = "kernel /assets/vmlinuz";

describe("installs in Profiles and Groups", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  async function changed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellChanged(...objects);
    await under.settled();
  }

  const profile = () => decodeProfile(under.stored("/davit/profiles/default/web")[0] ?? "");
  const group = (name = "node1") => decodeGroup(under.stored(`/davit/groups/default/${name}`)[0] ?? "");

  it("are stored, and an older davit reads a Profile that failed", async () => {
    await listed(profileObject({ ...installs, reports }), groupObject({ install: grant, enroll: true }));
    expect(profile()?.content).toMatchObject({ effect: "Install", install: plan, reports });
    expect(profile()).not.toHaveProperty("failed");
    expect(JSON.parse(under.stored("/davit/profiles/default/web")[0] ?? "")).toMatchObject({ failed: true });
    expect(group()?.spec).toMatchObject({ install: grant, enroll: true });
  });

  it("never give a script without a permit, whatever the Profile was before", async () => {
    await listed(profileObject(), groupObject({ install: grant }));
    expect(under.boots({ mac })).toBe(kernel);
    const seen = under.watchBoots({ mac });
    await changed(profileObject(installs));
    await changed(profileObject({ ...installs, ...broken }));
    await changed(profileObject({ effect: "Boot", ...broken }));
    await changed(profileObject(installs));
    expect(seen).toEqual([kernel, "noPermit", "doubtful", "noPermit"]);
  });

  it("of a new version that is not usable make the machines of an older one wait", async () => {
    await listed(profileObject(), groupObject());
    await changed(profileObject({ install: plan, ...broken }));
    expect(profile()).toMatchObject({ outdated: true, content: { effect: "Install" } });
    expect(under.boots({ mac })).toBe("doubtful");
  });

  it("of a refused version make the machines of an older one wait", async () => {
    await listed(profileObject(), groupObject());
    under.source.refuse(web, "spec.install.timeout: must be a duration", { caution: { isInstall: true } });
    await changed(profileObject());
    expect(under.boots({ mac })).toBe("doubtful");
  });

  it("of an older version give nothing while the newest one is refused", async () => {
    await listed(profileObject(installs), groupObject({ install: grant }));
    under.source.refuse(web, "spec.boot: must be an object");
    await changed(profileObject(installs));
    expect(profile()).toMatchObject({ outdated: true, content: { install: plan } });
    expect(["doubtful", "noPermit"]).toContain(under.boots({ mac }));
  });

  it.each<{ what: string; spec: Partial<GroupSpec>; is: object }>([
    { what: "a grant", spec: { install: grant }, is: { install: grant } },
    { what: "a wish for approval", spec: { approval: "Required" }, is: { approval: "Required" } },
  ])("of a Group take effect at once: $what", async ({ spec, is }) => {
    await listed(profileObject(), groupObject());
    await changed(groupObject(spec));
    expect(group()?.spec).toMatchObject(is);
    await changed(groupObject());
    expect(group()?.spec).toEqual(groupObject().spec);
  });

  it("of a refused Group grant nothing, even on a Group that davit fails on", async () => {
    await listed(profileObject(installs), groupObject({ install: grant }));
    under.source.refuse(node1, "no", { standIns: [groupObject({ install: grant }).spec] });
    await changed(groupObject({ install: grant }));
    expect(group()?.outdated).toBe(true);
    expect(["doubtful", "noPermit"]).toContain(under.boots({ mac }));
  });

  it("make two Groups tie that are otherwise the same", async () => {
    await listed(profileObject(), groupObject({ install: grant }), groupObject({}, "node2"));
    expect(under.boots({ mac })).toBe("tied");
    await changed(groupObject({ install: grant }, "node2"));
    expect(under.boots({ mac })).toBe(kernel);
  });
});

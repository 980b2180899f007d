/** Templates that print what only Machines define, or the address for reports, are no mistakes. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ProfileSpec, TemplateSource } from "../../src/model/objects/profile.ts";
import type { SourceObject } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, kernelBoot, machineObject, profileObject } from "./objects.ts";

const plan = { then: "exit", timeoutSeconds: 7_200 } as const;
const text = (template: string): TemplateSource => ({ kind: "inline", text: template, raw: false });
const generic = (template: string): Partial<ProfileSpec> => ({ templates: { generic: text(template) } });

describe("a variable that only Machines define", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.clock.advance(2_000);
  }

  async function changed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellChanged(...objects);
    await under.clock.advance(2_000);
  }

  const ready = () => under.statuses.ready("Group/node1");

  it("makes no Group unready, in configs and in kernel arguments, even of an Install", async () => {
    const boot = { ...kernelBoot, args: ["ip={{ip}}", "host={{machine.name}}"] };
    await listed(
      profileObject({ effect: "Install", boot, ...generic("{{ip}} {{machine.labels.rack}} {{machine.namespace}}") }),
      groupObject(),
      machineObject({ metadata: { ip: "10.0.7.12" }, labels: { rack: "7" } }),
    );
    expect(ready()).toBe("Ready");
    expect(under.stored("/davit/groups/default/node1")[0]).not.toContain("flaw");
  });

  it("fails for every request before a Machine defines it, and not after that", async () => {
    await listed(profileObject({ effect: "Install", ...generic("{{ip}}") }), groupObject());
    expect(ready()).toBe("RenderFailed");
    expect(under.stored("/davit/groups/default/node1")[0]).toContain("flaw");
    await changed(machineObject({ metadata: { ip: "10.0.7.12" } }));
    expect(ready()).toBe("Ready");
    expect(under.stored("/davit/groups/default/node1")[0]).not.toContain("flaw");
    under.source.drop({ kind: "Machine", namespace: "default", name: "node1" });
    await changed();
    under.source.tellChanged({ kind: "Machine", namespace: "default", name: "node1" });
    await under.clock.advance(2_000);
    expect(ready()).toBe("RenderFailed");
  });

  it("lets a Profile take a new version that prints it", async () => {
    await listed(profileObject(generic("old")), groupObject(), machineObject({ metadata: { ip: "10.0.7.12" } }));
    await changed(profileObject(generic("{{ip}} {{#if machine}}{{machine.name}}{{/if}}")));
    expect(ready()).toBe("Ready");
    expect(under.statuses.ready("Profile/web")).toBe("Ready");
    expect(under.stored("/davit/profiles/default/web")[0]).toContain("{{ip}}");
  });

  it("hides no other mistake", async () => {
    await listed(
      profileObject({ effect: "Install", ...generic("{{ip}} {{disc}}") }),
      groupObject(),
      machineObject({ metadata: { ip: "10.0.7.12" } }),
    );
    expect(ready()).toBe("RenderFailed");
    expect(under.statuses.message("Group/node1")).toContain("disc");
  });

  it("of a tenant's Machine counts only in its own namespace", async () => {
    await under.stop();
    under = await ControllerUnderTest.start({ adminNamespace: "infra" });
    await listed(profileObject(generic("{{ip}}")), groupObject(), {
      ...machineObject({ metadata: { ip: "10.0.7.12" } }),
      namespace: "other",
    });
    expect(ready()).toBe("RenderFailed");
  });
});

describe("the address for reports", () => {
  let under: ControllerUnderTest;

  afterEach(() => under.stop());

  async function ready(spec: Partial<ProfileSpec>): Promise<string | undefined> {
    under = await ControllerUnderTest.start();
    under.source.put(profileObject(spec), groupObject());
    under.source.tellListed();
    await under.synced;
    await under.clock.advance(2_000);
    return under.statuses.ready("Group/node1");
  }

  it("is a variable of the configs of a Profile with an install", async () => {
    expect(await ready({ effect: "Install", install: plan, ...generic("curl {{davit.report}}") })).toBe("Ready");
  });

  it("is none without an install, and none of a boot section", async () => {
    expect(await ready({ effect: "Install", ...generic("curl {{davit.report}}") })).toBe("RenderFailed");
    await under.stop();
    const boot = { ...kernelBoot, args: ["report={{davit.report}}"] };
    expect(await ready({ effect: "Install", install: plan, boot })).toBe("RenderFailed");
  });
});

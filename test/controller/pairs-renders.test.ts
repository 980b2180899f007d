/** Results that are never valid, whatever machines ask: the answers of every machine of a fleet, through the edits. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ProfileSpec, TemplateSource } from "../../src/model/objects/profile.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { all, first, fleet, groupOf, inline, web } from "./fleet.ts";
import { kernelBoot, profileObject, secretObject } from "./objects.ts";

let under: ControllerUnderTest;
let answers: readonly (readonly string[])[];

beforeEach(async () => {
  under = await ControllerUnderTest.start({ checkTemplate: parseTemplate });
});

afterEach(() => under.stop());

/** Waits until a status says so, and until everything that was told is done. */
async function told(name: string, reason: string): Promise<void> {
  await under.settled();
  expect(under.statuses.ready(name)).toBe(reason);
  await under.clock.advance(2_000);
}

describe("a Profile whose result is never valid, whatever its machines ask", () => {
  const good = '{"ignition":{"version":"3.4.0"},"disk":"{{disk}}"}';
  const old = '{"ignition":{"version":"3.4.0"},"disk":"sda"}';

  /** Begins with a fleet that has this Ignition config, and listens to what each of its machines gets. */
  async function beginIgnition(spec: Partial<ProfileSpec> = {}): Promise<void> {
    under.source.put(profileObject({ templates: { ignition: inline(good) }, ...spec }));
    under.source.put(...fleet.map((name) => groupOf(name)));
    under.source.tellListed();
    await under.synced;
    answers = fleet.map((serial) => under.watchConfig("ignition", { serial }));
  }

  it.each([
    ["JSON that ends too early", '{"ignition":{"version":"3.4.0"},"disk":"{{disk}}"'],
    ["no Ignition config", '{"disk":"{{disk}}"}'],
    ["no Ignition config, of a static text", "not: ignition"],
    ["YAML that is none", "ignition: [{{disk}}"],
    ["a value that a helper cannot use", `{{indent disk 1000}}${good}`],
  ])("%s: stays at its last good content, and all of its Groups say so", async (_what, text) => {
    await beginIgnition();
    under.source.put(profileObject({ templates: { ignition: inline(text) } })).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    for (const name of fleet) await told(`Group/${name}`, "RenderFailed");
    expect(answers).toEqual(all(old));
    expect(under.statuses.conditions("Profile/web").Synced).toBe("False ServingLastGood");
    expect(under.statuses.message("Profile/web")).toMatch(/^spec\.ignition: .*Group "n00" and others/);
    const mended = good.replace("3.4.0", "3.5.0");
    under.source.put(profileObject({ templates: { ignition: inline(mended) } })).tellChanged(web);
    await told("Profile/web", "Ready");
    expect(answers).toEqual(all(old, old.replace("3.4.0", "3.5.0")));
  });

  it("in another kind of config, or a Secret, stays as well, and nothing of the Secret is shown", async () => {
    under.source.put(secretObject({ k: good }));
    const ignition: TemplateSource = { kind: "secret", name: "secrets", key: "k", raw: false };
    const start = `#cloud-config\n${"# a comment\n".repeat(600)}`;
    const cloudConfig = inline(`${start}disk: {{disk}}\n`);
    await beginIgnition({ templates: { ignition, cloudConfig } });
    under.source.put(secretObject({ k: "hidden {{disk}}" }));
    under.source.tellChanged({ kind: "Secret", namespace: "default", name: "secrets" });
    await told("Profile/web", "RenderFailed");
    expect(under.statuses.message("Profile/web")).not.toContain("hidden");
    under.source.put(secretObject({ k: good }));
    const broken = inline(`${start}disk: {{disk}}: [\n`);
    under.source.put(profileObject({ templates: { ignition, cloudConfig: broken } })).tellChanged(web);
    under.source.tellChanged({ kind: "Secret", namespace: "default", name: "secrets" });
    await under.settled();
    expect(under.statuses.message("Profile/web")).toMatch(/^spec\.cloudConfig: line 602, column/);
    expect(under.config("cloud", { serial: "n07" })).toBe(`${start}disk: sda\n`);
    expect(answers).toEqual(all(old));
  });

  it.each([
    ["a value that would end a script's line", { args: ["{{davit}}", "disk={{disk}}\u0007"] }],
    ["a quote that is not closed", { args: ['"disk={{default nothing "two words"}}'] }],
    ["no kernel", { kernel: "{{#unless disk}}/assets/vmlinuz{{/unless}}" }],
  ])("in the boot section, by %s, stays as well", async (_what, wrong) => {
    await beginIgnition();
    const boots = fleet.map((serial) => under.watchBoots({ serial }));
    const templates = { ignition: inline(old) };
    under.source.put(profileObject({ templates, boot: { ...kernelBoot, ...wrong } })).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    expect(answers).toEqual(all(old));
    expect(boots).toEqual(all("kernel /assets/vmlinuz"));
  });

  it("and installs has its machines wait until it is mended", async () => {
    await beginIgnition({ effect: "Install" });
    const boots = fleet.map((serial) => under.watchBoots({ serial }));
    const broken = { templates: { ignition: inline("{{disk}}") }, effect: "Install" } as const;
    under.source.put(profileObject(broken)).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    expect(under.statuses.conditions("Profile/web").Synced).toBe("False NotServed");
    under.source.put(profileObject({ ...broken, templates: { ignition: inline(good) } })).tellChanged(web);
    await told("Profile/web", "Ready");
    expect(boots).toEqual(all("kernel /assets/vmlinuz", "doubtful", "kernel /assets/vmlinuz"));
    expect(answers).toEqual(all(old, "doubtful", old));
  });

  it("for one of its Groups stays for all of them", async () => {
    under.source.put(groupOf("n07", { metadata: { disk: "sda", size: '1"' } }));
    for (const name of fleet)
      under.source.put(groupOf(name, { metadata: { disk: "sda", size: name === "n07" ? "" : 1 } }));
    under.source.put(profileObject({ templates: { ignition: inline(good) } }));
    under.source.tellListed();
    await under.synced;
    answers = fleet.map((serial) => under.watchConfig("ignition", { serial }));
    const text = '{"ignition":{"version":"3.4.0"},"size":{{size}} }';
    under.source.put(profileObject({ templates: { ignition: inline(text) } })).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    await told("Group/n07", "RenderFailed");
    await told("Group/n00", "Ready");
    expect(answers).toEqual(all(old));
  });

  it.each([
    ["that the request decides", "{{request.query.serial}}"],
    ["that looks at the request first", "{{#if request.query.os}}{{/if}}no ignition"],
    ["of which nobody had a good one", "no ignition either {{disk}}"],
  ])("%s is taken over", async (what, text) => {
    const isNew = what.startsWith("of which");
    await beginIgnition(isNew ? { templates: { ignition: inline("{{disk}}") } } : {});
    under.source.put(profileObject({ displayName: "new", templates: { ignition: inline(text) } })).tellChanged(web);
    await under.settled();
    expect(under.answer({ serial: "n00" })).toBe("default/n00 new");
    await under.settled();
    expect(under.statuses.conditions("Profile/web").Synced).toBe("True Synced");
  });

  it("by a Group's new metadata: the Group keeps its last good ones", async () => {
    await beginIgnition();
    under.source.put(groupOf("n00", { metadata: { disk: '"' }, priority: 7 })).tellChanged(first);
    await told("Group/n00", "RenderFailed");
    expect(answers).toEqual(all(old));
    expect(under.stored("/davit/groups/default/n00")).toEqual([expect.stringContaining('"priority":7')]);
    expect(under.statuses.conditions("Group/n00").Synced).toBe("False ServingLastGood");
    await told("Profile/web", "Ready");
    under.source.put(groupOf("n00", { metadata: { disk: "sdb" } })).tellChanged(first);
    await told("Group/n00", "Ready");
    expect(answers[0]).toEqual([old, old.replace("sda", "sdb")]);
  });

  it("and a Group that goes with it change in one step, whichever comes first", async () => {
    await beginIgnition();
    const text = '{"ignition":{"version":"3.4.0"},"disk":{{disk}} }';
    under.source.put(profileObject({ templates: { ignition: inline(text) } })).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    for (const name of fleet)
      under.source.put(groupOf(name, { metadata: { disk: 7 } })).tellChanged({ ...first, name });
    await told("Profile/web", "Ready");
    expect(answers).toEqual(all(old, '{"ignition":{"version":"3.4.0"},"disk":7 }'));
  });

  it.each(["generic", "generic/answers"] as const)("in a long JSON of %s stays as well", async (part) => {
    const long = "x".repeat(20_000);
    const json = (text: string): TemplateSource => ({ kind: "inline", text, raw: false, format: "json" });
    await beginIgnition({ templates: { [part]: json(`{"disk":"{{disk}}","long":"${long}"}`) } });
    const broken = json(`{"disk":{{disk}},"long":"${long}"}`);
    under.source.put(profileObject({ templates: { [part]: broken } })).tellChanged(web);
    await told("Profile/web", "RenderFailed");
    expect(under.config(part, { serial: "n07" })).toBe(`{"disk":"sda","long":"${long}"}`);
  });

  it("and is too long to be tried at once is left to the trials", async () => {
    await beginIgnition();
    const text = `${"# a comment\n".repeat(5_000)}{{disk}}: [`;
    under.source.put(profileObject({ templates: { ignition: inline(text) } })).tellChanged(web);
    await under.settled();
    expect(under.statuses.conditions("Profile/web").Synced).toBe("True Synced");
    await under.settled();
    expect(under.statuses.ready("Profile/web")).toBe("RenderFailed");
  });

  it("for a new Group of one that installs has its machines wait for every part, until it is mended", async () => {
    await beginIgnition({ effect: "Install" });
    const name = { ...first, name: "new" };
    const boots = under.watchBoots({ serial: "new" });
    const script = under.watchConfig("ipxe", { serial: "new" });
    const look = async () => {
      under.source.tellChanged(name);
      await under.clock.advance(2_000);
    };
    under.source.put(groupOf("new", { metadata: { disk: '"' } }));
    await look();
    await told("Group/new", "RenderFailed");
    expect(boots.at(-1)).toBe("doubtful");
    await look();
    expect(boots.at(-1)).toBe("doubtful");
    under.source.put(groupOf("new", { metadata: { disk: "sda" } }));
    await look();
    await told("Group/new", "Ready");
    expect(new Set(boots)).toEqual(new Set(["noMatch", "doubtful", "kernel /assets/vmlinuz"]));
    expect(script.filter((text) => text.includes("vmlinuz"))).toHaveLength(1);
    expect(answers).toEqual(all(old));
  });

  it("for a new Group of one that installs ends with the Profile's next version", async () => {
    await beginIgnition({ effect: "Install" });
    under.source.put(groupOf("new", { metadata: { disk: '"' } })).tellChanged({ ...first, name: "new" });
    await under.settled();
    expect(under.boots({ serial: "new" })).toBe("doubtful");
    const text = '{"ignition":{"version":"3.4.0"}}{{#if disk}}{{/if}}';
    under.source.put(profileObject({ templates: { ignition: inline(text) }, effect: "Install" })).tellChanged(web);
    await told("Group/new", "Ready");
    expect(under.boots({ serial: "new" })).toBe("kernel /assets/vmlinuz");
  });
});

/** Variables that nothing defines any more: the answers of every machine of a fleet, through the edit of either side. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ProfileSpec, TemplateSource } from "../../src/model/objects/profile.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { all, first, fleet, groupOf, inline, profile, web } from "./fleet.ts";
import { configMapObject, kernelBoot, profileObject, secretObject } from "./objects.ts";

let under: ControllerUnderTest;
let answers: readonly (readonly string[])[];

beforeEach(async () => {
  under = await ControllerUnderTest.start({ checkTemplate: parseTemplate });
});

afterEach(() => under.stop());

/** Begins with a fleet that has this Profile, and listens to what each of its machines gets. */
async function begin(generic: string | TemplateSource, spec: Partial<ProfileSpec> = {}): Promise<void> {
  under.source.put(profile(generic, spec), ...fleet.map((name) => groupOf(name)));
  under.source.tellListed();
  await under.synced;
  answers = fleet.map((serial) => under.watchConfig("generic", { serial }));
}

/** Waits until a status says so, and until everything that was told is done. */
async function told(name: string, reason: string): Promise<void> {
  await under.settled();
  expect(under.statuses.ready(name)).toBe(reason);
  await under.clock.advance(2_000);
}

describe("a Profile that prints a variable that nothing defines", () => {
  it.each([
    ["alone", "{{disc}}"],
    ["behind what the request says", "{{request.query.serial}} {{disc}}"],
    ["of a variable that is there", "{{disk.path}}"],
    ["in a condition that holds", "{{#if disk}}{{disc}}{{/if}}"],
    ["in a condition on davit's address", "{{#if davit.url}}{{disc}}{{/if}}"],
    ["in a loop", "{{#each davit}}{{../disc}}{{/each}}"],
    ["of the request, which has no such member", "{{request.disc}}"],
  ])("%s stays at its last good content for all its Groups, and all of them say so", async (_what, text) => {
    await begin("disk {{disk}}");
    under.source.put(profile(text)).tellChanged(web);
    await told("Profile/web", "UndefinedVariable");
    expect(answers).toEqual(all("disk sda"));
    for (const name of fleet) await told(`Group/${name}`, "UndefinedVariable");
    expect(under.statuses.conditions("Profile/web").Synced).toBe("False ServingLastGood");
    expect(under.statuses.message("Profile/web")).toMatch(/spec\.generic: line 1.*Group "n00" and others/);
  });

  it.each([
    ["where nothing is missing", "{{disk}} {{davit.url}} {{serial}}"],
    ["of the request", "{{request.query.nothing}}"],
    ["in a condition that does not hold", "{{#if disc}}{{disc}}{{/if}}{{#unless disk}}{{disc}}{{/unless}}"],
    ["in a condition on the request", "{{#if request.query.os}}{{disc}}{{/if}}"],
    ["in a condition on davit's address", "{{#unless davit.url}}{{disc}}{{/unless}}"],
    ["by a helper", '{{default disc "none"}}{{lookup disk "disc"}}'],
  ])("%s is taken over", async (_what, text) => {
    await begin("disk {{disk}}");
    under.source.put(profile(text)).tellChanged(web);
    await under.settled();
    expect(answers[0]?.length).toBe(2);
    expect(under.statuses.conditions("Profile/web").Synced).toBe("True Synced");
  });

  it("and installs has its machines wait, in whatever part it is, until it is mended", async () => {
    await begin("disk {{disk}}", { effect: "Install" });
    const boots = fleet.map((serial) => under.watchBoots({ serial }));
    const boot = { ...kernelBoot, args: ["{{disc}}"] };
    under.source.put(profile("disk {{disk}}", { effect: "Install", boot })).tellChanged(web);
    await told("Profile/web", "UndefinedVariable");
    under.source.put(profile("new {{disk}}", { effect: "Install" })).tellChanged(web);
    await told("Profile/web", "Ready");
    expect(boots).toEqual(all("kernel /assets/vmlinuz", "doubtful", "kernel /assets/vmlinuz"));
    expect(answers).toEqual(all("disk sda", "doubtful", "new sda"));
    await told("Group/n00", "Ready");
  });

  it("is taken over once the Groups define it", async () => {
    await begin("disk {{disk}}");
    under.source.put(profile("disc {{disc}}")).tellChanged(web);
    await told("Group/n19", "UndefinedVariable");
    for (const name of fleet) {
      under.source.put(groupOf(name, { metadata: { disk: "sda", disc: "sdb" } }));
      under.source.tellChanged({ ...first, name });
    }
    await told("Profile/web", "Ready");
    await told("Group/n00", "Ready");
    expect(answers).toEqual(all("disk sda", "disc sdb"));
  });

  it("of a ConfigMap stays as well", async () => {
    const generic: TemplateSource = { kind: "configMap", name: "templates", key: "k", raw: false };
    under.source.put(configMapObject({ k: "disk {{disk}}" }));
    await begin(generic);
    under.source.put(configMapObject({ k: "{{disc}}" }));
    under.source.tellChanged({ kind: "ConfigMap", namespace: "default", name: "templates" });
    await told("Profile/web", "UndefinedVariable");
    expect(answers).toEqual(all("disk sda"));
    expect(under.statuses.message("Profile/web")).toContain('"disc"');
  });

  it("of a Secret stays as well, and nothing of the text is shown", async () => {
    const generic: TemplateSource = { kind: "secret", name: "secrets", key: "k", raw: false };
    under.source.put(secretObject({ k: "disk {{disk}}" }));
    await begin(generic);
    under.source.put(secretObject({ k: "{{disc}}" }));
    under.source.tellChanged({ kind: "Secret", namespace: "default", name: "secrets" });
    await told("Profile/web", "UndefinedVariable");
    expect(answers).toEqual(all("disk sda"));
    expect(under.statuses.message("Profile/web")).not.toContain("disc");
  });

  it("for one of many Groups stays for all of them, as a whole", async () => {
    under.source.put(
      profile("{{disk}}"),
      ...fleet.map((name) => groupOf(name, { metadata: { disk: "a", disc: "b" } })),
    );
    await begin("{{disk}}");
    for (const name of fleet.slice(1)) {
      under.source.put(groupOf(name, { metadata: { disk: "sda", disc: "b" } })).tellChanged({ ...first, name });
    }
    under.source.put(profile("{{disc}}", { boot: { ...kernelBoot, kernel: "/assets/new" } })).tellChanged(web);
    await told("Profile/web", "UndefinedVariable");
    expect(answers).toEqual(all("sda"));
    expect(under.boots({ serial: "n07" })).toBe("kernel /assets/vmlinuz");
    await told("Group/n00", "UndefinedVariable");
    await told("Group/n07", "Ready");
  });

  it("leaves davit idle when one of its Groups changes", async () => {
    await begin("disk {{disk}}");
    under.source.put(profile("{{disc}}")).tellChanged(web);
    await told("Profile/web", "UndefinedVariable");
    for (const name of fleet) await told(`Group/${name}`, "UndefinedVariable");
    const reconciles = async () => (await under.metrics.text()).match(/^controller_runtime_reconcile_total.*$/gm);
    under.source.put(groupOf("n00", { priority: 3 })).tellChanged(first);
    await under.settled();
    expect(under.stored("/davit/groups/default/n00").join()).toContain('"priority":3');
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    const before = await reconciles();
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(await reconciles()).toEqual(before);
  });

  it("and never was another is served as far as it goes; one that installs has its machines wait", async () => {
    under.source.put(groupOf("n01", { metadata: { disc: "b" } }), profile("{{disc}}", { effect: "Install" }));
    under.source.put(groupOf("n00"));
    under.source.tellListed();
    await under.synced;
    expect(under.boots({ serial: "n00" })).toBe("doubtful");
    const flaw = expect.stringMatching(/^spec\.generic: line 1, .*"disc" is not defined for this Group$/);
    expect(JSON.parse(under.stored("/davit/groups/default/n00").join())).toMatchObject({ outdated: true, flaw });
    expect(under.boots({ serial: "n01" })).toBe("kernel /assets/vmlinuz");
    under.source.put(profile("{{disc}}", { effect: "Boot" })).tellChanged(web);
    await under.settled();
    expect(under.boots({ serial: "n00" })).toBe("kernel /assets/vmlinuz");
    under.source.put(profile("{{disc}}", { effect: "Install" })).tellChanged(web);
    await under.settled();
    expect(under.boots({ serial: "n00" })).toBe("doubtful");
    expect(under.config("generic", { serial: "n01" })).toBe("b");
  });
});

describe("a Group whose metadata loses a variable", () => {
  it("keeps its last good metadata, and takes over the rest", async () => {
    await begin("disk {{disk}}");
    under.source.put(groupOf("n00", { metadata: { disc: "sdb" }, priority: 7 })).tellChanged(first);
    await told("Group/n00", "UndefinedVariable");
    expect(answers).toEqual(all("disk sda"));
    expect(under.stored("/davit/groups/default/n00")).toEqual([expect.stringContaining('"priority":7')]);
    expect(under.statuses.conditions("Group/n00").Synced).toBe("False ServingLastGood");
    under.source.put(groupOf("n00", { metadata: { disk: "sdb" } })).tellChanged(first);
    await told("Group/n00", "Ready");
    expect(answers[0]).toEqual(["disk sda", "disk sdb"]);
  });

  it("and is held is held at once, and stays so", async () => {
    await begin("disk {{disk}}");
    under.source.put(groupOf("n00", { metadata: {}, hold: true })).tellChanged(first);
    await told("Group/n00", "UndefinedVariable");
    under.source.put(groupOf("n00", { metadata: {} })).tellChanged(first);
    await under.clock.advance(2_000);
    expect(answers[0]).toEqual(["disk sda", "held"]);
  });

  it("that is its Profile's default is a change of the Profile", async () => {
    await begin("disk {{disk}} {{role}}", { metadata: { role: "web" } });
    under.source.put(profile("disk {{disk}} {{role}}")).tellChanged(web);
    await told("Profile/web", "UndefinedVariable");
    expect(answers).toEqual(all("disk sda web"));
  });

  it.each([[[first, web]], [[web, first]]])("together with its Profile is taken over in one step", async (order) => {
    await begin("disk {{disk}}");
    const renamed = { metadata: { disc: "sdb" } };
    for (const { kind } of order) {
      if (kind === "Profile") under.source.put(profile("disc {{disc}}")).tellChanged(web);
      else for (const each of fleet) under.source.put(groupOf(each, renamed)).tellChanged({ ...first, name: each });
      if (kind === order[0]?.kind) await told("Group/n00", "UndefinedVariable");
    }
    await told("Profile/web", "Ready");
    await told("Group/n19", "Ready");
    expect(answers).toEqual(all("disk sda", "disc sdb"));
  });

  it("does not hold up a later change of its Profile", async () => {
    await begin("disk {{disk}}");
    under.source.put(groupOf("n00", { metadata: {} })).tellChanged(first);
    await told("Group/n00", "UndefinedVariable");
    under.source.put(profile("new {{disk}}")).tellChanged(web);
    await told("Profile/web", "Ready");
    expect(answers).toEqual(all("disk sda", "new sda"));
    await told("Group/n00", "UndefinedVariable");
  });

  it.each([
    ["another machine", { selector: { serial: "other" } }],
    ["every machine", { selector: {}, matchAll: true }],
  ])("and takes %s gives it nothing that was meant for the one before", async (_what, moved) => {
    const boot = { ...kernelBoot, args: ["quiet"] };
    under.source.put(profile("{{disk}}", { boot }), groupOf("n00", { args: ["install_dev={{disk}}"] }));
    under.source.tellListed();
    await under.synced;
    const seen = under.watchConfig("ipxe", { serial: "other" });
    expect(under.config("ipxe", { serial: "n00" })).toContain("install_dev=sda");
    under.source.put(groupOf("n00", { ...moved, metadata: {} })).tellChanged(first);
    await under.clock.advance(2_000);
    await under.settled();
    expect(under.config("ipxe", { serial: "other" })).toContain("quiet");
    expect(seen.filter((text) => text.includes("install_dev"))).toEqual([]);
  });

  it.each([
    ["{{disc}}", "UndefinedVariable"],
    ["{{#if disk}}", "InvalidTemplate"],
  ])("by its arguments keeps its last good ones: %s", async (arg, reason) => {
    await begin("disk {{disk}}");
    under.source.put(groupOf("n00", { args: [arg] })).tellChanged(first);
    await told("Group/n00", reason);
    expect(under.stored("/davit/groups/default/n00").join()).not.toContain(arg);
  });
});

describe("a failure that shows when it is rendered, and that no request can cure", () => {
  it.each([
    ["a result that is never valid", { templates: { ignition: inline("not: ignition") } }],
    ["a template that cannot be parsed", { templates: { generic: inline("{{#if}") } }],
    ["a helper that cannot use its argument", { templates: { generic: inline("{{indent disk 1000}}") } }],
    ["a value that boot scripts cannot take", { boot: { ...kernelBoot, kernel: "/assets/{{bad}}" } }],
  ])("%s: its Groups are not ready, nor is the Profile", async (_what, spec) => {
    under.source.put(profileObject(spec), groupOf("n00", { metadata: { disk: "sda", bad: "two words" } }));
    under.source.tellListed();
    await under.settled();
    expect(under.statuses.conditions("Group/n00").Ready).toBe("False RenderFailed");
    await under.settled();
    expect(under.statuses.conditions("Profile/web").Ready).toMatch(/^False (?:RenderFailed|Invalid)/);
    expect(await ready("Group")).toBe(0);
  });

  it("what depends on the request is advice", async () => {
    const generic = inline("{{request.query.os}}{{#if request.query.os}}{{disc}}{{/if}}");
    under.source.put(profileObject({ templates: { generic } }), groupOf("n00"));
    under.source.tellListed();
    await told("Group/n00", "Ready");
    await told("Profile/web", "Ready");
    expect(under.statuses.conditions("Group/n00").Rendered).toBe("False RenderFailed");
    expect(await ready("Group")).toBe(1);
  });
});

/** How many objects of a kind the metric says are ready. */
async function ready(kind: string): Promise<number | undefined> {
  const { values } = await under.metrics.resources.get();
  return values.find(({ labels }) => labels.kind === kind && labels.ready === "true")?.value;
}

/** Groups that a step has no time to look at, since others of the step took it: what was found before counts. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Effect } from "../../src/model/objects/profile.ts";
import type { GroupObject, OwnName } from "../../src/model/objects/source.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { inline, web } from "./fleet.ts";
import { groupObject, profileObject } from "./objects.ts";

/** Long enough for fewer than 30 Groups to fill the time of a step. */
const filler = Array.from({ length: 60 }, (_, at) => `k${at}: "{{host}} some value of this machine"`).join("\n");
const name = (group: string) => ({ kind: "Group", namespace: "default", name: group }) as const satisfies OwnName;
const names = Array.from({ length: 30 }, (_, at) => `n${at + 10}`);
const last = name("zz");
const zz = { serial: "zz" };
const others = names.map((each) => group(each, "sda"));

let under: ControllerUnderTest;
/** davit that starts anew on the same store. */
let next: ControllerUnderTest;

beforeEach(async () => {
  under = await ControllerUnderTest.start({ checkTemplate: parseTemplate });
  next = await ControllerUnderTest.start({ checkTemplate: parseTemplate, store: under.store });
});

afterEach(async () => {
  await next.stop();
  await under.stop();
});

function profile(disk: string, effect: Effect = "Install") {
  return profileObject({ effect, templates: { cloudConfig: inline(`#cloud-config\n${filler}\ndisk: ${disk}\n`) } });
}

/** A cloud-config with "[" for a disk is no YAML. */
function group(serial: string, disk: string) {
  return { ...groupObject({ selector: { serial }, metadata: { disk, host: serial } }, serial), uid: serial };
}

async function begin(...groups: readonly GroupObject[]): Promise<void> {
  under.source.put(profile("{{disk}}"), ...groups);
  under.source.tellListed();
  await under.synced;
}

async function restart(...groups: readonly GroupObject[]): Promise<void> {
  next.source.put(profile("{{disk}}"), ...groups);
  next.source.tellListed();
  await next.synced;
}

/** As `settled`, for the steps that follow each other until each Group was looked at. */
async function stepsSettled(davit: ControllerUnderTest): Promise<void> {
  for (const _ of names) await davit.settled();
}

async function told(davit: ControllerUnderTest, group: string, reason: string): Promise<void> {
  await stepsSettled(davit);
  expect(davit.statuses.ready(`Group/${group}`)).toBe(reason);
  await davit.clock.advance(2_000);
}

describe("a Group with which its Profile fails, behind many of one step", () => {
  beforeEach(async () => {
    await begin(...others);
    under.source.put(group("zz", "[")).tellChanged(last);
    await told(under, "zz", "RenderFailed");
    expect(under.boots(zz)).toBe("doubtful");
  });

  it("waits on after a restart, until it is mended", async () => {
    const seen = under.watchBoots(zz);
    await restart(...others, group("zz", "["));
    await told(next, "zz", "RenderFailed");
    for (const each of names) await told(next, each, "Ready");
    expect(seen).toEqual(["doubtful"]);
    next.source.put(group("zz", "sda")).tellChanged(last);
    await told(next, "zz", "Ready");
    expect(seen).toEqual(["doubtful", "kernel /assets/vmlinuz"]);
  });

  it("that is mended before the restart boots after it", async () => {
    await restart(...others, group("zz", "sda"));
    await stepsSettled(next);
    expect(under.boots(zz)).toBe("kernel /assets/vmlinuz");
    expect(under.stored("/davit/groups/default/zz")[0]).not.toContain("flaw");
  });

  it("waits on through an edit of its Profile, until one that mends it", async () => {
    const seen = under.watchBoots(zz);
    under.source.put(profile("{{disk}} # a comment")).tellChanged(web);
    for (const each of names) await told(under, each, "Ready");
    await told(under, "zz", "RenderFailed");
    expect(seen).toEqual(["doubtful"]);
    under.source.put(profile('"{{disk}}"')).tellChanged(web);
    await told(under, "zz", "Ready");
    expect(seen).toEqual(["doubtful", "kernel /assets/vmlinuz"]);
  });
});

it("many Groups with which their Profile fails all boot soon after it is mended", async () => {
  await begin();
  const groups = [...names, ...names.map((each) => `${each}-b`)];
  for (const each of groups) {
    under.source.put(group(each, "[")).tellChanged(name(each));
    await under.settled();
    expect(under.boots({ serial: each })).toBe("doubtful");
  }
  const seen = groups.map((serial) => under.watchBoots({ serial }));
  under.source.put(profile('"{{disk}}"')).tellChanged(web);
  await stepsSettled(under);
  expect(seen).toEqual(groups.map(() => ["doubtful", "kernel /assets/vmlinuz"]));
});

it("a Group that keeps older metadata keeps it after a restart", async () => {
  await begin(...others, group("zz", "sda"));
  await told(under, "zz", "Ready");
  under.source.put(group("zz", "[")).tellChanged(last);
  await told(under, "zz", "RenderFailed");
  const seen = under.watchConfig("cloud", zz);
  await restart(...others, group("zz", "["));
  await told(next, "zz", "RenderFailed");
  for (const each of names) await told(next, each, "Ready");
  expect(seen).toEqual(["doubtful"]);
  expect(under.stored("/davit/groups/default/zz")[0]).toContain('"disk":"sda"');
  next.source.put(group("zz", "sdb")).tellChanged(last);
  await told(next, "zz", "Ready");
  expect(seen.map((text) => text.match(/disk: .*/)?.[0] ?? text)).toEqual(["doubtful", "disk: sdb"]);
});

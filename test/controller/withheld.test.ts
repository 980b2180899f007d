/** Deletions that wait: of a half view nobody knows what is gone, and a person can see what stays in effect. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { configMapObject, groupObject, profileObject } from "./objects.ts";

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start();
  under.source.put(profileObject(), groupObject(), groupObject({ selector: { role: "b" } }, "node2"));
  under.source.tellListed();
  await under.synced;
});
afterEach(() => under.stop());

const node1 = { kind: "Group", namespace: "default", name: "node1" } as const;
const node2 = { kind: "Group", namespace: "default", name: "node2" } as const;
const counted = async () => (await under.metrics.withheldDeletions.get()).values[0]?.value;
const logged = () => under.logLines.filter((line) => /deletions? waits?/.test(line)).length;

it("A deletion that waits is counted, named and logged once, and is done when more can be read", async () => {
  under.source.complete = false;
  under.source.drop(node1, node2).tellChanged(node1, node2);
  await under.settled();
  expect(await counted()).toBe(2);
  expect(under.attention).toEqual([
    "source: 2 objects are not found, but may be where it cannot be read (Group default/node1, Group default/node2): " +
      "machines boot by them as before until the whole source can be read",
  ]);
  expect(under.answer({ role: "b" })).toBe("default/node2 web");
  expect(logged()).toBe(1);
  under.source.complete = true;
  under.source.tellListed();
  await under.settled();
  expect(await counted()).toBe(0);
  expect(under.attention).toEqual([]);
  expect(under.answer({ role: "b" })).toBe("noMatch");
  expect(logged()).toBe(2);
});

it("An object that is refused keeps itself alone: no deletion of it waits, and of another one neither", async () => {
  under.source.drop(node1, node2).refuse(node1, "spec.priority: must be 1000 or less").tellChanged(node1, node2);
  await under.settled();
  expect(under.answer({ role: "b" })).toBe("noMatch");
  expect(under.answer({ mac: "52:54:00:a1:9c:ae" })).toBe("refused");
  expect(await counted()).toBe(0);
});

it("What stays in view while a file cannot be read counts, too", async () => {
  under.source.withheld = [node1];
  under.source.tellListed();
  expect(await counted()).toBe(1);
  expect(under.attention).toEqual([expect.stringContaining("1 object is not found, but may be where")]);
});

it("What stays for now installs nobody: a Group, a Profile, and a Profile by its ConfigMap", async () => {
  const texts = { kind: "ConfigMap", namespace: "default", name: "templates" } as const;
  const generic = { kind: "configMap", name: "templates", key: "a", raw: false } as const;
  const installs = profileObject({ effect: "Install", templates: { generic } });
  under.source.put(configMapObject({ a: "hello" }), installs).tellChanged(texts, installs);
  await under.settled();
  expect(under.answer({ role: "b" })).toBe("default/node2 web");
  for (const leaving of [node2, installs, texts]) {
    under.source.withheld = [leaving];
    under.source.tellChanged(leaving);
    await under.settled();
    expect(under.answer({ role: "b" })).toBe("doubtful");
    under.source.withheld = [];
    under.source.tellChanged(leaving);
    await under.settled();
    expect(under.answer({ role: "b" })).toBe("default/node2 web");
  }
});

it("What only the store has, and the source may, installs nobody", async () => {
  const installs = profileObject({ effect: "Install" });
  under.source.put(installs).tellChanged(installs);
  await under.settled();
  expect(under.stored("/davit/profiles")).toEqual([expect.stringContaining("Install")]);
  under.source.complete = false;
  for (const name of [node2, installs]) {
    under.source.drop(name).tellChanged(name);
    await expect
      .poll(() => under.stored(`/davit/${name.kind.toLowerCase()}s/default/${name.name}`))
      .toEqual([expect.stringMatching(/"(leaving|outdated)":true/)]);
  }
});

it("A Group that leaves beside its copy under another name keeps nobody waiting", async () => {
  const installs = profileObject({ effect: "Install" });
  const [old, renamed] = ["a", "z"].map((name) => groupObject({ selector: { role: "b" } }, name));
  if (old === undefined || renamed === undefined) throw new Error("two of them");
  under.source.drop(node2).put(installs, old).tellChanged(node2, installs, old);
  await under.settled();
  expect(under.answer({ role: "b" })).toBe("default/a web");
  const seen = under.watchBoots({ role: "b" });
  under.source.put(renamed).tellChanged(renamed);
  await under.settled();
  expect(under.stored("/davit/groups/default/z")).toHaveLength(1);
  under.source.withheld = [old];
  under.source.tellChanged(old);
  await under.settled();
  expect(under.stored("/davit/groups/default/a")).toEqual([expect.stringContaining("leaving")]);
  under.source.withheld = [];
  under.source.drop(old).tellChanged(old);
  await under.settled();
  expect(under.stored("/davit/groups/default/a")).toEqual([]);
  expect(under.answer({ role: "b" })).toBe("default/z web");
  expect(seen).toEqual(["kernel /assets/vmlinuz"]);
});

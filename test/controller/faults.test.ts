/** Exceptions that nobody expected, in the work on one object: what its machines get, and everyone else. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { ProfileSpec } from "../../src/model/objects/profile.ts";
import type { OwnName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject, secretObject } from "./objects.ts";

const profile = { kind: "Profile", namespace: "default", name: "web" } as const satisfies OwnName;
const group = { kind: "Group", namespace: "default", name: "node1" } as const satisfies OwnName;
const machine = { mac: "52:54:00:a1:9c:ae" };
const stranger = { mac: "52:54:00:00:00:01" };

/** Metadata on which whoever looks into them stumbles. */
const trap: JsonObject = new Proxy(
  {},
  {
    ownKeys: () => {
      throw new RangeError("hunter2");
    },
  },
);

let under: ControllerUnderTest;
let checkCount: number;

beforeEach(async () => {
  checkCount = 0;
  under = await ControllerUnderTest.start({
    checkTemplate: (text) => {
      checkCount += 1;
      if (text.includes("trap")) throw new TypeError(`Cannot read\n    at ${text}\nof undefined`);
      return undefined;
    },
  });
  under.source.put(profileObject({ displayName: "Install" }, "install"));
  under.source.put(groupObject({ profile: "install", selector: {}, matchAll: true }, "installer"));
});

afterEach(() => under.stop());

async function sync(): Promise<void> {
  under.source.tellListed();
  await under.synced;
}

function generic(text: string): Partial<ProfileSpec> {
  return { displayName: text, templates: { generic: { kind: "inline", text, raw: false } } };
}

function faults(): readonly string[] {
  return under.logLines.filter((line) => line.includes("davit failed on an object"));
}

describe("an exception in the work on a Profile", () => {
  it("leaves its machines what they had, and everyone else goes on", async () => {
    under.source.put(profileObject(generic("good")), groupObject());
    await sync();
    under.source.put(profileObject(generic("trap hunter2")), profileObject({ displayName: "Other" }, "install"));
    under.source.tellChanged(profile, { ...profile, name: "install" });
    await under.settled();
    expect(under.answer(stranger)).toBe("default/installer Other");
    expect(under.answer(machine)).toBe("default/node1 good");
    await expect
      .poll(() => under.statuses.conditions("Profile/web"))
      .toEqual({
        Accepted: "False InternalError",
        ResolvedRefs: "Unknown NotAccepted",
        Synced: "False InternalError",
        Ready: "False InternalError",
      });
  });

  it("has its machines wait when there is no good version, at the first list as later", async () => {
    under.source.put(profileObject(generic("trap")), groupObject());
    await sync();
    expect(under.answer(machine)).toBe("failed");
    expect(under.answer(stranger)).toBe("default/installer Install");
    under.source.put(profileObject(generic("good"))).tellChanged(profile);
    await under.settled();
    expect(under.answer(machine)).toBe("default/node1 good");
    await under.settled();
    expect(under.statuses.ready("Profile/web")).toBe("Ready");
  });

  it.each([
    ["Install" as const, "Its machines are answered 503"],
    ["Boot" as const, "Machines still get the last good version"],
  ])("says what its machines get, with effect %s", async (effect, message) => {
    const said = (name: string) => under.statuses.message(name, "Synced");
    under.source.put(profileObject({ effect, ...generic("good") }), groupObject());
    await sync();
    under.source.put(groupObject({ metadata: trap })).tellChanged(group);
    await under.settled();
    expect(said("Group/node1")).toBe(message);
    under.source.put(groupObject(), profileObject({ effect, ...generic("trap") })).tellChanged(profile, group);
    await under.settled();
    expect(said("Profile/web")).toBe(message);
    expect(under.answer(machine)).toBe(effect === "Install" ? "doubtful" : "default/node1 good");
  });

  it("erases a Secret that was taken away all the same", async () => {
    const secret = { kind: "secret", name: "secrets", key: "text", raw: true } as const;
    under.source.put(
      secretObject({ text: "s3cret" }),
      groupObject(),
      profileObject({ templates: { generic: secret } }),
    );
    await sync();
    expect(under.stored("/davit/_secrets/")).toEqual(["s3cret"]);
    under.source.drop({ kind: "Secret", namespace: "default", name: "secrets" });
    under.source.put(profileObject({ templates: { ignition: secret, ...generic("trap").templates } }));
    under.source.tellChanged(profile);
    await under.settled();
    expect(under.stored("/davit/_secrets/")).toEqual([]);
    await under.settled();
    expect(under.statuses.ready("Profile/web")).toBe("InternalError");
  });

  it("is logged with its place, and with no word of a template", async () => {
    under.source.put(profileObject(generic("trap hunter2 (file:///a.ts:1:1)")), groupObject());
    await sync();
    const [line = ""] = faults();
    expect(JSON.parse(line)).toMatchObject({
      level: 50,
      kind: "Profile",
      namespace: "default",
      name: "web",
      err: "TypeError",
      stack: expect.stringContaining("resolve-profile.ts"),
    });
    expect(under.logLines.join("")).not.toContain("hunter2");
  });

  it("comes again with the resync and no sooner, and counts as an error", async () => {
    under.source.put(profileObject(generic("trap")), groupObject());
    await sync();
    const checked = checkCount;
    await under.clock.advance(9 * 60_000);
    expect(checkCount).toBe(checked);
    await under.clock.advance(2 * 60_000);
    await under.settled();
    expect(faults().length).toBe(2);
    expect((await under.metrics.text()).split("\n")).toEqual(
      expect.arrayContaining([
        'controller_runtime_reconcile_errors_total{controller="profile"} 2',
        'controller_runtime_terminal_reconcile_errors_total{controller="profile"} 0',
      ]),
    );
  });
});

describe("an exception in the work on a Group", () => {
  it("has its machines wait when it is new: they do not fall to a less specific one", async () => {
    under.source.put(profileObject(generic("good")), groupObject({ metadata: trap }));
    await sync();
    expect(under.answer(machine)).toBe("refused");
    expect(under.answer(stranger)).toBe("default/installer Install");
    await expect
      .poll(() => under.statuses.conditions("Group/node1"))
      .toEqual({
        Accepted: "False InternalError",
        ResolvedRefs: "Unknown NotAccepted",
        Synced: "False InternalError",
        Rendered: "Unknown NotRendered",
        Ready: "False InternalError",
      });
    expect(under.logLines.join("")).not.toContain("hunter2");
  });

  it("leaves what was there while nothing but metadata differs", async () => {
    under.source.put(profileObject(generic("good")), groupObject({ metadata: { role: "web" } }));
    await sync();
    under.source.put(groupObject({ metadata: trap })).tellChanged(group);
    await under.settled();
    expect(under.statuses.ready("Group/node1")).toBe("InternalError");
    expect(under.answer(machine)).toBe("default/node1 good");
    expect(under.stored("/davit/groups/default/node1")[0]).toContain('"role":"web"');
  });

  it.each([
    { name: "is held", spec: { hold: true } },
    { name: "gets another Profile", spec: { profile: "install" } },
    { name: "gets a priority", spec: { priority: 5 } },
  ])("has its machines wait when it $name", async ({ spec }) => {
    under.source.put(profileObject(generic("good")), groupObject());
    await sync();
    under.source.put(groupObject({ ...spec, metadata: trap })).tellChanged(group);
    await under.settled();
    expect(under.answer(machine)).toBe("refused");
    under.source.put(groupObject()).tellChanged(group);
    await under.settled();
    expect(under.answer(machine)).toBe("default/node1 good");
  });

  it("that gets another selector has the machines of both wait", async () => {
    under.source.put(profileObject(generic("good")), groupObject());
    await sync();
    under.source.put(groupObject({ selector: stranger, metadata: trap })).tellChanged(group);
    await under.settled();
    expect(under.answer(stranger)).toBe("refused");
    expect(under.answer(machine)).toBe("bereft");
  });

  it("takes nobody's machines who is not permitted to", async () => {
    await under.stop();
    under = await ControllerUnderTest.start({ adminNamespace: "infra" });
    under.source.put(groupObject({ selector: {}, matchAll: true, metadata: trap }));
    await sync();
    expect(under.answer(machine)).toBe("noMatch");
  });
});

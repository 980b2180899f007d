/** The screen of Groups and Profiles. */

import { describe, expect, it } from "vitest";
import { BootIndex } from "../../../src/boot/selection/boot-index.ts";
import { progressOf } from "../../../src/http/console/pages/objects-page.ts";
import { ConsoleObjects, KnownStatuses } from "../../../src/http/console/state/objects.ts";
import type { ObjectStatus } from "../../../src/model/objects/source.ts";
import { silentLog } from "../../helpers/test-store.ts";
import { entry, machine, openGrant } from "../fake-machines.ts";
import { consoleListener } from "./console-listener.ts";

const listener = consoleListener();

const profile = (name: string, text: string) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: { name: ${name}, namespace: racks }
spec:
  boot: { kernel: https://boot.example/kernel }
  generic: { inline: ${JSON.stringify(text)} }
`;
const group = (name: string, of: string, mac: string, more = "") => `apiVersion: davit.dev/v1alpha1
kind: Group
metadata: { name: ${name}, namespace: racks }
spec:
  profileRef: { name: ${of} }
  selector: { matchLabels: { mac: "${mac}" } }
${more}`;
const mac = (number: number) => `52:54:00:00:00:${number.toString(16).padStart(2, "0")}`;

const manifests = {
  "good.yaml": [
    profile("good", "hello"),
    group("web", "good", mac(1)),
    group("db", "good", mac(2), "  hold: true"),
  ].join("---\n"),
  "bad.yaml": [profile("bad", "{{#if"), group("lost", "nowhere", mac(3))].join("---\n"),
  "broken.yaml": "kind: [",
};

describe("the screen of Groups and Profiles", () => {
  it("has the state of each object, what is wrong, and its file and line", async () => {
    const { ask } = await listener.start({ manifests });
    const { body, status } = await ask("/console/objects");
    expect(status).toBe(200);
    expect(body).toContain('<span class="state booting">ready</span>');
    expect(body).toContain('<span class="state held">held</span>');
    expect(body).toMatch(/needs a person<\/span><\/td>\n<td>[^<]*spec\.generic/);
    expect(body).toContain("Profile &quot;nowhere&quot;");
    expect(body).toContain("<td>bad.yaml, document 2 (line 8)</td>");
    expect(body).toMatch(/<code>broken\.yaml[^<]*<\/code>: /);
  });

  it("shows only what needs a person, a kind, or a text", async () => {
    const { ask } = await listener.start({ manifests });
    const rows = async (query: string) =>
      [...(await ask(`/console/objects?${query}`)).body.matchAll(/<tr id="o-([^"]+)"/g)].map(([, key]) => key);
    expect(await rows("show=person")).toEqual(["Group/racks/lost", "Profile/racks/bad"]);
    expect(await rows("show=profiles")).toEqual(["Profile/racks/bad", "Profile/racks/good"]);
    expect(await rows("show=groups&text=RACKS/w")).toEqual(["Group/racks/web"]);
    expect(await rows("text=%3Cimg%3E")).toEqual([]);
  });

  it("counts the machines of each object, and leads to them", async () => {
    const { ask, record } = await listener.start({ manifests });
    record(`mac=${mac(1)}`, { group: "racks/web" });
    record(`mac=${mac(2)}`, { group: "racks/db" });
    const { body } = await ask("/console/objects");
    expect(body).toContain('<a href="/console/?group=racks%2Fweb" aria-label="1 machines of Group racks/web">1</a>');
    expect(body).toContain('<a href="/console/?text=racks%2Fgood" aria-label="2 machines of Profile racks/good">2</a>');
  });

  it("shows how far a grant has come, as a bar and in words", async () => {
    const { fake } = listener;
    const key = "group/racks/web";
    fake.grants.set(key, openGrant({ generation: 4 }));
    const states = ["Installed", "Claimed", "Failed"] as const;
    for (const [at, state] of states.entries()) {
      fake.entries.push(entry(String(at), { identities: [`mac/${mac(at)}`], state, spent: { [key]: 4 } }));
    }
    fake.machines.push(machine("racks/new", { identities: [`mac/${mac(9)}`] }));
    const boot = {
      group: "racks/web",
      profile: "racks/good",
      isHeld: false,
      needsApproval: false,
      revision: "r1",
      grants: [],
    };
    fake.boots.set(`mac/${mac(9)}`, { ...boot, plan: undefined });
    const { ask } = await listener.start({ manifests });
    for (const url of ["/console/objects", "/console/objects/Group/racks/web"]) {
      const { body } = await ask(url);
      expect(body).toMatch(
        /<progress max="4" value="1" aria-label="[^"]*group\/racks\/web, generation 4"><\/progress>/,
      );
      expect(body).toContain("1 of 4 installed, 1 installing, 1 failed or not confirmed, 1 not begun");
      expect(body).toContain("generation 4, open until");
    }
  });

  it("has a page for each object, with its conditions and Groups", async () => {
    const { ask } = await listener.start({ manifests });
    const { body } = await ask("/console/objects/Profile/racks/good");
    expect(body).toContain("<h1>Profile racks/good</h1>");
    expect(body).toContain('<th scope="row">Accepted</th>');
    expect(body).toContain('<a href="/console/objects/Group/racks/web">racks/web</a>');
    const lost = await ask("/console/objects/Group/racks/lost");
    expect(lost.body).toContain("ProfileNotFound");
    for (const name of ["Group/racks/none", "Secret/racks/x", "Group/racks", "%3Cimg%3E", "Group/racks/web/more"]) {
      const { status, body: text } = await ask(`/console/objects/${name}`);
      expect(status).toBe(404);
      expect(text).not.toContain("<img");
    }
  });

  it("says who knows the statuses, if this davit does not", async () => {
    const led = await listener.start({ isLed: true });
    const { body } = await led.ask("/console/objects");
    expect(body).toContain("Another member leads the store");
    expect(body).toContain('<tr id="o-Group/racks/web">');
    expect(body).toContain("not known here");
    const follower = await listener.start({ follows: true });
    const page = await follower.ask("/console/objects/Group/racks/web");
    expect(page.body).toContain("This davit follows https://davit.example:2379");
  });

  it("looks at the objects of one page only, however many there are", async () => {
    const statuses = new KnownStatuses();
    const status: ObjectStatus = {
      observedGeneration: 1,
      conditions: [{ type: "Ready", status: "True", reason: "Ready", message: "" }],
    };
    for (let at = 0; at < 20_000; at++) {
      await statuses.write({ kind: "Group", namespace: "racks", name: `g${at}` }, status);
    }
    const name = { kind: "Profile", namespace: "racks", name: "bad" } as const;
    const ready = { type: "Ready", status: "False", reason: "Refused", message: `<img src=x>` } as const;
    await statuses.write(name, { ...status, conditions: [ready] });
    listener.statuses = statuses;
    let looked = 0;
    const of = statuses.of.bind(statuses);
    statuses.of = (each) => {
      looked += 1;
      return of(each);
    };
    const { ask } = await listener.start();
    const { body } = await ask("/console/objects?text=g1");
    expect(body.match(/<tr id="o-/g)).toHaveLength(100);
    expect(body).toContain("page 1 of 112");
    expect(looked).toBeLessThan(500);
    const person = await ask("/console/objects?show=person");
    expect(person.body).toContain("&lt;img src=x&gt;");
    expect(person.body).not.toContain("<img");
    const sorted = statuses.keys;
    await statuses.write(name, status);
    expect(statuses.keys, "the names are not sorted again for a new status").toBe(sorted);
    expect(statuses.troubled.size).toBe(0);
  });
});

describe("the names without statuses", () => {
  it("are those of the store, and follow it", () => {
    const index = new BootIndex({ log: silentLog });
    const objects = new ConsoleObjects({ statuses: undefined, view: () => undefined, index });
    expect(objects.find({ show: "all", text: undefined })).toEqual([]);
    expect(objects.has({ kind: "Group", namespace: "racks", name: "web" })).toBe(false);
  });
});

describe("the progress of a grant", () => {
  const row = (given: object) => ({ group: "racks/web", object: undefined, entries: [], ...given });
  const named = { key: "group/racks/web", grant: openGrant({ generation: 2 }) };
  const progress = (rows: readonly ReturnType<typeof row>[], grant = named) => progressOf([grant], rows).get(grant.key);

  it("counts a machine that installed before, and that the grant does not take, on its own", () => {
    const entries = [entry("1", { spent: { "group/racks/web": 1 } })];
    const zero = { installed: 0, installing: 0, failed: 0, remaining: 0, before: 0 };
    expect(progress([row({ entries })])).toEqual({ ...zero, before: 1 });
    const all = { ...named, grant: openGrant({ generation: 2, scope: "All" }) };
    expect(progress([row({ entries })], all)).toEqual({ ...zero, remaining: 1 });
  });

  it("counts a machine that has spent the grant and belongs to another Group now", () => {
    const moved = row({ group: "racks/db", entries: [entry("1", { spent: { "group/racks/web": 2 } })] });
    expect(progress([moved])).toMatchObject({ installed: 1, remaining: 0 });
    expect(progress([row({ group: "racks/db" })])).toMatchObject({ installed: 0, remaining: 0 });
  });

  it("counts the grant of a Machine by its object", () => {
    const grant = { key: "machine/racks/node7", grant: openGrant() };
    expect(progressOf([grant], [row({ object: "racks/node7" })]).get(grant.key)?.remaining).toBe(1);
  });
});

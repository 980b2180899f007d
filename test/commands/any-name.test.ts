/** Machines by any of their names: of the object, MAC address, uuid and serial number; also those that were only seen. */

import { expect, it } from "vitest";
import { entry, machine, openGrant, plan } from "../http/fake-machines.ts";
import { machinesBed } from "./machines-under-test.ts";

const bed = machinesBed();
const mac = "52:54:00:a1:9c:ae";
const otherMac = "52:54:00:a1:9c:af";
const uuid = "4c4c4544-0035-4d10-8051-b9c04f4e3232";
const sent = mac.replaceAll(":", "-");

function fill(): void {
  bed().fake.machines.push(machine("racks/node7", { identities: [`uuid/${uuid}`, `mac/${mac}`] }));
  bed().record(`mac=${sent}&serial=PF3ABC12&hostname=n7`, { address: "10.0.7.12", group: "racks/web" });
}

it("davit machine list has machines that were only seen, and when each was seen", async () => {
  fill();
  bed().fake.entries.push(entry("1", { identities: [`uuid/${uuid}`] }));
  bed().record(`mac=${otherMac}&serial=PF3ABC13`, { group: "racks/db" });
  bed().record("serial=PF3ABC14", {});
  const { output } = await bed().run("list", "--output", "json");
  const { machines } = JSON.parse(output);
  const at = expect.stringMatching(/^\d{4}-/);
  const [named, ...others] = machines;
  expect(named).toMatchObject({
    name: "racks/node7",
    seen: { at, addresses: ["10.0.7.12"], labels: { mac, serial: "PF3ABC12", hostname: "n7" } },
  });
  // Machines that were only seen come after those with a name, in no particular order.
  expect(new Set(others)).toEqual(
    new Set([
      {
        identities: [`mac/${otherMac}`],
        group: "racks/db",
        seen: { at, addresses: ["10.0.0.7"], labels: { mac: otherMac, serial: "PF3ABC13" } },
      },
      { identities: [], seen: { at, addresses: ["10.0.0.7"], labels: { serial: "PF3ABC14" } } },
    ]),
  );
  const lines = (await bed().run("list")).output.split("\n");
  expect(lines[0]).toMatch(/CHANGED +SEEN$/);
  const seenOnly = lines.slice(2);
  expect(seenOnly).toContainEqual(
    expect.stringMatching(/^- +52:54:00:a1:9c:af +racks\/db +- +- +- +- +\d{4}-[-\dT:]+Z$/),
  );
  expect(seenOnly).toContainEqual(expect.stringMatching(/^- +PF3ABC14 +/));
  expect((await bed().run("list", "--group", "db", "--output", "json")).output).toContain(otherMac);
});

it.each(["racks/node7", "node7", "machine/node7", mac, uuid, "PF3ABC12"])(
  "davit machine show finds %s",
  async (name) => {
    fill();
    const { code, output } = await bed().run("show", name);
    expect(code).toBe(0);
    expect(output).toContain("machine    racks/node7 (cluster)\n");
    expect(output).toMatch(
      /^seen {7}\d{4}-[-\dT:]+Z at 10\.0\.7\.12: mac=52:54:00:a1:9c:ae hostname=n7 serial=PF3ABC12$/m,
    );
  },
);

it.each([otherMac, "PF3ABC13"])("davit machine show finds %s of a machine that was only seen", async (name) => {
  bed().record(`mac=${otherMac}&serial=PF3ABC13`, { group: "racks/db" });
  const { code, output } = await bed().run("show", name);
  expect(code).toBe(0);
  expect(output).toContain("machine    no Machine object\n");
  expect(output).toContain("group      racks/db\n");
});

const webBoot = {
  group: "racks/web",
  profile: "racks/flatcar",
  isHeld: false,
  needsApproval: false,
  revision: "r1",
  grants: [],
  plan,
};

it("davit machine show says why a machine waits that was only seen", async () => {
  bed().record(`mac=${otherMac}`, { group: "racks/web" });
  bed().fake.boots.set(`mac/${otherMac}`, webBoot);
  const { output } = await bed().run("show", otherMac);
  expect(output).toContain("profile    racks/flatcar\nphase      Waiting\n");
  expect(output).toContain("next boot  503, no spec.install of its Group or its Machine grants an install\n");
  bed().fake.boots.set(`mac/${otherMac}`, { ...webBoot, group: "racks/other" });
  expect((await bed().run("show", otherMac)).output).not.toContain("next boot");
});

it.each([
  ["Failed", "503, its uuid and its mac are known as different machines"],
  ["Installed", "its disk: its uuid and its mac are known as different machines"],
] as const)("davit machine show judges a %s machine by all that it has sent", async (state, next) => {
  bed().fake.entries.push(entry("1", { identities: [`mac/${otherMac}`], state }));
  const grants = [{ key: "group/racks/web", grant: openGrant({ scope: "All" }) }];
  bed().fake.boots.set(`mac/${otherMac}`, { ...webBoot, grants });
  expect((await bed().run("show", otherMac)).output).toContain("next boot  an install: a grant is open\n");
  bed().record(`mac=${otherMac}&uuid=${uuid}`, { group: "racks/web" });
  expect((await bed().run("show", otherMac)).output).toContain(`next boot  ${next}`);
  expect((await bed().run("list")).output).toMatch(new RegExp(`racks/flatcar +${state} `));
});

it.each([
  ["hold: true", { isHeld: true }],
  ["approved Machine", { needsApproval: true }],
])("davit machine show names a missing release or approval before an open grant: %s", async (why, given) => {
  bed().fake.entries.push(entry("1", { identities: [`mac/${otherMac}`], state: "Failed" }));
  const grants = [{ key: "group/racks/web", grant: openGrant() }];
  bed().fake.boots.set(`mac/${otherMac}`, { ...webBoot, grants, ...given });
  expect((await bed().run("show", otherMac)).output).toMatch(new RegExp(`^next boot  503, .*${why}`, "m"));
});

it("davit machine show takes no serial number that two machines have sent", async () => {
  fill();
  bed().record(`mac=${otherMac}&serial=PF3ABC12`, {});
  expect(await bed().run("show", "PF3ABC12")).toEqual({
    code: 1,
    output: "",
    errors: expect.stringContaining("several machines have sent this serial number: give a MAC address or uuid"),
  });
});

it.each(["racks/node7", "node7", mac, "PF3ABC12"])("davit history and preview find %s", async (name) => {
  fill();
  bed().record(`mac=${otherMac}&serial=PF3ABC13`, {});
  const history = await bed().runAny("history", name);
  expect(history.errors).toBe("");
  expect(history.output).toMatch(/^mac=52:54:00:a1:9c:ae hostname=n7 serial=PF3ABC12 at 10\.0\.7\.12\n/);
  expect(history.output).not.toContain(otherMac);
  const preview = await bed().runAny("preview", name, "role=web", "--output", "json");
  expect(JSON.parse(preview.output).labels).toMatchObject({ mac, role: "web" });
});

it("davit preview takes the identities of a Machine that was never seen", async () => {
  bed().fake.machines.push(machine("racks/node7", { identities: [`uuid/${uuid}`, `mac/${mac}`] }));
  const { output } = await bed().runAny("preview", "node7", "--output", "json");
  expect(JSON.parse(output).labels).toEqual({ uuid, mac });
});

it.each(["", "?"])("davit preview takes a machine's query, with %j before it", async (before) => {
  const query = `${before}uuid=${uuid}&mac=${sent}&domain=&hostname=a%20b&net0/mac=${sent}`;
  const { output } = await bed().runAny("preview", query, "role=web", "--output", "json");
  expect(JSON.parse(output).labels).toEqual({
    uuid,
    mac,
    domain: "",
    hostname: "a b",
    "net0/mac": sent,
    role: "web",
  });
});

it.each(["history", "preview"])("davit %s says where to find the names", async (command) => {
  fill();
  expect(await bed().runAny(command, "node8")).toMatchObject({
    code: 1,
    errors: expect.stringContaining("davit machine list shows all"),
  });
});

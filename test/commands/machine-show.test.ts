/** `davit machine list`, `show` and `ledger`. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommand } from "../helpers/command-under-test.ts";
import { entry, hourMs, machine, nowMs, openGrant, plan } from "../http/fake-machines.ts";
import { adminToken, MachinesBed, machinesBed } from "./machines-under-test.ts";

const bed = machinesBed();
const mac = "52:54:00:a1:9c:ae";
const uuid = "4c4c4544-0035-4d10-8051-b9c04f4e3232";
const webBoot = {
  group: "racks/web",
  profile: "racks/flatcar",
  isHeld: false,
  needsApproval: true,
  revision: "r1",
  grants: [],
  plan,
};

function fill(): void {
  const { fake } = bed();
  const identities = [`uuid/${uuid}`, `mac/${mac}`];
  fake.machines.push(machine("racks/node7", { identities, approved: true, labels: { rack: "7" } }));
  fake.boots.set(`mac/${mac}`, {
    ...webBoot,
    grants: [{ key: "group/racks/web", grant: openGrant({ generation: 4 }) }],
  });
  fake.entries.push(
    entry("00000000000000aa", {
      identities,
      grant: { key: "group/racks/web", generation: 4 },
      spent: { "group/racks/web": 4 },
      addresses: ["10.0.7.12", "10.0.7.99"],
      reported: { state: "installed", progress: 100, message: "done", atMs: nowMs },
    }),
    entry("00000000000000bb", { identities: ["mac/52:54:00:00:00:02"], state: "Failed", group: "racks/db" }),
  );
}

describe("davit machine list", () => {
  it("prints a table", async () => {
    fill();
    expect(await bed().run("list")).toEqual({
      code: 0,
      errors: "",
      output: [
        "NAME         IDENTITY           GROUP      PROFILE        PHASE      INSTALL      CHANGED               SEEN",
        "racks/node7  52:54:00:a1:9c:ae  racks/web  racks/flatcar  Installed  Installed 4  2026-11-25T11:00:00Z  -",
        "-            52:54:00:00:00:02  racks/db   racks/flatcar  Failed     Failed       2026-11-25T11:00:00Z  -",
        "",
      ].join("\n"),
    });
  });

  it.each([
    ["--phase", "Failed", ["52:54:00:00:00:02"]],
    ["--group", "racks/web", [mac]],
    ["--group", "db", ["52:54:00:00:00:02"]],
    ["--group", "group/racks/web", [mac]],
    ["--group", "eb", []],
  ])("%s %s chooses", async (option, value, expected) => {
    fill();
    const { output } = await bed().run("list", option, value, "--output", "json");
    const { machines } = JSON.parse(output);
    expect(machines.map(({ identities }: { identities: string[] }) => identities.at(-1))).toEqual(
      expected.map((each) => `mac/${each}`),
    );
  });

  it.each(["a/b/c", "machine/node7", "Web"])("refuses the Group %s", async (group) => {
    const { code, output, errors } = await bed().run("list", "--group", group);
    expect({ code, output }).toEqual({ code: 2, output: "" });
    expect(errors).toContain(`Bad value "${group}" for --group: must be NAME or NAMESPACE/NAME\n`);
  });

  it("prints a sentence without machines, and what a machine reported cannot move the cursor", async () => {
    expect(await bed().run("list")).toEqual({ code: 0, errors: "", output: "no machine\n" });
    bed().fake.entries.push(entry("1", { identities: ["mac/1"], group: "racks/\u001b[2J\u202eweb" }));
    expect((await bed().run("list")).output).toContain("racks/\\u{1b}[2J\\u{202e}web");
  });
});

describe("davit machine show", () => {
  const text = [
    "machine    racks/node7 (cluster)",
    `identity   uuid/${uuid}`,
    `identity   mac/${mac}`,
    "group      racks/web",
    "profile    racks/flatcar",
    "phase      Installed",
    "approved   yes, and its Group needs it",
    "hold       no",
    "labels     rack=7",
    "next boot  its disk",
    "grant      group/racks/web generation 4, NeverInstalled: open until 2026-11-25T13:00:00Z",
    "reported   installed 100 %: done (2026-11-25T12:00:00Z)",
    "entry      00000000000000aa: Installed 4 by group/racks/web since 2026-11-25T11:00:00Z, from 10.0.7.12 and 10.0.7.99",
    "",
  ].join("\n");

  it.each(["racks/node7", "node7", "machine/node7", "machines/racks/node7", "dmach/node7", mac, "525400A19CAE", uuid])(
    "finds %s",
    async (name) => {
      fill();
      expect(await bed().run("show", name)).toEqual({ code: 0, errors: "", output: text });
    },
  );

  it("shows why the next boot is refused", async () => {
    fill();
    bed().fake.boots.set("mac/52:54:00:00:00:02", {
      ...webBoot,
      group: "racks/db",
      needsApproval: false,
      revision: "r1",
    });
    const { output } = await bed().run("show", "52:54:00:00:00:02");
    expect(output).toContain("machine    no Machine object\n");
    expect(output).toContain("next boot  503, no spec.install of its Group or its Machine grants an install\n");
  });

  it.each([
    [
      "nobody",
      'Asking "URL": no Machine, no entry of the ledger and no seen machine has this name: davit machine list shows all\n',
    ],
    [
      "racks/nobody",
      'Asking "URL": no Machine, no entry of the ledger and no seen machine has this name: davit machine list shows all\n',
    ],
    ["node8", 'Asking "URL": several Machines have this name: give NAMESPACE/NAME\n'],
  ])("does not find %s", async (name, errors) => {
    fill();
    bed().fake.machines.push(machine("lab/node8", {}), machine("racks/node8", {}));
    expect(await bed().run("show", name)).toEqual({ code: 1, output: "", errors: errors.replace("URL", bed().url) });
  });

  it.each([
    [[], "Nothing named: give MAC|UUID|[NAMESPACE/]NAME|SERIAL"],
    [["a", "b"], "Too many names: give one MAC|UUID|[NAMESPACE/]NAME|SERIAL"],
    [["--output", "json", "a"], 'Unexpected argument "a": give it before the options'],
    [["a", "--outpt", "json"], 'Unknown option "--outpt": write --output'],
    [["a", "--output", "yaml"], 'Bad value "yaml" for --output: must be one of table, json'],
  ])("refuses %j", async (words, problem) => {
    const { code, output, errors } = await bed().run("show", ...words);
    expect({ code, output }).toEqual({ code: 2, output: "" });
    expect(errors).toContain(`${problem}\n`);
    expect(errors).toContain("See davit machine show --help\n");
  });
});

describe("davit machine ledger", () => {
  it("prints the id, the health, adopted Groups and ended grants", async () => {
    fill();
    const { fake } = bed();
    fake.ended.set("group/racks/web", 3);
    fake.adopted.set("racks/db", nowMs + hourMs);
    expect(await bed().run("ledger")).toEqual({
      code: 0,
      errors: "",
      output: [
        "ledger     9f3c0a52",
        "health     ok",
        "time       2026-11-25T12:00:00Z",
        "entries    2",
        "adopted    racks/db until 2026-11-25T13:00:00Z",
        "ended      group/racks/web up to generation 3",
        "",
      ].join("\n"),
    });
  });

  it("shows 20 ended grants, and all of them as JSON", async () => {
    for (let at = 0; at < 25; at++) bed().fake.ended.set(`group/racks/${at}`, 1);
    const { output } = await bed().run("ledger");
    expect(output).toContain("5 more: --output json lists them\n");
    expect(JSON.parse((await bed().run("ledger", "--output", "json")).output).ended).toHaveLength(25);
  });

  it("fails where the ledger grants nothing", async () => {
    bed().fake.id = undefined;
    const { code, output } = await bed().run("ledger");
    expect(code).toBe(1);
    expect(output).toContain("ledger     none yet\nhealth     davit knows no ledger yet\n");
  });
});

describe("the listener", () => {
  it("that is away is named, with the cure", async () => {
    const { code, errors } = await runCommand(["machine", "list", "--ops-url", "http://127.0.0.1:9"]);
    expect([code, errors]).toEqual([
      1,
      'Asking "http://127.0.0.1:9": nothing listens there: start davit serve, or give --ops-url, such as of kubectl port-forward\n',
    ]);
  });

  it("may be another server", async () => {
    const { errors } = await runCommand(["machine", "list", "--ops-url", bed().cluster.url]);
    expect(errors).toMatch(/^Asking ".*": it answers 404: --ops-url must name davit's operations listener\n$/);
  });

  it("gets a token from a file, and no message has the token", async () => {
    const strict = await MachinesBed.start({ adminTokens: true });
    const file = join(strict.folder, "wrong");
    await writeFile(file, "wrong-token-0123456789\n", { mode: 0o600 });
    const refused = await strict.run("adopt", mac, "--ops-token-file", file);
    expect(refused).toEqual({
      code: 1,
      output: "",
      errors: `Asking "${strict.url}": it asks for an admin token: give --ops-token-file with a token of its --ops-admin-token-file\n`,
    });
    const admitted = await strict.run("adopt", mac, "--ops-token-file", join(strict.folder, "admin-token"));
    expect(admitted.code).toBe(0);
    for (const { output, errors } of [refused, admitted]) expect(output + errors).not.toContain(adminToken);
    await strict.stop();
  });

  it("never gets a token that others on the network could read, nor one from a file that others can read", async () => {
    const { folder } = bed();
    const token = join(folder, "admin-token");
    const words = ["machine", "list", "--ops-token-file", token];
    const remote = await runCommand([...words, "--ops-url", "http://davit.example:8081"]);
    expect(remote.code).toBe(2);
    expect(remote.errors).toContain('No TLS with "http://davit.example:8081": a token needs a URL that begins with');
    const open = join(folder, "open");
    await writeFile(open, `${adminToken}\n`, { mode: 0o644 });
    const { code, errors } = await bed().run("list", "--ops-token-file", open);
    expect([code, errors]).toEqual([
      1,
      expect.stringMatching(/^Cannot use ".*open": other users can read or write it/),
    ]);
  });
});

describe("davit machine", () => {
  it("lists its commands", async () => {
    const { code, output } = await runCommand(["machine", "--help"]);
    expect(code).toBe(0);
    for (const verb of ["list", "show", "ledger", "approve", "hold", "release", "install", "adopt", "forget"]) {
      expect(output).toContain(`  davit machine ${verb} `);
      const help = await runCommand(["machine", verb, "--help"]);
      expect([help.code, help.output]).toEqual([0, expect.stringContaining(`Usage: davit machine ${verb}`)]);
      expect(help.output).toContain("--ops-url URL");
    }
  });

  it.each([
    ["lsit", "write davit machine list"],
    ["appr", "write davit machine approve"],
    ["installs", "write davit machine install"],
    ["wipe", "see davit machine --help"],
    ["__proto__", "see davit machine --help"],
  ])("does not know %s", async (word, cure) => {
    const { code, errors } = await runCommand(["machine", word]);
    expect([code, errors]).toEqual([2, `Unknown command "machine ${word}": ${cure}\n`]);
  });

  it("needs a command", async () => {
    expect((await runCommand(["machine"])).code).toBe(2);
    expect((await runCommand(["--help"])).output).toContain("davit machine");
  });
});

/** `davit render`, beside what a real `davit serve` answers. */

import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configNames } from "../../src/boot/boot-configs.ts";
import { machineOf, type RenderedAnswer, readRenderConfig } from "../../src/commands/offline/render.ts";
import { loadManifests } from "../../src/offline/load/load-manifests.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type Ran, runCommand } from "../helpers/command-under-test.ts";
import { silentLog } from "../helpers/test-store.ts";

const advertised = "192.0.2.1:8080";
const manifests = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec:
  boot: {kernel: /assets/linux, initrd: [/assets/a, /assets/b], args: ["at={{davit.url}}", "host={{name}}"]}
  ignition: {inline: '{"ignition":{"version":"3.4.0"},"x":{{json request.raw_query}} }'}
  generic: {inline: 'serial {{lookup request.query "serial"}} é'}
  genericParts: [{name: user-data, inline: "#cloud-config\\nfqdn: {{name}}"}]
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: broken}
spec: {generic: {inline: "{{absent}}"}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: all}
spec: {profileRef: {name: web}, selector: {matchLabels: {zone: a}}, metadata: {name: any, count: 1}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: one}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "52:54:00:00:00:01"}}, metadata: {name: "é ✓"}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: held}
spec: {profileRef: {name: web}, selector: {matchLabels: {zone: a, serial: s 1}}, hold: true}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: faulty}
spec: {profileRef: {name: broken}, selector: {matchLabels: {zone: b}}}
`;

let folder: string;
let source: string;
let davit: DavitProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-render-"));
  source = join(folder, "objects");
  await mkdir(source);
  await writeFile(join(source, "all.yaml"), manifests);
  const args = ["--advertise-address", advertised];
  davit = await startDavit({ manifests: source, dataDir: join(folder, "data"), args });
});

afterAll(async () => {
  await davit?.stop();
  await rm(folder, { recursive: true });
});

/** Runs the command in this process. @param input what is piped in. */
function run(args: readonly string[], input?: string): Promise<Ran> {
  return runCommand(["render", ...args], { inputIsTerminal: input === undefined, input: [input ?? ""] });
}

const standard = () => ["--manifests", source, "--advertise-address", advertised];

describe("what may surprise is told with a code, and the answer is given all the same", () => {
  const takesAll = `${manifests}---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: rest}
spec: {profileRef: {name: web}, matchAll: true, metadata: {name: rest}}
`;
  const catchAll = "warning: default/rest takes every machine that no other Group takes: ";
  const nobody = `${catchAll}no Group names this machine (catchAll)\n`;
  const nothing = `${catchAll}the request says nothing that names a machine (catchAll)\n`;
  const unreadable = (name: string) => `warning: ${name} cannot be read, and selects no Group (unreadableLabel)\n`;

  const nameless = "warning: uuid is invalid, or shared by many boards: it names no machine (namelessUuid)\n";

  it.each([
    {
      name: "a name that cannot be read",
      args: ["--label", "hostname=\u0001"],
      told: [unreadable("hostname"), nothing],
    },
    {
      name: "a UUID and a name with bad percent signs",
      args: ["--query", "uuid=%zz&hostname=%5&serial=1"],
      told: [unreadable("hostname"), nameless, nobody],
    },
    {
      name: "an unreadable name of a machine that has its Group",
      args: ["--query", "hostname=%5&zone=a"],
      won: "default/all",
      told: [unreadable("hostname")],
    },
    { name: "a machine that is known to nobody", args: ["--label", "mac=52:54:00:00:00:99"], told: [nobody] },
    {
      name: "a label in another letter case",
      args: ["--label", "Zone=a"],
      told: ["warning: no Group selects by Zone, but by zone: names differ by letter case (labelCase)\n", nothing],
    },
    {
      name: "nothing of a machine whose Group names it",
      args: ["--label", "mac=52:54:00:00:00:01"],
      won: "default/one",
      told: [],
    },
  ])("$name", async ({ args, won = "default/rest", told }) => {
    expect(await run([...args, "--manifests", "-"], takesAll)).toEqual({
      code: 0,
      output: expect.stringMatching(/^#!ipxe\n/),
      errors: `Group ${won}, Profile default/web\n${told.join("")}`,
    });
  });

  it("is what a preview says, in its words and codes", async () => {
    const query = "hostname=%5&Zone=a&uuid=00000000-0000-0000-0000-000000000000";
    const preview: unknown = JSON.parse(
      await (await fetch(`${davit.opsUrl}/preview?${query}`, { headers: { accept: "application/json" } })).text(),
    );
    const { errors } = await run([...standard(), "--query", query, "--endpoint", "metadata"]);
    const told = [...errors.matchAll(/^warning: (.+) \((\w+)\)$/gm)].map(([, text, code]) => ({ code, text }));
    expect(told).toHaveLength(3);
    expect(preview).toMatchObject({ warnings: told });
  });

  it("is told where the machine waits for it, too", async () => {
    const told = await run(["--label", "mac=52:54:00:00:00:0x", "--manifests", "-"], takesAll);
    expect(told).toMatchObject({ code: 1, output: "" });
    expect(told.errors).toContain("503 identity not readable");
    expect(told.errors).toContain(unreadable("mac"));
  });

  it("is not told of the boot script, which is the same for every machine", async () => {
    expect(await run(["--label", "mac=x", "--endpoint", "boot.ipxe", "--manifests", "-"], takesAll)).toMatchObject({
      code: 0,
      errors: "",
    });
  });
});

describe("what is rendered is what the server answers, byte for byte", () => {
  it("for any labels and every endpoint", async () => {
    const loaded = await loadManifests({ directories: [source], log: silentLog });
    const label = fc.oneof(
      fc.constantFrom("zone=a", "zone=b", "mac=52-54-00-00-00-01", "mac=525400000001", "serial=s 1", "mac=no", "uuid="),
      fc
        .tuple(fc.constantFrom("serial", "x", "hostname"), fc.string({ unit: "grapheme", maxLength: 8 }))
        .map(([name, value]) => `${name}=${value}`),
    );
    const question = fc.record({
      labels: fc.array(label, { maxLength: 4 }),
      userAgent: fc.constantFrom("", "GRUB 2.06", "iPXE/1.21.1"),
    });
    await fc.assert(
      fc.asyncProperty(question, async ({ labels, userAgent }) => {
        const words = labels.flatMap((text) => ["--label", text]);
        const config = readRenderConfig([...standard(), ...words], {}, anyPaths);
        const { ask } = machineOf(loaded, { ...config, userAgent });
        const rendered = configNames.map((name) => shown(ask(name)));
        const served = configNames.map((name) => answered(name, config.rawQuery, userAgent));
        expect(rendered).toEqual(await Promise.all(served));
      }),
      { numRuns: 300 },
    );
  }, 300_000);

  it.each(["boot.ipxe", "chain.ipxe", ...configNames, "generic/user-data", "generic/absent"])(
    "by the command: /%s",
    async (endpoint) => {
      // The query of /chain.ipxe is for many machines.
      const named = endpoint === "chain.ipxe" ? [] : ["serial=7"];
      const answer = await fetch(`${davit.bootUrl}/${endpoint}?${["zone=a", ...named].join("&")}`);
      const labels = ["zone=a", ...named].flatMap((label) => ["--label", label]);
      const ran = await run([...standard(), ...labels, "--endpoint", endpoint]);
      const body = await answer.text();
      const winner = ["boot.ipxe", "chain.ipxe"].includes(endpoint) ? "" : "Group default/all, Profile default/web\n";
      expect(ran).toEqual(
        answer.status === 200
          ? { code: 0, output: body, errors: winner }
          : { code: 1, output: "", errors: `${winner}${endpoint}: ${body}` },
      );
    },
  );
});

const anyPaths = { isDirectory: () => true, isFile: () => true };

function shown(answer: RenderedAnswer): string {
  return answer.kind === "body" ? `200 ${answer.body}` : answer.words;
}

/** Not by `fetch`, which sends some letters of a query in another form. */
async function answered(name: string, rawQuery: string, userAgent: string): Promise<string> {
  const { hostname, port } = new URL(davit.bootUrl);
  const path = `/${name}?${rawQuery}`;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ hostname, port, path, headers: { "user-agent": userAgent } }, resolve).on("error", reject);
  });
  const body = await text(answer);
  if (answer.statusCode === 200) return `200 ${body}`;
  // Behind its first line a refusal for GRUB has the script by which it waits.
  return body.replace(/^# /, "").split("\n")[0]?.trim() ?? "";
}

it("refuses a query of /chain.ipxe as the server does", async () => {
  const ran = await run([...standard(), "--query", "mac=52-54-00-a1-9c-ae", "--endpoint", "chain.ipxe"]);
  expect(ran).toEqual({ code: 1, output: "", errors: "chain.ipxe: 400 bad request\n" });
});

it("says the server's words of a refusal, and what its log would say", async () => {
  expect(await run([...standard(), "--label", "zone=b", "--endpoint", "generic"])).toEqual({
    code: 1,
    output: "",
    errors: expect.stringMatching(
      /^Group default\/faulty, Profile default\/broken\ngeneric: 500 config broken\n {2}group: default\/faulty\n {2}profile: default\/broken\n {2}reason: \w+\n/,
    ),
  });
});

it("reads what kubectl writes from standard input", async () => {
  const ran = await run(["--label", "zone=a", "--endpoint", "generic", "--label", "serial=7"], manifests);
  expect(ran).toEqual({ code: 0, output: "serial 7 é", errors: "Group default/all, Profile default/web\n" });
});

it("says which Group wins, also where its machines wait, and nothing where none does", async () => {
  const held = await run([...standard(), "--label", "zone=a", "--label", "serial=s 1"]);
  expect(held).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/^Group default\/held, Profile default\/web\nipxe: 503 held\n/),
  });
  const nobody = await run([...standard(), "--label", "zone=none"]);
  expect(nobody).toMatchObject({ code: 1, errors: "ipxe: 404 no matching group\n" });
});

it("takes the query as a machine sends it", async () => {
  const ran = await run([...standard(), "--query", "zone=a&x=%zz", "--endpoint", "ignition"]);
  expect(ran.output).toBe(`{"ignition":{"version":"3.4.0"},"x":"zone=a&x=%zz" }`);
});

describe("`--endpoint all --output`", () => {
  it("writes a file for each part that there is, and follows no link", async () => {
    const directory = join(folder, "made", "here");
    const elsewhere = join(folder, "elsewhere");
    await mkdir(directory, { recursive: true });
    await writeFile(elsewhere, "mine");
    await symlink(elsewhere, join(directory, "ipxe"));
    await writeFile(join(directory, "cloud"), "of another time");
    const ran = await run([...standard(), "--label", "zone=a", "--endpoint", "all", "--output", directory]);
    const errors = "Group default/all, Profile default/web\ncloud: 404 no such config\n";
    expect(ran).toEqual({ code: 0, output: "", errors });
    expect((await readdir(directory)).toSorted()).toEqual([
      "boot.ipxe",
      "generic",
      "generic-user-data",
      "grub",
      "ignition",
      "ipxe",
      "metadata",
    ]);
    expect(await readFile(elsewhere, "utf8")).toBe("mine");
    expect(await readFile(join(directory, "ipxe"), "utf8")).toMatch(/^#!ipxe\nkernel \/assets\/linux at=http:/);
    expect((await stat(join(directory, "ipxe"))).mode & 0o777).toBe(0o600);
  });

  it("leaves what it did not write, whatever its name", async () => {
    const directory = join(folder, "foreign");
    await mkdir(directory);
    await writeFile(join(directory, "generic-notes.yaml"), "mine");
    await run([...standard(), "--label", "zone=a", "--endpoint", "all", "--output", directory]);
    expect(await readFile(join(directory, "generic-notes.yaml"), "utf8")).toBe("mine");
  });

  it("fails when the machine is held, and leaves no answer of before", async () => {
    const directory = join(folder, "held");
    const ask = (labels: readonly string[]) =>
      run([...standard(), ...labels.flatMap((text) => ["--label", text]), "--endpoint", "all", "--output", directory]);
    await ask(["zone=a"]);
    const ran = await ask(["zone=a", "serial=s 1"]);
    expect([ran.code, ran.errors]).toEqual([1, expect.stringContaining("ipxe: 503 held")]);
    expect(await readdir(directory)).toEqual(["boot.ipxe", "generic-user-data"]);
  });

  it("says in one sentence that it cannot write", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    const ran = await run([...standard(), "--label", "zone=a", "--output", join(file, "below")]);
    expect([ran.code, ran.errors]).toEqual([
      1,
      expect.stringMatching(/^Group default\/all, Profile default\/web\nWriting "[^"]+": [^\n]+\n$/),
    ]);
  });
});

const absent = join(import.meta.dirname, "absent");

it.each<[name: string, args: readonly string[], problem: string]>([
  ["a label without a value", ["--label", "mac"], 'Bad value "mac" for --label: must be NAME=VALUE'],
  ["all of them without a place", ["--endpoint", "all"], "No place for all of them: give --output DIR"],
  ["labels and a query", ["--label", "a=b", "--query", "a=b"], "Two queries: give --label or --query, not both"],
  ["a query with its question mark", ["--query", "?mac=52-54-00-a1-9c-ae"], "Bad value for --query: it begins with ?"],
  ["a query that cannot be sent", ["--query", "a b"], "Bad value for --query"],
  [
    "an endpoint that is none, and names those of generic parts, too",
    ["--endpoint", "generc/user-data"],
    'Bad value "generc/user-data" for --endpoint: must be one of chain.ipxe, boot.ipxe, ipxe, grub, ignition, ' +
      "cloud, generic, metadata, all, generic/NAME",
  ],
  [
    "a part that no Profile can have",
    ["--endpoint", "generic/User_Data"],
    'Bad value "generic/User_Data" for --endpoint: must be one of',
  ],
  ["no such directory", ["--manifests", absent], `No directory "${absent}": --manifests needs one that exists`],
])("refuses %s", async (_name, args, problem) => {
  const ran = await run(args);
  expect([ran.code, ran.errors]).toEqual([2, expect.stringContaining(problem)]);
});

it("asks for manifests where nothing is piped in", async () => {
  expect(await run(["--label", "a=b"])).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/^No manifests: /),
  });
});

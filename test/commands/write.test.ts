/** `davit machine ... --write`: changes of objects in files. */

import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { machine, openGrant } from "../http/fake-machines.ts";
import { machinesBed } from "./machines-under-test.ts";

const bed = machinesBed();
const group = `# the web racks
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web, namespace: racks}
spec:
  profileRef: {name: flatcar}   # installs
  install:
    generation: 2   # the last one
    ledger: "00000000"
    until: "2026-11-20T00:00:00Z"
`;
const node = `apiVersion: davit.dev/v1alpha1
kind: Machine
metadata: {name: node7, namespace: racks}
spec:
  identity: {macs: ["52:54:00:a1:9c:ae"]}   # the left one
`;

let objects: string;

beforeEach(async () => {
  objects = join(bed().folder, "objects");
  await mkdir(join(objects, "racks"), { recursive: true });
  await writeFile(join(objects, "racks", "web.yaml"), `${node}---\n${group}`);
  await writeFile(join(objects, "other.yaml"), node.replace("node7", "node8"));
  bed().fake.grants.set("group/racks/web", openGrant({ generation: 2 }));
  bed().fake.machines.push(machine("racks/node7", { identities: ["mac/52:54:00:a1:9c:ae"] }));
});

const webFile = () => join(objects, "racks", "web.yaml");

describe("davit machine install --write", () => {
  it("sets the grant in the file, and leaves everything else as it was", async () => {
    await chmod(webFile(), 0o640);
    const { code, output, errors } = await bed().run("install", "group/racks/web", "--write", objects);
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toMatch(/^Group racks\/web: generation 3 of ledger 9f3c0a52 is open until /);
    expect(output).toContain(`Written to "${webFile()}"\n`);
    const written = group
      .replace("generation: 2 ", "generation: 3 ")
      .replace("00000000", "9f3c0a52")
      .replace("2026-11-20T00:00:00Z", "2026-11-26T12:00:00Z");
    expect(await readFile(webFile(), "utf8")).toBe(`${node}---\n${written}    scope: "NeverInstalled"\n`);
    expect((await stat(webFile())).mode & 0o777).toBe(0o640);
  });

  it("raises a generation that davit has not seen yet, and changes what a link leads to", async () => {
    const target = join(bed().folder, "target.yaml");
    await writeFile(target, group.replace("generation: 2 ", "generation: 9 "));
    await writeFile(webFile(), node);
    await symlink(target, join(objects, "link.yaml"));
    expect((await bed().run("install", "group/racks/web", "--write", objects)).code).toBe(0);
    expect(await readFile(target, "utf8")).toContain("generation: 10   # the last one\n");
    expect(await readlink(join(objects, "link.yaml"))).toBe(target);
  });

  it("writes through no link beside the file, and leaves nothing there", async () => {
    const elsewhere = join(bed().folder, "elsewhere");
    await writeFile(elsewhere, "precious\n");
    await symlink(elsewhere, join(objects, "racks", ".web.yaml.davit"));
    expect((await bed().run("install", "group/racks/web", "--write", objects)).code).toBe(0);
    expect(await readFile(elsewhere, "utf8")).toBe("precious\n");
    expect(await readFile(webFile(), "utf8")).toContain("generation: 3   # the last one\n");
    expect(await readdir(join(objects, "racks"))).toEqual([".web.yaml.davit", "web.yaml"]);
  });

  it.each([
    ["group/racks/wbe", [], "defines Group racks/wbe: correct the name, the directory or the file"],
    ["group/web", [], "defines Group default/web"],
    ["group/web", ["--namespace", "racks", "--print"], "Both --print and --write are given: choose one"],
  ])("refuses %s %j", async (word, options, problem) => {
    const before = await readFile(webFile(), "utf8");
    const { code, errors } = await bed().run("install", word, "--write", objects, ...options);
    expect([code > 0, errors]).toEqual([true, expect.stringContaining(problem)]);
    expect(await readFile(webFile(), "utf8")).toBe(before);
  });

  it("refuses an object of two files, one that davit does not know, and one that is an alias", async () => {
    await writeFile(join(objects, "twin.yaml"), group);
    const twice = await bed().run("install", "group/racks/web", "--write", objects);
    expect(twice.errors).toMatch(/^Group racks\/web is in ".*" and in ".*": remove one of the two\n$/);
    await writeFile(join(objects, "twin.yaml"), group.replace("name: web", "name: db"));
    const unknown = await bed().run("install", "group/racks/db", "--write", objects);
    expect(unknown.errors).toBe("Group racks/db: davit does not know it: create it first, or correct the name\n");
    await writeFile(webFile(), group.replace(/spec:.*/s, "metadata2: &m {generation: 2}\nspec:\n  install: *m\n"));
    const alias = await bed().run("install", "group/racks/web", "--write", objects);
    expect(alias.errors).toContain("cannot be edited without other changes, such as because of an alias: use --print");
  });
});

it.each([
  ["approve", "  approved: true\n", "is approved"],
  ["hold", "  hold: true\n", "is held"],
  ["release", "  hold: false\n", "is released"],
])("davit machine %s --write changes the Machine's file", async (verb, line, done) => {
  expect(await bed().run(verb, "52:54:00:a1:9c:ae", "--write", webFile())).toEqual({
    code: 0,
    errors: "",
    output: `Machine racks/node7 ${done}, by "${webFile()}"\n`,
  });
  expect(await readFile(webFile(), "utf8")).toBe(`${node}${line}---\n${group}`);
});

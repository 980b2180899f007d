import { mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import "./kept-parsers.ts";
import { createLog } from "../../../src/lib/logging/create-log.ts";
import { DirectorySource } from "../../../src/sources/directory/directory.ts";
import { groupText, profileText, stream } from "./manifests.ts";
import { SourceUnderTest, StepClock, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

async function directoryWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, files);
  return root;
}

async function follow(...directories: readonly string[]): Promise<SourceUnderTest> {
  const tested = await SourceUnderTest.start({ directories });
  disposals.push(() => tested.source.stop());
  return tested;
}

describe("a directory", () => {
  it("that vanishes keeps everything, and goes on when it returns", async () => {
    const root = await directoryWith({ "here/a.yaml": groupText("a") });
    const tested = await follow(join(root, "here"));
    await rename(join(root, "here"), join(root, "away"));
    await tested.look(3);
    expect(tested.names("Group")).toEqual(["default/a"]);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.problems()).toEqual([
      `${join(root, "here")}: The directory cannot be read (ENOENT): restore it, or correct its permissions`,
    ]);
    await mkdir(join(root, "here"));
    await writeFile(join(root, "here/b.yaml"), groupText("b"));
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.names("Group")).toEqual(["default/b"]);
    expect(tested.source.view.complete).toBe(true);
  });

  it("that is a file keeps everything, too", async () => {
    const root = await directoryWith({ "here/a.yaml": groupText("a") });
    const tested = await follow(join(root, "here"));
    await rm(join(root, "here"), { recursive: true });
    await writeFile(join(root, "here"), "");
    await tested.look(3);
    expect(tested.names("Group")).toEqual(["default/a"]);
    expect(tested.problems()[0]).toContain("ENOTDIR");
  });

  it("that is a mounted ConfigMap follows the swap of its versions", async () => {
    const root = await directoryWith({
      "..2026_1/a.yaml": groupText("a"),
      "..2026_1/sub/b.yaml": groupText("b"),
      "..2026_2/a.yaml": groupText("a", "  matchAll: true"),
      "..2026_2/sub/b.yaml": groupText("b", "  selector: {matchLabels: {role: new}}"),
    });
    await symlink("..2026_1", join(root, "..data"));
    await symlink("..data/a.yaml", join(root, "a.yaml"));
    await symlink("..data/sub", join(root, "sub"));
    const tested = await follow(root);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
    await symlink("..2026_2", join(root, "..tmp"));
    await rename(join(root, "..tmp"), join(root, "..data"));
    await rm(join(root, "..2026_1"), { recursive: true });
    await tested.look(2);
    expect(tested.group("a")?.spec.matchAll).toBe(true);
    expect(tested.group("b")?.spec.selector).toEqual({ role: "new" });
    expect(tested.changes).toHaveLength(2);
  });

  it("that links to itself is read once", async () => {
    const root = await directoryWith({ "sub/a.yaml": groupText("a") });
    await symlink("..", join(root, "sub/loop"));
    const tested = await follow(root);
    expect(tested.names("Group")).toEqual(["default/a"]);
    expect(tested.problems()).toEqual([]);
  });
});

describe("a file", () => {
  it("over 8 MiB is refused without being parsed", async () => {
    const root = await directoryWith({ "big.yaml": `# ${"x".repeat(8 * 1024 * 1024)}\n${groupText("a")}` });
    const tested = await follow(root);
    expect(tested.problems()).toEqual(["big.yaml: The file is larger than 8 MiB: split it"]);
    expect(tested.parsedCount()).toBe(0);
  });

  it("of 7 MiB is read", async () => {
    const tested = await follow(
      await directoryWith({ "a.yaml": `# ${"x".repeat(7 * 1024 * 1024)}\n${groupText("a")}` }),
    );
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("that is a link to nothing keeps the list incomplete", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    await symlink("nowhere.yaml", join(root, "lost.yaml"));
    const tested = await follow(root);
    expect(tested.problems()).toEqual(["lost.yaml: The link leads to nothing: restore what it leads to, or remove it"]);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it.each([
    ["leads to nothing", "nowhere", "sub: The link leads to nothing: restore what it leads to, or remove it"],
    ["cannot be followed", "sub", "sub: What may be a directory cannot be looked at (ELOOP): check its permissions"],
    [
      "leads to an empty directory",
      "../mount",
      "sub: The directory holds no manifest, as if its volume were not mounted, so all that came from it stays: " +
        "restore it, or, to delete everything in it, leave one file with a document, such as a ConfigMap",
    ],
  ])("below a link that %s stays as it is known", async (_what, target, problem) => {
    const volume = await directoryWith({ "b.yaml": groupText("b") });
    const mount = await directoryWith({});
    const root = await directoryWith({ "a.yaml": groupText("a") });
    await symlink(volume, join(root, "sub"));
    const tested = await follow(root);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
    await rm(join(root, "sub"));
    await symlink(target === "../mount" ? mount : target, join(root, "sub"));
    await tested.look(2);
    expect(tested.problems()).toEqual([problem]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
  });

  it("that is a directory by name is entered", async () => {
    const tested = await follow(await directoryWith({ "odd.yaml/a.yaml": groupText("a") }));
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("of endless brackets is refused, and others are read", async () => {
    const root = await directoryWith({ "deep.yaml": "[".repeat(200_000), "a.yaml": groupText("a") });
    const tested = await follow(root);
    expect(tested.problems()).toHaveLength(1);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("that cannot be looked at is a problem", async () => {
    const root = await directoryWith({});
    await symlink("a.yaml", join(root, "a.yaml"));
    const tested = await follow(root);
    expect(tested.problems()).toEqual(["a.yaml: The file cannot be read (ELOOP): check its permissions"]);
  });
});

describe("the log", () => {
  it("names each problem once, and tells when all are mended", async () => {
    const root = await directoryWith({ "a.yaml": "kind: Group\n" });
    const tested = await follow(root);
    await tested.look(2);
    await writeFile(join(root, "a.yaml"), groupText("a"));
    await tested.look(2);
    expect(tested.told("part of the manifests cannot be used")).toHaveLength(1);
    expect(tested.told("all manifests can be used again")).toHaveLength(1);
  });

  it("names the ignored documents of a file when they are other ones than before", async () => {
    const foreign = (name: string) => `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: ${name}}\n`;
    const root = await directoryWith({ "a.yaml": stream(groupText("a"), foreign("x")) });
    const tested = await follow(root);
    const ignored = () => tested.told("documents of other groups ignored");
    expect(ignored()).toMatchObject([{ level: 30, path: "a.yaml", documents: ["document 2 (line 8)"], count: 1 }]);
    await writeFile(join(root, "a.yaml"), stream("# moved down\n", foreign("x"), groupText("a", "  matchAll: true")));
    await tested.lookUntil(() => tested.group("a")?.spec.matchAll === true);
    expect(ignored()).toHaveLength(1);
    await writeFile(join(root, "a.yaml"), stream(foreign("x"), groupText("a"), foreign("y")));
    await tested.lookUntil(() => tested.group("a")?.spec.matchAll === false);
    const documents = ["document 1 (line 1)", "document 3 (line 12)"];
    expect(ignored().slice(1)).toMatchObject([{ documents, count: 2 }]);
  });

  it("names each object that left, with where it was", async () => {
    const root = await directoryWith({ "a.yaml": stream(profileText("p"), groupText("a")), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await unlink(join(root, "a.yaml"));
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.told("object left the manifests")).toMatchObject([
      { level: 30, kind: "Profile", namespace: "default", name: "p", origin: "a.yaml, document 1 (line 1)" },
      { level: 30, kind: "Group", namespace: "default", name: "a", origin: "a.yaml, document 2 (line 7)" },
    ]);
  });

  it("and the problems hold no word of the files", async () => {
    const word = "xyzzySecret42";
    const root = await directoryWith({
      "a.yaml": `a: "${word}`,
      "b.json": `{"${word}": ${word}}`,
      "c.yaml": groupText("c", `  selector: {matchLabels: {mac: ${word}}}\n  metadata: {? [${word}] : yes}`),
      "d.yaml": `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: "${word}!"}\nstringData: {b: [${word}]}`,
      "e.yaml": groupText("e", `  selector: {matchLabels: {role: e}}\n  metadata: {${word}: 0123}`),
      "f.yaml": `apiVersion: ${word}/v1\nkind: ${word}`,
    });
    const tested = await follow(root);
    expect(tested.problems().length).toBeGreaterThan(4);
    expect(JSON.stringify([tested.problems(), tested.logLines])).not.toContain(word);
    expect(tested.group("c")?.refusal ?? "").not.toContain(word);
  });

  it("shows no more than some of many new problems", async () => {
    const root = await directoryWith({ "a.yaml": stream(...Array.from({ length: 50 }, () => "just: text\n")) });
    const tested = await follow(root);
    expect(tested.problems()).toHaveLength(50);
    expect(tested.logLines.filter((line) => line.includes('"level":40'))).toHaveLength(21);
  });

  it("shows no more than some of many objects that left, and of many ignored documents", async () => {
    const fifty = Array.from({ length: 50 }, (_, at) => at);
    const foreign = stream(...fifty.map((at) => `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d${at}}\n`));
    const files = fifty.map((at) => [`${at}.yaml`, foreign] as const);
    const groups = stream(...fifty.map((at) => groupText(`g${at}`)));
    const root = await directoryWith({ ...Object.fromEntries(files), "groups.yaml": groups });
    const tested = await follow(root);
    expect(tested.told("documents of other groups ignored")).toHaveLength(20);
    expect(tested.told("documents of other groups ignored")[0]?.documents).toHaveLength(20);
    expect(tested.told("documents of other groups ignored in many files")).toMatchObject([{ count: 50 }]);
    await unlink(join(root, "groups.yaml"));
    await tested.lookUntil(() => tested.names("Group").length === 0);
    expect(tested.told("object left the manifests")).toHaveLength(20);
    expect(tested.told("many objects left the manifests")).toMatchObject([{ count: 50 }]);
  });
});

describe("`stop()`", () => {
  it("leaves no thread, watch or timer, and may be called again", async () => {
    const before = process.getActiveResourcesInfo().filter(isOurs).length;
    const tested = await SourceUnderTest.start({
      directories: [await directoryWith({ "a.yaml": groupText("a") })],
    });
    await tested.source.stop();
    await tested.source.stop();
    expect(tested.clock.sleepingMs).toEqual([]);
    expect(process.getActiveResourcesInfo().filter(isOurs)).toHaveLength(before);
  });

  it("before `start()` is harmless", async () => {
    const log = createLog({ level: "silent", format: "json" });
    const source = new DirectorySource({ directories: [], rescanMs: 30_000, clock: new StepClock(), log });
    await expect(source.stop()).resolves.toBeUndefined();
  });

  it.each(["before", "during"])("%s the first look ends it", async (when) => {
    const files = Array.from({ length: 600 }, (_, at) => [`${at}.yaml`, groupText(`g${at}`)] as const);
    const root = await directoryWith(Object.fromEntries(files));
    const log = createLog({ level: "silent", format: "json" });
    const clock = new StepClock();
    const source = new DirectorySource({ directories: [root], rescanMs: 30_000, clock, log });
    let told = 0;
    disposals.push(() => source.stop());
    await source.start({ listed: () => told++, changed: () => told++ });
    await clock.someoneSleeps();
    if (when === "during") clock.step();
    await source.stop();
    expect(told).toBe(0);
  });
});

it("a CRD directory that is not there fails the start", async () => {
  const directories = [await directoryWith({})];
  await expect(SourceUnderTest.start({ directories, crdsDirectory: "/nonexistent" })).rejects.toThrow("ENOENT");
});

function isOurs(resource: string): boolean {
  return /Worker|MessagePort|FSEvent/.test(resource);
}

import { writeFileSync } from "node:fs";
import { rename, rm, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import "./kept-parsers.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { groupText, profileText, stream } from "./manifests.ts";
import { replaceFile, SourceUnderTest, StepClock, temporaryDirectory, writeFiles } from "./source-under-test.ts";

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

describe("a list", () => {
  it("holds Profiles, Groups, ConfigMaps and Secrets of all files, with where they were found", async () => {
    const root = await directoryWith({
      "web.yaml": stream("# a comment\n", profileText("web"), groupText("web")),
      "deep/er/node.yml": groupText("node"),
      "data.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts", "namespace": "racks"}}',
      "notes.txt": "no manifest",
      ".hidden.yaml": groupText("hidden"),
      ".git/inside.yaml": groupText("inside"),
    });
    const tested = await follow(root);
    expect(tested.names("Profile")).toEqual(["default/web"]);
    expect(tested.names("Group")).toEqual(["default/node", "default/web"]);
    expect(tested.names("ConfigMap")).toEqual(["racks/texts"]);
    expect(tested.source.view.complete).toBe(true);
    expect(tested.group("node")?.origin).toBe("deep/er/node.yml, document 1 (line 1)");
    expect(tested.group("web")).toMatchObject({
      origin: "web.yaml, document 2 (line 9)",
      uid: "directory/Group/default/web",
      generation: 1,
    });
  });

  it("names the directory in origins when there are several, and reads a directory inside another once", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "sub/b.yaml": groupText("b") });
    const tested = await follow(root, join(root, "sub"));
    expect(tested.group("b")?.origin).toBe(`${root}/sub/b.yaml, document 1 (line 1)`);
    expect(tested.problems()).toEqual([]);
  });

  it("is told the first two times, then only when it differs", async () => {
    const tested = await follow(await directoryWith({ "a.yaml": groupText("a") }));
    const told = [tested.listedCount];
    for (let look = 0; look < 3; look++) {
      await tested.look();
      told.push(tested.listedCount);
    }
    expect(told).toEqual([1, 2, 2, 2]);
    expect(tested.changes).toEqual([["Group/default/a"]]);
  });

  it("waits until every file was seen twice alike: one may be half written when davit starts", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const clock = new StepClock();
    const starting = SourceUnderTest.start({ directories: [root], clock });
    await clock.someoneSleeps();
    await writeFile(join(root, "a.yaml"), stream(groupText("a"), groupText("late")));
    clock.step();
    const tested = await starting;
    disposals.push(() => tested.source.stop());
    expect([tested.listedCount, tested.source.view.complete]).toEqual([0, false]);
    await clock.someoneSleeps();
    clock.step();
    await tested.until(() => tested.source.view.complete);
    expect(tested.names("Group")).toEqual(["default/a", "default/b", "default/late"]);
    expect(tested.listedCount).toBe(1);
  });

  it("is not whole while a file was not read as it was listed", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const path = join(root, "a.yaml");
    const clock = new StepClock();
    const starting = SourceUnderTest.start({ directories: [root], clock });
    await clock.someoneSleeps();
    clock.step();
    // The worker thread is started behind the listing, and takes longer to load than one write.
    while (!process.getActiveResourcesInfo().includes("MessagePort")) await immediate();
    writeFileSync(path, stream(groupText("a"), groupText("late")));
    const tested = await starting;
    disposals.push(() => tested.source.stop());
    expect(tested.source.view.complete).toBe(tested.group("a") !== undefined);
  });

  it("that is empty is told every time, and soon again", async () => {
    const root = await directoryWith({});
    const tested = await follow(root);
    await tested.clock.someoneSleeps();
    expect(tested.clock.sleepingMs).toEqual([5_000]);
    await tested.look(2);
    expect(tested.listedCount).toBe(3);
  });

  it("that is whole is repeated every 30 s, and sooner while something is amiss", async () => {
    const whole = await follow(await directoryWith({ "a.yaml": groupText("a") }));
    await whole.clock.someoneSleeps();
    expect(whole.clock.sleepingMs).toEqual([30_000]);
    const amiss = await follow(await directoryWith({ "a.yaml": groupText("a"), "b.yaml": "[" }));
    await amiss.clock.someoneSleeps();
    expect(amiss.clock.sleepingMs).toEqual([5_000]);
  });

  it("of 10,000 files is read once, and then only what changed", async () => {
    const files = Array.from({ length: 10_000 }, (_, at) => [`${at % 100}/${at}.yaml`, groupText(`g${at}`)] as const);
    const root = await directoryWith(Object.fromEntries(files));
    const tested = await follow(root);
    expect(tested.parsedCount(0)).toBe(10_000);
    expect(tested.names("Group")).toHaveLength(10_000);
    await writeFile(join(root, "7/7.yaml"), groupText("g7", "  matchAll: true"));
    await tested.look(2);
    expect(tested.parsedCount()).toBe(1);
    expect(tested.changes.at(-1)).toEqual(["Group/default/g7"]);
  }, 180_000);
});

describe("a change", () => {
  it("is told by name alone, and the view shows it", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await writeFile(join(root, "b.yaml"), groupText("b", "  selector: {matchLabels: {role: other}}"));
    await writeFile(join(root, "c.yaml"), groupText("c"));
    await tested.look(2);
    expect(tested.changes.slice(1)).toEqual([["Group/default/b", "Group/default/c"]]);
    expect(tested.group("b")?.spec.selector).toEqual({ role: "other" });
  });

  it("that leaves every object as it was is not told", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const tested = await follow(root);
    await tested.look();
    await utimes(join(root, "a.yaml"), 1, 1);
    await tested.look(2);
    expect(tested.parsedCount()).toBe(1);
    expect([tested.changes.length, tested.listedCount]).toEqual([1, 2]);
  });

  it("is read only when the file was seen twice alike", async () => {
    const root = await directoryWith({ "a.yaml": stream(groupText("a"), groupText("b")) });
    const tested = await follow(root);
    await writeFile(join(root, "a.yaml"), groupText("a"));
    await tested.look();
    expect(tested.parsedCount()).toBe(0);
    await writeFile(join(root, "a.yaml"), stream(groupText("a"), groupText("b"), groupText("c")));
    await tested.look(2);
    expect(tested.names("Group")).toEqual(["default/a", "default/b", "default/c"]);
    expect(tested.changes).toHaveLength(2);
  });

  it("is seen at once by a watch, in a new directory, too", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const tested = await SourceUnderTest.start({ directories: [root], clock: systemClock });
    disposals.push(() => tested.source.stop());
    await writeFiles(root, { "new/b.yaml": groupText("b") });
    await tested.until(() => tested.group("b") !== undefined);
    await replaceFile(join(root, "new/b.yaml"), groupText("b", "  matchAll: true"));
    await tested.until(() => tested.group("b")?.spec.matchAll === true);
    await rm(join(root, "a.yaml"));
    await tested.until(() => tested.group("a") === undefined);
    expect(tested.names("Group")).toEqual(["default/b"]);
  });
});

describe("an object that is gone", () => {
  it("leaves 2 s later", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await unlink(join(root, "a.yaml"));
    await tested.look();
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
    expect(tested.changes.at(-1)).toEqual(["Group/default/a"]);
    await tested.lookUntil(() => tested.changes.length > 2);
    expect(tested.names("Group")).toEqual(["default/b"]);
    expect(tested.changes.at(-1)).toEqual(["Group/default/a"]);
  });

  it("stays when its file was only being replaced", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await rename(join(root, "a.yaml"), join(root, "a.yaml~"));
    await tested.look();
    await writeFile(join(root, "a.yaml"), groupText("a", "  matchAll: true"));
    await tested.look(2);
    expect(tested.group("a")?.spec.matchAll).toBe(true);
    // About to leave, and there again.
    const group = "Group/default/a";
    expect(tested.changes).toEqual([[group, "Group/default/b"], [group], [group]]);
  });

  it("stays when it moved to another file", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const tested = await follow(root);
    await rename(join(root, "a.yaml"), join(root, "z.yaml"));
    await tested.look(3);
    expect(tested.group("a")?.origin).toBe("z.yaml, document 1 (line 1)");
    expect(tested.problems()).toEqual([]);
  });

  it.each([
    { name: "a file that is not YAML", broken: "kind: [" },
    { name: "a refused document", broken: groupText("b", "  matchAll: yes") },
    { name: "a document that is no object", broken: "just text" },
    { name: "a document without a kind", broken: "apiVersion: davit.dev/v1alpha1" },
    { name: "an unknown kind of davit.dev", broken: "apiVersion: davit.dev/v1alpha1\nkind: Machine" },
    { name: "an unknown version of davit.dev", broken: groupText("b").replace("v1alpha1", "v9") },
    { name: "a refused ConfigMap", broken: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: [1]" },
    { name: "a binary file", broken: Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0xff, 0xfe) },
  ])("stays while there is $name, and leaves when that is mended", async ({ broken }) => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "other.yaml": groupText("other") });
    const tested = await follow(root);
    await writeFile(join(root, "other.yaml"), broken);
    await tested.look(2);
    await unlink(join(root, "a.yaml"));
    await tested.look(3);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.problems().length).toBeGreaterThan(0);
    expect(tested.names("Group")).toEqual(expect.arrayContaining(["default/a", "default/other"]));
    await writeFile(join(root, "other.yaml"), groupText("other"));
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.source.view.complete).toBe(true);
    expect(tested.names("Group")).toEqual(["default/other"]);
  });
});

describe("a refused object", () => {
  it("keeps its last accepted version, and takes the next accepted one", async () => {
    const root = await directoryWith({ "a.yaml": stream(profileText("p"), groupText("a")) });
    const tested = await follow(root);
    await writeFile(join(root, "a.yaml"), stream(profileText("p", "  boot: {}"), groupText("a", "  priority: 5000")));
    await tested.look(2);
    expect(tested.group("a")?.spec).toMatchObject({ priority: 0, selector: { role: "a" } });
    expect(tested.group("a")?.refusal).toBeUndefined();
    expect([...tested.source.view.refusals]).toMatchObject([
      { kind: "Profile", name: "p", generation: 1, message: expect.stringContaining("set exactly one of kernel") },
      { kind: "Group", name: "a", generation: 1, message: expect.stringContaining("spec.priority (line 12)") },
    ]);
    expect(tested.changes.at(-1)).toEqual(["Group/default/a", "Profile/default/p"]);
    expect(tested.profile("p")?.spec.templates.generic).toMatchObject({ text: "hello" });
    await writeFile(join(root, "a.yaml"), stream(profileText("p", "  boot: {local: exit}"), groupText("a")));
    await tested.look(2);
    expect(tested.profile("p")?.spec.boot).toEqual({ kind: "local", local: "exit" });
    expect(tested.problems()).toEqual([]);
    expect([...tested.source.view.refusals]).toEqual([]);
  });

  it("that is a Group without an accepted version takes part with its refusal while its selector parses", async () => {
    const selector = '  selector: {matchLabels: {mac: "52-54-00-A1-9C-AE"}}';
    const root = await directoryWith({ "a.yaml": groupText("a", `${selector}\n  priority: high`) });
    const tested = await follow(root);
    expect(tested.group("a")).toMatchObject({
      refusal: "Group default/a, spec.priority (line 7): must be a whole number",
      spec: { profile: "web", selector: { mac: "52:54:00:a1:9c:ae" }, priority: 1000, matchAll: false },
    });
    await writeFile(join(root, "a.yaml"), groupText("a", "  selector: {matchLabels: {}}"));
    await tested.look(2);
    expect(tested.group("a")).toMatchObject({
      refusal: expect.stringContaining("set exactly one of"),
      spec: { selector: { mac: "52:54:00:a1:9c:ae" } },
    });
    await writeFile(join(root, "a.yaml"), groupText("a", selector));
    await tested.look(2);
    expect(tested.group("a")?.refusal).toBeUndefined();
  });
});

describe("a name that is defined twice", () => {
  it("keeps its last accepted version, and both places are named", async () => {
    const root = await directoryWith({ "a.yaml": profileText("web") });
    const tested = await follow(root);
    await writeFile(join(root, "b.yaml"), stream("# second\n", profileText("web", "  boot: {local: exit}")));
    await tested.look(2);
    expect(tested.profile("web")?.spec.boot).toBeUndefined();
    expect(tested.problems()).toEqual([
      "b.yaml, document 1 (line 3): Profile default/web is defined a second time, first in " +
        "a.yaml, document 1 (line 1): remove or rename one",
    ]);
    await unlink(join(root, "a.yaml"));
    await tested.lookUntil(() => tested.problems().length === 0 && tested.profile("web")?.spec.boot !== undefined);
    expect(tested.profile("web")?.spec.boot).toEqual({ kind: "local", local: "exit" });
  });

  it("from the start is not taken, except that a Group counts as refused", async () => {
    const same = stream(profileText("web"), groupText("a"));
    const tested = await follow(await directoryWith({ "a.yaml": same, "b.yaml": same }));
    expect(tested.names("Profile")).toEqual([]);
    expect([...tested.source.view.refusals].map(({ kind }) => kind)).toEqual(["Profile", "Group"]);
    expect(tested.group("a")).toMatchObject({
      refusal: expect.stringContaining("defined a second time, first in a.yaml, document 2 (line 7)"),
      spec: { selector: { role: "a" } },
    });
    expect(tested.source.view.complete).toBe(false);
  });
});

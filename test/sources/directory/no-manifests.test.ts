/** What looks like a mistake of the whole: directories without a manifest, files without a document. */

import { mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import "./kept-parsers.ts";
import { groupText, profileText, stream } from "./manifests.ts";
import { SourceUnderTest, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

async function directoryWith(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, files);
  return root;
}

async function follow(...directories: readonly string[]): Promise<SourceUnderTest> {
  const tested = await SourceUnderTest.start({ directories });
  disposals.push(() => tested.source.stop());
  return tested;
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing-here}\n";

function emptyText(directory: string): string {
  const says = "The directory holds no manifest, as if its volume were not mounted, so all that came from it stays";
  const cure = "restore it, or, to delete everything in it, leave one file with a document, such as a ConfigMap";
  return `${directory}: ${says}: ${cure}`;
}

describe("a directory without a manifest", () => {
  it("keeps what it held, and names the directory and the cure", async () => {
    const root = await directoryWith({ "a.yaml": stream(profileText("p"), groupText("a")), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await unlink(join(root, "a.yaml"));
    await unlink(join(root, "b.yaml"));
    await tested.look(4);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.problems()).toEqual([emptyText(root)]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
    expect(tested.names("Profile")).toEqual(["default/p"]);
    expect(tested.changes).toHaveLength(1);
  });

  it("is emptied by one file with a document", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const tested = await follow(root);
    await unlink(join(root, "a.yaml"));
    await tested.look(2);
    await writeFile(join(root, "keep.yaml"), configMap);
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.source.view.complete).toBe(true);
    expect(tested.names("Group")).toEqual([]);
    expect(tested.names("ConfigMap")).toEqual(["default/nothing-here"]);
  });

  it("is not emptied by a file without a document", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a") });
    const tested = await follow(root);
    await unlink(join(root, "a.yaml"));
    await writeFile(join(root, "keep.yaml"), "");
    await tested.look(4);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("goes on with what it has when it is filled again", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await rename(join(root, "a.yaml"), join(root, ".a"));
    await rename(join(root, "b.yaml"), join(root, ".b"));
    await tested.look(2);
    await rename(join(root, ".a"), join(root, "a.yaml"));
    await tested.lookUntil(() => tested.group("b") === undefined);
    expect(tested.names("Group")).toEqual(["default/a"]);
    expect(tested.problems()).toEqual([]);
  });

  it("at the start makes the view incomplete", async () => {
    const root = await directoryWith({});
    const tested = await follow(root);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.problems()).toEqual([emptyText(root)]);
    await writeFile(join(root, "a.yaml"), groupText("a"));
    await tested.lookUntil(() => tested.source.view.complete);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("is whole only once the files that came back were read", async () => {
    const root = await directoryWith({});
    const tested = await follow(root);
    await writeFile(join(root, "a.yaml"), groupText("a"));
    await tested.lookUntil(() => tested.problems().length === 0);
    expect([tested.source.view.complete, tested.names("Group")]).toEqual([false, []]);
    await tested.lookUntil(() => tested.source.view.complete);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("is one of several: what it held stays, and the others are followed", async () => {
    const root = await directoryWith({ "one/a.yaml": groupText("a"), "two/b.yaml": groupText("b") });
    const [one, two] = [join(root, "one"), join(root, "two")];
    const tested = await follow(one, two);
    await unlink(join(two, "b.yaml"));
    await writeFile(join(one, "a.yaml"), groupText("a", "  matchAll: true"));
    await tested.lookUntil(() => tested.group("a")?.spec.matchAll === true);
    await tested.look(3);
    expect(tested.problems()).toEqual([emptyText(two)]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
  });

  it("still has its objects, so that another directory cannot define them anew", async () => {
    const root = await directoryWith({ "one/a.yaml": groupText("a"), "two/b.yaml": groupText("b") });
    const tested = await follow(join(root, "one"), join(root, "two"));
    await unlink(join(root, "two/b.yaml"));
    await writeFile(join(root, "one/b.yaml"), groupText("b", "  matchAll: true"));
    await tested.look(4);
    expect(tested.group("b")?.spec).toMatchObject({ matchAll: false, selector: { role: "b" } });
    expect(tested.problems().at(-1)).toContain("Group default/b is defined a second time");
  });

  it("inside another directory counts for itself", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "rack/b.yaml": groupText("b") });
    const tested = await follow(root, join(root, "rack"));
    await unlink(join(root, "rack/b.yaml"));
    await tested.look(4);
    expect(tested.problems()).toEqual([emptyText(join(root, "rack"))]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
  });

  it("below one that has some is as its files say: what was in it leaves", async () => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "rack/b.yaml": groupText("b") });
    const tested = await follow(root);
    await unlink(join(root, "rack/b.yaml"));
    await tested.lookUntil(() => tested.group("b") === undefined);
    expect(tested.names("Group")).toEqual(["default/a"]);
  });

  it("that was reached by a link, too, is named as it was given", async () => {
    const root = await directoryWith({ "all/a.yaml": groupText("a"), "all/rack/b.yaml": groupText("b") });
    await symlink("all/rack", join(root, "link"));
    const tested = await follow(join(root, "all"), join(root, "link"));
    expect(tested.problems()).toEqual([]);
    await unlink(join(root, "all/rack/b.yaml"));
    await tested.look(4);
    expect(tested.problems()).toEqual([emptyText(join(root, "link"))]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
  });

  it.each([
    { name: "notes", file: "notes.txt" },
    { name: "a hidden manifest", file: ".hidden.yaml" },
    { name: "a hidden directory", file: ".git/a.yaml" },
    { name: "a directory of notes", file: "deep/notes.txt" },
    { name: "a version of an emptied ConfigMap", file: "..2026_1/notes" },
  ])("may hold $name", async ({ file }) => {
    const root = await directoryWith({ [file]: groupText("a") });
    expect((await follow(root)).problems()).toEqual([emptyText(root)]);
  });

  it("is not said of one that has a manifest only below, or one that cannot be read", async () => {
    const below = await directoryWith({ "deep/er/a.yaml": groupText("a") });
    expect((await follow(below)).problems()).toEqual([]);
    const lost = await directoryWith({});
    await symlink("nowhere", join(lost, "a.yaml"));
    const tested = await follow(lost);
    expect(tested.problems()).toEqual(["a.yaml: The link leads to nothing: restore what it leads to, or remove it"]);
  });

  it("keeps the problems of its files, however the directory is written", async () => {
    const root = await directoryWith({ "here/a.yaml": "just: text\n" });
    const tested = await follow(`${root}/./here/`);
    const [broken] = tested.problems();
    await rm(join(root, "here"), { recursive: true });
    await tested.look(2);
    expect(tested.problems()).toEqual([expect.stringContaining("ENOENT"), broken]);
    await mkdir(join(root, "here"));
    await tested.look(2);
    expect(tested.problems()).toEqual([emptyText(`${root}/./here/`), broken]);
  });
});

describe("a file without a document", () => {
  it.each([
    { name: "zero bytes", text: "" },
    { name: "comments", text: "# was here\n" },
    { name: "`---`", text: "---\n" },
    { name: "a List of nothing", text: "{apiVersion: v1, kind: List, items: []}\n" },
    { name: "a List that a template emptied", text: "apiVersion: v1\nkind: List\nitems:\n" },
  ])("but $name keeps what it gave before, until it is removed", async ({ text }) => {
    const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const tested = await follow(root);
    await writeFile(join(root, "a.yaml"), text);
    await tested.look(4);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.problems()).toEqual([expect.stringMatching(/^a\.yaml.*(?:holds no document|is no list of objects)/)]);
    expect(tested.names("Group")).toEqual(["default/a", "default/b"]);
    await unlink(join(root, "a.yaml"));
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.problems()).toEqual([]);
  });
});

describe("a document that no longer is of davit.dev", () => {
  it.each(["v1alpha1", "v1", "davit/v1alpha1", "davit.io/v1alpha1", "Davit.dev/v1alpha1"])(
    "but of `%s` keeps its object",
    async (apiVersion) => {
      const root = await directoryWith({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
      const tested = await follow(root);
      await writeFile(join(root, "a.yaml"), groupText("a").replace("davit.dev/v1alpha1", apiVersion));
      await tested.look(4);
      expect(tested.group("a")).toMatchObject({ spec: { selector: { role: "a" } } });
      expect(tested.group("a")?.refusal).toBeUndefined();
      expect(tested.problems()).toEqual([expect.stringContaining("Group default/a, apiVersion (line 1): is not the")]);
    },
  );

  it("but almost, from the start, still takes the machines that its selector names", async () => {
    const selector = '  selector: {matchLabels: {mac: "52:54:00:a1:9c:ae"}}';
    const near = groupText("a", selector).replace("davit.dev", "davit.io");
    const tested = await follow(await directoryWith({ "a.yaml": near }));
    expect(tested.group("a")).toMatchObject({
      refusal: expect.stringContaining("write davit.dev/v1alpha1"),
      spec: { selector: { mac: "52:54:00:a1:9c:ae" } },
    });
  });

  it("but another project's leaves, and the log tells both", async () => {
    const root = await directoryWith({ "a.yaml": stream(groupText("b"), groupText("a")) });
    const tested = await follow(root);
    const foreign = groupText("a").replace("davit.dev/v1alpha1", "user.openshift.io/v1");
    await writeFile(join(root, "a.yaml"), stream(groupText("b"), foreign));
    await tested.lookUntil(() => tested.group("a") === undefined);
    expect(tested.told("documents of other groups ignored")).toMatchObject([
      { level: 30, path: "a.yaml", documents: ["document 2 (line 8)"], count: 1 },
    ]);
    expect(tested.told("object left the manifests")).toMatchObject([
      { level: 30, kind: "Group", namespace: "default", name: "a", origin: "a.yaml, document 2 (line 8)" },
    ]);
  });
});

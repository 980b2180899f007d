/** What has the name of a manifest and is neither a file nor a directory: it says nothing about what to delete. */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import "./kept-parsers.ts";
import { groupText, stream } from "./manifests.ts";
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

async function follow(root: string): Promise<SourceUnderTest> {
  const tested = await SourceUnderTest.start({ directories: [root] });
  disposals.push(() => tested.source.stop());
  return tested;
}

function makePipe(path: string): void {
  execFileSync("mkfifo", [path]);
}

async function makeSocket(path: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, "listening");
  disposals.push(async () => {
    await server[Symbol.asyncDispose]();
  });
}

async function linkToPipe(path: string): Promise<void> {
  makePipe(`${path}-pipe`);
  await symlink(`${path}-pipe`, path);
}

function problemOf(kind: string): string {
  const says = `This is ${kind} and no file, so what came from it before stays: put the file back, or remove it`;
  return `own.yaml: ${says}`;
}

const manifests = { "all.yaml": stream(groupText("all"), groupText("other")), "own.yaml": groupText("own") };

describe("in the place of a manifest", () => {
  it.each([
    { what: "a named pipe", kind: "a named pipe", make: makePipe },
    { what: "a socket", kind: "a socket", make: makeSocket },
    { what: "a link to a named pipe", kind: "a named pipe", make: linkToPipe },
    { what: "a link to /dev/zero", kind: "a device", make: (path: string) => symlink("/dev/zero", path) },
    { what: "a link to /dev/null", kind: "a device", make: (path: string) => symlink("/dev/null", path) },
  ])("$what is a problem, and nothing is removed while it is there", async ({ kind, make }) => {
    const root = await directoryWith(manifests);
    const tested = await follow(root);
    await rm(join(root, "own.yaml"));
    await make(join(root, "own.yaml"));
    await writeFile(join(root, "all.yaml"), groupText("all"));
    await tested.look(4);
    expect(tested.problems()).toEqual([problemOf(kind)]);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.names("Group")).toEqual(["default/all", "default/other", "default/own"]);
    await rm(join(root, "own.yaml"));
    await tested.lookUntil(() => tested.group("own") === undefined);
    expect(tested.names("Group")).toEqual(["default/all"]);
    expect(tested.problems()).toEqual([]);
  });

  it("a named pipe is over when a file is there again", async () => {
    const root = await directoryWith(manifests);
    const tested = await follow(root);
    await rename(join(root, "own.yaml"), join(root, ".away"));
    makePipe(join(root, "own.yaml"));
    await tested.look(3);
    expect(tested.problems()).toEqual([problemOf("a named pipe")]);
    await rename(join(root, ".away"), join(root, "own.yaml"));
    await tested.lookUntil(() => tested.source.view.complete);
    expect(tested.problems()).toEqual([]);
    expect(tested.names("Group")).toEqual(["default/all", "default/other", "default/own"]);
    expect(tested.changes).toHaveLength(1);
  });

  it("a named pipe at the start keeps the list incomplete, and the other files are read", async () => {
    const root = await directoryWith({ "all.yaml": groupText("all") });
    makePipe(join(root, "own.json"));
    const tested = await follow(root);
    expect(tested.source.view.complete).toBe(false);
    expect(tested.names("Group")).toEqual(["default/all"]);
  });

  it("a directory is read as any other", async () => {
    const root = await directoryWith({ ...manifests, "sub.yaml/deep.yml": groupText("deep") });
    const tested = await follow(root);
    expect(tested.problems()).toEqual([]);
    expect(tested.names("Group")).toContain("default/deep");
  });
});

it("a named pipe whose name is not one of a manifest is of no interest", async () => {
  const root = await directoryWith(manifests);
  makePipe(join(root, "own.txt"));
  makePipe(join(root, ".own.yaml"));
  const tested = await follow(root);
  expect(tested.problems()).toEqual([]);
  expect(tested.source.view.complete).toBe(true);
});

/** The Containerfile copies only what .containerignore gives to the builder: without this, no image can be built. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

describe("the Containerfile", () => {
  it("copies what .containerignore lets through, and .containerignore nothing else", async () => {
    const steps = await readFile(join(root, "Containerfile"), "utf8");
    const copied = [...steps.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, sources = ""]) => sources.split(" "));
    const ignore = await readFile(join(root, ".containerignore"), "utf8");
    const given = [...ignore.matchAll(/^!(.+)$/gm)].map(([, path]) => path);
    expect(copied.map((path) => path.replace(/\/$/, "")).sort()).toEqual(given.sort());
  });
});

/** `davit import matchbox` on a disk: what it writes, and what is wrong with what it is given. */

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runImport, runImportUnprivileged } from "./import-command.ts";
import { writeTree } from "./site.ts";
import type { Tree } from "./trees.ts";

const tree: Tree = {
  "groups/default.json": { id: "default", profile: "worker" },
  "profiles/worker.json": { id: "worker", boot: { kernel: "/assets/vmlinuz" }, generic_id: "t" },
  "generic/t": "a={{.mac}}",
};

let folder: string;
const at = (...names: readonly string[]) => join(folder, ...names);
const run = (...more: readonly string[]) => runImport("matchbox", at("mb"), "--out", at("out"), ...more);

function written(): Record<string, string> {
  const names = readdirSync(at("out"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".yaml"));
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(at("out", name), "utf8")]));
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "davit-import-"));
  writeTree(at("mb"), tree);
});

afterEach(() => rmSync(folder, { recursive: true }));

it("writes a file for each object, and ends with 0", async () => {
  expect(await run()).toEqual({
    code: 0,
    output: `1 Profile and 1 Group are in ${at("out")}: 0 errors, 0 warnings\n`,
    complaints: "",
  });
  expect(Object.keys(written())).toEqual(["groups/default.yaml", "profiles/worker.yaml"]);
});

it("writes the same bytes again", async () => {
  await run();
  const first = written();
  expect(await run("--force")).toMatchObject({ code: 0 });
  expect(written()).toEqual(first);
});

it("writes what it can and ends with 1 when something was not carried over", async () => {
  writeTree(at("mb"), { "generic/t": "a\n{{len .a}}" });
  expect(await run()).toEqual({
    code: 1,
    output: `1 Profile and 1 Group are in ${at("out")}: 1 error, 0 warnings\n`,
    complaints: `${at("mb/generic/t")}:2:1: error: "len" is not translated: print the "length" of a list, such as disks.length\n`,
  });
  expect(written()["profiles/worker.yaml"]).toContain("inline: |-\n      a\n      {{notImported}}\n");
});

it("tells a URL as it stands in the file", async () => {
  writeTree(at("mb"), { "profiles/other.json": { id: "other", boot: { kernel: "http://mb:8080/assets/vmlinuz" } } });
  const { code, complaints } = await run();
  expect(code).toBe(0);
  expect(complaints).toBe(
    `${at("mb/profiles/other.json")}:4:5: warning: boot.kernel leads to "http://mb:8080": if that is the matchbox, import with --matchbox-url http://mb:8080 or write {{davit.url}} instead\n`,
  );
});

it("never writes where an earlier import is, unless it may", async () => {
  await run();
  writeFileSync(at("out/groups/default.yaml"), "mine\n");
  const { code, complaints } = await run();
  expect(code).toBe(1);
  expect(complaints).toBe(
    `Writing "${at("out/profiles")}": it has files already; give an empty directory, or --force to replace them\n`,
  );
  expect(written()["groups/default.yaml"]).toBe("mine\n");
});

describe("a command line that is wrong ends with 2 and writes nothing", () => {
  it.each<{ name: string; args: () => readonly string[]; complaint: () => string }>([
    { name: "nothing", args: () => [], complaint: () => "Nothing to import: give matchbox DIR first, then options\n" },
    {
      name: "another service",
      args: () => ["cobbler", at("mb"), "--out", at("out")],
      complaint: () => "Nothing to import: give matchbox DIR first, then options\n",
    },
    {
      name: "a directory that does not exist",
      args: () => ["matchbox", at("gone"), "--out", at("out")],
      complaint: () => `No directory "${at("gone")}": give the data directory of a matchbox\n`,
    },
    {
      name: "no place for the result",
      args: () => ["matchbox", at("mb")],
      complaint: () => "No place for the manifests: give --out DIR\n",
    },
    {
      name: "a URL with a path",
      args: () => ["matchbox", at("mb"), "--out", at("out"), "--matchbox-url", "http://a/b"],
      complaint: () => 'Bad value "http://a/b" for --matchbox-url: must be http://HOST:PORT or https://HOST:PORT',
    },
  ])("$name", async ({ args, complaint }) => {
    const { code, complaints } = await runImport(...args());
    expect(code).toBe(2);
    expect(complaints).toContain(complaint());
    expect(readdirSync(folder)).toEqual(["mb"]);
  });
});

describe("files that cannot be used are told, and end it with 1", () => {
  it.each<{ name: string; make: () => void; complaint: string }>([
    {
      name: "a link out of the directory",
      make: () => symlinkSync("/etc/hostname", at("mb/groups/link.json")),
      complaint: "groups/link.json:1:1: error: is a link out of the directory: put the file itself in its place\n",
    },
    {
      name: "a link to nothing",
      make: () => symlinkSync("nothing", at("mb/groups/link.json")),
      complaint:
        "groups/link.json:1:1: error: is a link to nothing, or gone by now: put the file there, or remove the link\n",
    },
    {
      name: "a link to itself",
      make: () => symlinkSync("link.json", at("mb/groups/link.json")),
      complaint: "groups/link.json:1:1: error: cannot be read (ELOOP): check its permissions and its disk\n",
    },
    {
      name: "a profile below profiles that cannot be used",
      make: () => {
        mkdirSync(at("mb/profiles/racks"));
        symlinkSync("/etc/hostname", at("mb/profiles/racks/a.json"));
        writeFileSync(at("mb/groups/g.json"), '{"profile": "racks/a", "selector": {"a": "b"}}');
      },
      complaint:
        'groups/g.json:1:2: error: no usable file "profiles/racks/a.json", its machines are answered 404: ' +
        "it is a link out of the directory: put the file itself in its place\n",
    },
    {
      name: "a pipe",
      make: () => void execFileSync("mkfifo", [at("mb/groups/pipe.json")]),
      complaint: "groups/pipe.json:1:1: error: is not a file: put the file itself in its place\n",
    },
    {
      name: "a binary template",
      make: () => writeFileSync(at("mb/generic/t"), Buffer.from([0, 1, 2])),
      complaint: "generic/t:1:1: error: is not text in UTF-8: davit serves such a file from its assets directory\n",
    },
    {
      name: "a template in another encoding",
      make: () => writeFileSync(at("mb/generic/t"), Buffer.from([0x61, 0xe4])),
      complaint: "generic/t:1:1: error: is not text in UTF-8: davit serves such a file from its assets directory\n",
    },
    {
      name: "an enormous file",
      make: () => writeFileSync(at("mb/generic/t"), Buffer.alloc(2_000_000, "a")),
      complaint: "generic/t:1:1: error: is larger than 1 MiB, and davit takes no such text: shorten it\n",
    },
    {
      name: "a file of a hundred thousand brackets",
      make: () =>
        writeFileSync(at("mb/groups/deep.json"), `{"metadata": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
      complaint: "groups/deep.json:1:",
    },
  ])("$name", async ({ make, complaint }) => {
    make();
    const { code, complaints } = await run();
    expect(complaints).toContain(complaint);
    expect(code).toBe(1);
    expect(written()).toHaveProperty(["groups/default.yaml"]);
  });

  it("a link inside the directory is followed", async () => {
    symlinkSync("default.json", at("mb/groups/other.json"));
    expect(await run()).toMatchObject({ code: 0 });
    expect(written()).toHaveProperty(["groups/other.yaml"]);
  });

  it("an empty directory has nothing to import", async () => {
    mkdirSync(at("empty"));
    expect(await runImport("matchbox", at("empty"), "--out", at("out"))).toEqual({
      code: 1,
      output: "",
      complaints: `Nothing to import: no groups or profiles in "${at("empty")}"\n`,
    });
  });

  it("a place that is a file", async () => {
    writeFileSync(at("out"), "");
    const { code, complaints } = await run();
    expect(code).toBe(1);
    expect(complaints).toMatch(/^Writing ".*out\/profiles": a part of its path is a file\n$/);
  });

  it("a folder without permission", async () => {
    chmodSync(at("mb/groups"), 0o000);
    const { code, complaints } = await runImportUnprivileged("matchbox", at("mb"), "--out", at("out"));
    chmodSync(at("mb/groups"), 0o700);
    expect({ code, complaints }).toEqual({ code: 1, complaints: `Reading "${at("mb")}": permission is denied\n` });
  });

  it("a file without permission", async () => {
    chmodSync(at("mb/generic/t"), 0o000);
    const { code, complaints } = await runImportUnprivileged("matchbox", at("mb"), "--out", at("out"));
    expect(complaints).toBe(
      `${at("mb/generic/t")}:1:1: error: cannot be read (EACCES): check its permissions and its disk\n`,
    );
    expect(code).toBe(1);
    expect(written()["profiles/worker.yaml"]).toContain("worker-not-imported");
  });
});

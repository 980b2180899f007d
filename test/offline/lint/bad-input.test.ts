import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { davitProgram } from "../../../tools/davit-process.ts";
import { runCommand } from "../../helpers/command-under-test.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";
import { linesOf } from "./provocations.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-lint-input-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** davit as a user starts it, with this text piped in. */
async function runProcess(words: readonly string[], input: string) {
  const child = spawn(process.execPath, [davitProgram, ...words], { stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(input);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code: child.exitCode, output, errors };
}

function* failing(): Iterable<string> {
  yield "a: 1";
  throw Object.assign(new Error("read"), { code: "EIO" });
}

describe("`davit lint` ends with 2", () => {
  it("for a directory that does not exist", async () => {
    const ran = await runCommand(["lint", "--manifests", join(folder, "absent")]);
    expect(ran).toMatchObject({ code: 2, output: "" });
    expect(ran.errors).toContain("--manifests needs one that exists");
  });

  it("for an assets directory that does not exist, an unknown format and an unknown option, all told at once", async () => {
    const words = ["--assets-dir", join(folder, "absent"), "--format", "xml", "--colour"];
    const ran = await runCommand(["lint", ...words], { input: [groupText("a")] });
    expect(ran).toMatchObject({ code: 2, output: "" });
    expect(linesOf(ran.errors)).toHaveLength(4);
  });

  it("where nothing is given and nobody pipes anything in", async () => {
    const ran = await runCommand(["lint"], { inputIsTerminal: true });
    expect(ran).toMatchObject({ code: 2, output: "" });
    expect(ran.errors).toMatch(/^No manifests: give --manifests DIR, or pipe in /);
  });

  it("for an input of more than 256 MiB, without keeping all of it", async () => {
    const piece = Buffer.alloc(16 * 2 ** 20, "# enormous\n");
    const ran = await runCommand(["lint"], { input: Array.from({ length: 17 }, () => piece) });
    expect(ran).toEqual({ code: 2, output: "", errors: "Reading standard input: it is larger than 256 MiB\n" });
  });

  it("for an input that cannot be read", async () => {
    const ran = await runCommand(["lint"], { input: failing() });
    expect(ran).toEqual({ code: 2, output: "", errors: 'Reading "standard input": the disk fails to read or write\n' });
  });
});

describe("`davit lint` ends with 2 and tells what is in the place of a manifest:", () => {
  it.each([
    ["a named pipe", (path: string) => promisify(execFile)("mkfifo", [path])],
    ["a device", (path: string) => symlink("/dev/zero", path)],
  ])("%s", async (kind, make) => {
    const directory = await mkdtemp(join(folder, "place-"));
    await writeFile(join(directory, "all.yaml"), stream(profileText("web"), groupText("g")));
    await make(join(directory, "own.yaml"));
    const ran = await runCommand(["lint", "--manifests", directory]);
    expect(ran.output).toBe(
      `${join(directory, "own.yaml")}:1:1: error: This is ${kind} and no file, so what came from it before stays: ` +
        "put the file back, or remove it (unreadable-file)\n",
    );
    expect(ran.code).toBe(2);
  });
});

describe("`davit lint` tells of", () => {
  it("100,000 documents, each at its line", async () => {
    const ran = await runCommand(["lint"], { input: ["a: 1\n---\n".repeat(100_000)] });
    const lines = linesOf(ran.output);
    expect(lines).toHaveLength(100_000);
    expect(lines.at(-1)).toMatch(/^<stdin>:199999:1: error: Document, apiVersion: is missing/);
    expect(ran.code).toBe(1);
  });

  it("what kubectl writes of 2,000 objects, each at its line", async () => {
    const item = (at: number) => `- apiVersion: davit.dev/v1alpha1
  kind: Group
  metadata: {name: g${at}}
  spec:
    profileRef: {name: web}
    priority: 1001
    selector: {matchLabels: {role: r${at}}}
  status: {}
`;
    const items = Array.from({ length: 2_000 }, (_, at) => item(at));
    const ran = await runCommand(["lint"], { input: [`apiVersion: v1\nitems:\n${items.join("")}kind: List\n`] });
    const lines = linesOf(ran.output);
    expect(lines).toHaveLength(2_000);
    expect(lines.at(-1)).toMatch(/^<stdin>:16000:5: error: Group default\/g1999, spec.priority: must be 1000 or less/);
  });

  it("bytes that are no text", async () => {
    const ran = await runCommand(["lint"], { input: [Uint8Array.of(0xff, 0xfe, 0, 1)] });
    expect(ran.output).toBe("<stdin>:1:1: error: The input is not UTF-8 text: give YAML or JSON (not-text)\n");
  });

  it("one file that is broken and of the objects beside it", async () => {
    const directory = await mkdtemp(join(folder, "beside-"));
    await writeFile(join(directory, "a.yaml"), "a: [");
    await writeFile(join(directory, "b.yaml"), groupText("g"));
    const { output } = await runCommand(["lint", "--manifests", directory]);
    expect(linesOf(output).map((line) => line.slice(directory.length + 1).replace(/: error.*\(/, " ("))).toEqual([
      "a.yaml:1:5 (invalid-yaml)",
      "b.yaml:5:16 (missing-profile)",
    ]);
  });
});

describe("as a process, `davit lint`", () => {
  it("reads what is piped in and writes nothing else than findings", async () => {
    const ran = await runProcess(["lint"], stream(profileText("web"), groupText("g")));
    expect(ran).toEqual({ code: 0, output: "", errors: "davit lint: no errors, no warnings, no advice\n" });
  });

  it("reads standard input beside a directory", async () => {
    const directory = await mkdtemp(join(folder, "with-"));
    await writeFile(join(directory, "a.yaml"), profileText("web"));
    const ran = await runProcess(["lint", "--manifests", directory, "--manifests", "-"], groupText("g"));
    expect(ran).toMatchObject({ code: 0, output: "" });
  });

  it("takes - as a file: standard input", async () => {
    const ran = await runProcess(["lint", "-"], groupText("g"));
    expect(ran).toMatchObject({ code: 1, output: expect.stringMatching(/^<stdin>:.*missing-profile/) });
  });

  it("says in one sentence that what it tells cannot be written", async () => {
    const line = `"${process.execPath}" "${davitProgram}" lint --manifests "${folder}" > /dev/full`;
    const ran = promisify(execFile)("sh", ["-c", line]);
    await expect(ran).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Writing standard output: ENOSPC$/m),
    });
  });

  it("ends at the first signal, though its input does not", async () => {
    const child = spawn(process.execPath, [davitProgram, "lint"], { stdio: ["pipe", "ignore", "ignore"] });
    const ended = once(child, "exit");
    // More than a pipe holds: it has been written once most of it is read.
    await new Promise((resolve) => child.stdin.write("a: 1\n---\n".repeat(100_000), resolve));
    child.kill("SIGTERM");
    expect(await ended).toEqual([130, null]);
  });

  it("ends quietly when its reader has seen enough", async () => {
    const input = join(folder, "many.yaml");
    await writeFile(input, "a: 1\n---\n".repeat(20_000));
    const line = `"${process.execPath}" "${davitProgram}" lint < "${input}" | head -n 1`;
    const { stdout, stderr } = await promisify(execFile)("sh", ["-c", line]);
    expect(linesOf(stdout)).toHaveLength(1);
    expect(stderr).toBe("davit lint: 20000 errors, no warnings, no advice\n");
  });
});

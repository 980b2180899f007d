/** Versions that are refused, in a file, while their machines ask: a process and its directory. */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const [own, other] = ["52:54:00:a1:9c:ae", "52:54:00:a1:9c:af"];
const head = (kind: string, name: string) =>
  `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec:\n`;
const installer = `${head("Profile", "installer")}  boot: {kernel: /wipe}\n`;
const disk = `${head("Profile", "disk")}  boot: {local: exit}\n`;
const everybody = `${head("Group", "everybody")}  profileRef: {name: installer}\n  matchAll: true\n`;
const node = (profile: string, mac: string, more: string) =>
  `${head("Group", "node")}  profileRef: {name: ${profile}}\n  selector: {matchLabels: {mac: "${mac}"}}\n${more}`;
/** What davit refuses. */
const slip = "  prioritty: 5\n";

let folder: string;
let manifests: string;
let davit: DavitProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-refused-"));
  manifests = join(folder, "manifests");
  await mkdir(manifests);
  await write("others.yaml", [installer, disk, everybody].join("---\n"));
});

afterEach(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

/** As a finished file that is moved in. */
async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text);
  await rename(join(folder, name), join(manifests, name));
}

async function start(): Promise<void> {
  davit = await startDavit({ manifests, dataDir: join(folder, "data") });
}

async function boots(mac: string): Promise<string> {
  const response = await fetch(`${davit.bootUrl}/ipxe?mac=${mac}`);
  return response.status === 200 ? (/\/wipe|exit/.exec(await response.text())?.[0] ?? "") : String(response.status);
}

/** Every answer until one of them has been given for a while. */
async function answersUntil(mac: string, last: string): Promise<readonly string[]> {
  const answers: string[] = [];
  for (let count = 0; count < 50; count += answers.at(-1) === last ? 1 : 0) {
    const answer = await boots(mac);
    if (answers.at(-1) !== answer) answers.push(answer);
    await pause(10);
  }
  return answers;
}

describe("a refused version of a Group", { timeout: 60_000 }, () => {
  it.each([
    ["holds its machines at once", node("installer", own, `  hold: true\n${slip}`)],
    ["names another Profile, and they wait", node("disk", own, slip)],
    ["has no selector, and they wait", `${head("Group", "node")}  profileRef: {name: installer}\n${slip}`],
  ])("%s, over a restart as well", async (_what, text) => {
    await write("node.yaml", node("installer", own, ""));
    await start();
    expect(await boots(own)).toBe("/wipe");
    await write("node.yaml", text);
    expect(await answersUntil(own, "503")).toEqual(["/wipe", "503"]);
    await davit.stop();
    await start();
    expect(await answersUntil(own, "503")).toEqual(["503"]);
    await write("node.yaml", node("disk", own, ""));
    expect(await answersUntil(own, "exit")).toEqual(["503", "exit"]);
  });

  it("has another selector, and the machines of both wait, over a restart as well", async () => {
    await write("node.yaml", node("disk", own, ""));
    await start();
    expect(await Promise.all([own, other].map(boots))).toEqual(["exit", "/wipe"]);
    await write("node.yaml", node("disk", other, slip));
    expect(await Promise.all([answersUntil(own, "503"), answersUntil(other, "503")])).toEqual([
      ["exit", "503"],
      ["/wipe", "503"],
    ]);
    await davit.stop();
    await start();
    expect(await Promise.all([answersUntil(own, "503"), answersUntil(other, "503")])).toEqual([["503"], ["503"]]);
    await write("node.yaml", node("disk", other, ""));
    expect(await answersUntil(other, "exit")).toEqual(["503", "exit"]);
    expect(await boots(own)).toBe("503");
  });
});

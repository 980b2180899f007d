/** An object that aliases make larger than any cluster would store is refused, and stops no later change. */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";

const patience = { timeout: 60_000, interval: 50 };
let folder: string;
let davit: DavitProcess;
let follower: DavitBootProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-oversized-"));
  await mkdir(join(folder, "manifests"));
  await write("profile.yaml", profile("first"));
  await write("group.yaml", group("small"));
  const dataDir = join(folder, "data");
  davit = await startDavit({ manifests: join(folder, "manifests"), dataDir });
  follower = await startDavitBoot(["--store", davit.storeUrl, "--data-dir", dataDir]);
}, 60_000);

afterAll(async () => {
  await follower?.stop();
  await davit?.stop();
  await rm(folder, { recursive: true });
});

it("keeps its last good version, at followers too, and the next change arrives", { timeout: 180_000 }, async () => {
  const seen = new Set<string>();
  const look = async () => {
    const answers = await Promise.all([davit, follower].map(answerOf));
    for (const answer of answers) seen.add(answer);
    return answers;
  };
  await expect.poll(look, patience).toEqual(["first small", "first small"]);
  const text = "x".repeat(800_000);
  await write("group.yaml", group("large", `, a: &a ${text}, b: [${"*a, ".repeat(90)}]`));
  await expect.poll(() => JSON.stringify(davit.log), patience).toContain("larger than 1.5 MiB");
  await write("profile.yaml", profile("second"));
  await expect.poll(look, patience).toEqual(["second small", "second small"]);
  expect([...seen].toSorted()).toEqual(["first small", "second small"]);
});

const head = (kind: string, name: string) => `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}`;

function profile(text: string): string {
  return `${head("Profile", "web")}\nspec: {generic: {inline: "${text} {{size}}"}}\n`;
}

function group(size: string, more = ""): string {
  const selector = "{matchLabels: {role: web}}";
  return `${head("Group", "web")}\nspec: {profileRef: {name: web}, selector: ${selector}, metadata: {size: ${size}${more}}}\n`;
}

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, "next"), text);
  await rename(join(folder, "next"), join(folder, "manifests", name));
}

async function answerOf({ bootUrl }: DavitBootProcess): Promise<string> {
  const answer = await fetch(`${bootUrl}/generic?role=web`);
  return answer.ok ? await answer.text() : String(answer.status);
}

/**
 * A directory of manifests that is edited badly all the time. Every machine without a Group would be installed. What a
 * machine is answered is what its file says now, what it said before, or 503.
 */

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { machineOf } from "../../src/commands/offline/render.ts";
import { loadManifests } from "../../src/offline/load/load-manifests.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { seededPick } from "../helpers/fault-files.ts";
import { silentLog } from "../helpers/test-store.ts";
import { fuzzSeed, fuzzSteps, fuzzTimeoutMs } from "./fuzz.ts";
import { mutate } from "./mutate.ts";

const machineCount = 40;
// A round takes some seconds: davit waits until files are at rest.
const usualRounds = 3;
const patience = { timeout: 60_000, interval: 50 };
const markMac = "52:54:ff:ff:ff:ff";

const everybody = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, boot: {kernel: /assets/wipe}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: others}
spec: {profileRef: {name: wipe}, matchAll: true}
`;
const words = [
  "kind: Profile\n",
  "hold: true\n",
  "---\n",
  "&a ",
  "*a",
  "matchAll: true\n",
  "priority: 5\n",
  "'",
  "}\n",
  "{",
];

let folder: string;
let objects: string;
let davit: DavitProcess;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "davit-fuzz-"));
  objects = join(folder, "objects");
  mkdirSync(objects);
  write("everybody.yaml", everybody);
  write("mark.yaml", markOf(0));
  for (let at = 0; at < machineCount; at++) write(`node-${at}.yaml`, groupOf(at));
  davit = await startDavit({ manifests: objects, dataDir: join(folder, "data") });
}, 120_000);
afterAll(async () => {
  await davit?.stop();
  rmSync(folder, { recursive: true });
});

/** Half of the writes are in place, as an editor does it; the others by a new file. */
function write(name: string, content: string | Buffer): void {
  const path = join(objects, name);
  const isInPlace = content.length % 2 === 0;
  writeFileSync(isInPlace ? path : `${path}.new`, content);
  if (!isInPlace) renameSync(`${path}.new`, path);
}

function groupOf(at: number): string {
  return `apiVersion: davit.dev/v1alpha1
kind: Group
metadata:
  name: node-${at}
spec:
  profileRef:
    name: disk
  selector:
    matchLabels:
      mac: "${macOf(at)}"
`;
}

function markOf(round: number): string {
  const meta = (kind: string) => `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: mark}\n`;
  const selector = `{matchLabels: {mac: "${markMac}"}}`;
  return `${meta("Profile")}spec: {boot: {kernel: /assets/round-${round}}}
---
${meta("Group")}spec: {profileRef: {name: mark}, selector: ${selector}}
`;
}

function macOf(at: number): string {
  return `52:54:00:00:00:${at.toString(16).padStart(2, "0")}`;
}

/** The kernel, or the status. */
async function bootOf(mac: string): Promise<string> {
  const answer = await fetch(`${davit.bootUrl}/ipxe?mac=${mac}`);
  return kernelIn(await answer.text()) ?? String(answer.status);
}

function kernelIn(script: string): string | undefined {
  return /^kernel \S*\/assets\/(\S+)/m.exec(script)?.[1];
}

/** What the files say, read by nobody who knows what was before; undefined for a machine that they refuse. */
async function saidByFiles(): Promise<readonly (string | undefined)[]> {
  const manifests = await loadManifests({ directories: [objects], log: silentLog });
  return Array.from({ length: machineCount }, (_, at) => {
    const asking = { rawQuery: `mac=${macOf(at)}`, advertiseAddress: undefined, advertiseTlsAddress: undefined };
    const { ask } = machineOf(manifests, {
      ...asking,
      userAgent: "",
      grubSeparator: "auto",
      grubCommands: "auto",
      signed: false,
    });
    const answer = ask("ipxe");
    return answer.kind === "body" ? kernelIn(answer.body) : undefined;
  });
}

it("gives no machine what neither its old file nor its new one says", { timeout: fuzzTimeoutMs * 2 }, async () => {
  const pick = seededPick(fuzzSeed);
  const over = new AbortController();
  let allowed = await saidByFiles();
  let before = allowed;
  const counts = new Map<string, number>();
  const wrong: string[] = [];
  const asking = (async () => {
    for (let at = 0; !over.signal.aborted; at = (at + 1) % machineCount) {
      const said = [before[at], allowed[at], "503"];
      const answer = await bootOf(macOf(at));
      counts.set(answer, (counts.get(answer) ?? 0) + 1);
      if (![...said, before[at], allowed[at]].includes(answer)) wrong.push(`${macOf(at)}: ${answer}`);
    }
  })();
  const goesOn = fuzzSteps(usualRounds);
  let round = 0;
  for (; goesOn(round); round++) {
    const good = Array.from({ length: machineCount }, (_, at) => Buffer.from(groupOf(at)));
    const mutants = good.map((file) => (pick(3) === 0 ? file : mutate(file, pick, words, good)));
    // What the files say is known before davit can see them.
    for (const [at, mutant] of mutants.entries()) write(`node-${at}.yaml`, mutant);
    const said = await saidByFiles();
    // While the new version is refused, an old one may count.
    before = before.map((old, at) => allowed[at] ?? old);
    allowed = said;
    write("mark.yaml", markOf(round + 1));
    await expect.poll(() => bootOf(markMac), patience).toBe(`round-${round + 1}`);
  }
  over.abort();
  await asking;
  const seen = [...counts].map(([answer, count]) => `${count} x ${answer}`).join(", ");
  process.stdout.write(`fuzz manifests: seed ${fuzzSeed}, ${round} rounds of ${machineCount} files; ${seen}\n`);
  expect(wrong).toEqual([]);
});

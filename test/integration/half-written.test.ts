/** Files that are written in place, with pauses, while their machines ask: a process, a directory, and a slow writer. */

import { mkdir, mkdtemp, open, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const mac = "52:54:00:a1:9c:ae";
const head = (kind: string, name: string) =>
  `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec:\n`;

const installer = `${head("Profile", "installer")}  effect: Install\n  boot: {kernel: /k, args: [wipe-and-install]}\n`;
const disk = `${head("Profile", "disk")}  effect: Boot\n  boot: {local: exit}\n`;
const everybody = `${head("Group", "everybody")}  profileRef: {name: installer}\n  matchAll: true\n`;
const held = `${head("Group", "node")}  profileRef: {name: installer}\n  selector: {matchLabels: {mac: "${mac}"}}\n`;
const rack = `${head("Group", "rack")}  profileRef: {name: installer}\n  selector:\n    matchLabels:\n      rack: r1\n`;

interface Rewriting {
  readonly name: string;
  /** What is in the file that is rewritten, to the same, in these pieces. */
  readonly pieces: readonly string[];
  /** What the file has before, if not the same. */
  readonly before?: string;
  readonly others?: readonly string[];
  /** What the machine sends beside its MAC address. */
  readonly query?: string;
}

const rewritings: readonly Rewriting[] = [
  { name: "a Group whose last line is hold", pieces: [held, "  hold: true\n"], others: [installer] },
  {
    name: "a Group whose last line narrows its selector",
    pieces: [rack, "      slot: s1\n"],
    others: [installer],
    query: "&rack=r1&slot=s2",
  },
  {
    name: "a Group that follows another one, before a catch-all",
    pieces: [rack, `---\n${held.replace("installer", "disk")}`],
    others: [installer, disk, everybody],
  },
  {
    name: "a new Group that is held at its end",
    before: disk,
    pieces: [disk, `---\n${held}`, "  hold: true\n"],
    others: [installer],
  },
  {
    name: "a Profile whose last line boots from disk",
    pieces: [`${head("Profile", "p")}  boot:\n`, "    local: exit\n"],
    others: [held.replace("installer", "p"), `---\n${installer}`],
  },
];

describe.each([250, 1_500])("a file that is rewritten in place with pauses of %i ms", (pauseMs) => {
  let folder: string;
  let manifests: string;
  let davit: DavitProcess | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-half-"));
    manifests = join(folder, "manifests");
    await mkdir(manifests);
  });

  afterEach(async () => {
    await davit?.stop();
    await rm(folder, { recursive: true });
  });

  it.each(rewritings)(
    "gives no machine an install: $name",
    async ({ pieces, before: first, others = [], query = "" }) => {
      const path = join(manifests, "node.yaml");
      await writeFile(join(manifests, "others.yaml"), others.join("---\n"));
      await writeFile(path, first ?? pieces.join(""));
      for (const file of ["others.yaml", "node.yaml"]) await utimes(join(manifests, file), 1e9, 1e9);
      davit = await startDavit({ manifests, dataDir: join(folder, "data") });
      const url = `${davit.bootUrl}/ipxe?mac=${mac}${query}`;
      const before = await answer(url);
      expect(before).not.toContain("wipe-and-install");
      const given = new Set<string>();
      let isWritten = false;
      const written = writeSlowly(path, pieces, pauseMs)
        .then(() => pause(3_000))
        .then(() => {
          isWritten = true;
        });
      while (!isWritten) {
        given.add(await answer(url));
        await pause(5);
      }
      await written;
      expect([...given].filter((each) => each !== before && !each.startsWith("503"))).toEqual([]);
      expect(await answer(url)).toMatch(first === undefined ? before : /^503 /);
    },
  );
});

async function answer(url: string): Promise<string> {
  const response = await fetch(url);
  return `${response.status} ${await response.text()}`;
}

async function writeSlowly(path: string, pieces: readonly string[], pauseMs: number): Promise<void> {
  const file = await open(path, "w");
  for (const piece of pieces) {
    await file.write(piece);
    await file.sync();
    await pause(pauseMs);
  }
  await file.close();
}

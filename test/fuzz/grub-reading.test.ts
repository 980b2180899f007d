/**
 * Gives a real GRUB what davit would sign of 100,000 random templates and queries: it must neither run nor assign what
 * only the request names. GRUB complains about each command that it cannot find, and lists its variables at the end.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { isDataToGrub } from "../../src/trust/sign/grub-reading.ts";
import { grubAttacks, judged } from "../helpers/grub-attacks.ts";
import { missing } from "../helpers/requirements.ts";

const folder = mkdtempSync(join(tmpdir(), "davit-grub-"));
afterAll(() => rmSync(folder, { recursive: true }));

const attackCount = 100_000;
const seed = Number(process.env.DAVIT_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Has GRUB read scripts, one after the other, until it has read all or one of them ends it. */
function read(texts: readonly string[]): { readonly screen: string; readonly count: number } {
  const lines = texts.map((text, at) => {
    writeFileSync(join(folder, String(at)), text);
    return `echo @${at}\nsource (host)${join(folder, String(at))}\n`;
  });
  writeFileSync(join(folder, "grub.cfg"), `${lines.join("")}echo @all\nset\nexit\n`);
  const { stdout } = spawnSync("grub-emu", ["-d", folder], { input: "", timeout: 30_000, killSignal: "SIGKILL" });
  const screen = stdout.toString("latin1").replaceAll("\r", "");
  const last = [...screen.matchAll(/^@(\d+)$/gm)].at(-1)?.[1];
  return { screen, count: screen.includes("@all") ? texts.length : Number(last ?? 0) + 1 };
}

it.skipIf(missing("grub-emu"))(`no GRUB runs what the request says (DAVIT_SEED=${seed})`, { timeout: 600_000 }, () => {
  const all = [...grubAttacks(seed, attackCount)];
  const signed = all.filter(({ text, ofRequest }) => isDataToGrub(text, ofRequest)).map(({ text }) => text);
  expect(signed.length).toBeGreaterThan(attackCount / 10);
  for (let from = 0; from < signed.length; ) {
    const { screen, count } = read(signed.slice(from, from + 2_000));
    expect(judged(screen)).toEqual([]);
    from += count;
  }
  // What is not signed runs a lot: the judge is awake.
  const others = all.filter(({ text, ofRequest }) => !isDataToGrub(text, ofRequest)).map(({ text }) => text);
  expect(judged(read(others.slice(0, 500)).screen).length).toBeGreaterThan(50);
});

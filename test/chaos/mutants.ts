/**
 * Checks that the attack finds violations: `node test/chaos/mutants.ts --seeds 6 --minutes 3`. For each of some rules,
 * it attacks a copy of davit that lacks the rule. The attack must find a violation in each copy.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

interface Mutant {
  readonly rule: string;
  /** Each text occurs once in its file. */
  readonly changes: readonly { readonly file: string; readonly from: string; readonly to: string }[];
}

const mutants: readonly Mutant[] = [
  {
    rule: "no grant counts before an older change",
    changes: [
      {
        file: "src/sources/directory/holdings.ts",
        from: "this.#isChanging = !look.isAtRest;",
        to: "this.#isChanging = false;",
      },
      {
        file: "src/sources/directory/known-files.ts",
        from: "const isWhole = rested.length === open.length && !this.isReading && !this.#isChanging();",
        to: "const isWhole = true;",
      },
    ],
  },
  {
    rule: "a config is of the revision and the Group that were claimed",
    changes: [
      {
        file: "src/model/permits/permit.ts",
        from: "return entry.profile === profile && (entry.revision === undefined || entry.revision === revision);",
        to: "return entry.profile !== undefined || profile === revision;",
      },
      {
        file: "src/model/permits/permit.ts",
        from: "if (ask.group === entry.group || isStillGranted(ask, entry, ledger.id)) return true;",
        to: "if (ask.group !== '' || isStillGranted(ask, entry, ledger.id)) return true;",
      },
    ],
  },
];

const root = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: { seeds: { type: "string", default: "6" }, minutes: { type: "string", default: "3" } },
});

let survivors = 0;
for (const mutant of mutants) {
  const lines = await attacked(mutant);
  const found = lines.filter((line) => line.startsWith("seed "));
  console.log(`without "${mutant.rule}": ${lines.at(-1) ?? "no answer"}`);
  for (const line of found.slice(0, 2)) console.log(`  ${line.slice(0, 300)}`);
  if (!/: [1-9]\d* violations/.test(lines.at(-1) ?? "")) survivors++;
}
console.log(`${mutants.length} mutants: ${survivors} not found`);
process.exitCode = survivors === 0 ? 0 : 1;

/** Attacks a copy with these changes. Returns the lines that the attack wrote. */
async function attacked({ changes }: Mutant): Promise<readonly string[]> {
  const copy = await mkdtemp(join(tmpdir(), "davit-mutant-"));
  try {
    for (const name of ["console", "crds", "package.json", "packages", "src", "test", "tools"]) {
      await cp(join(root, name), join(copy, name), { recursive: true });
    }
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    for (const { file, from, to } of changes) await change(join(copy, file), from, to);
    const args = ["--place", "files", "--seeds", values.seeds, "--minutes", values.minutes];
    const attack = spawn(process.execPath, [join(copy, "test/chaos/attack.ts"), ...args], {
      env: { ...process.env, DAVIT_TEST_PROGRAM: "" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    attack.stdout.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    await once(attack, "close");
    return text.trimEnd().split("\n");
  } finally {
    await rm(copy, { recursive: true });
  }
}

/** @throws {Error} unless the file has the text exactly once: then correct the mutant. */
async function change(path: string, from: string, to: string): Promise<void> {
  const text = await readFile(path, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${path} does not have once: ${from}`);
  await writeFile(path, text.replace(from, to));
}

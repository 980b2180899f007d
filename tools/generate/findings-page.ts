/** docs/reference/findings.md, made of the catalogue. `npm run findings` writes it; with `--check` it is only compared. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findingSections } from "../../src/model/findings.ts";

const path = join(import.meta.dirname, "../../docs/reference/findings.md");

const head = `# Findings

What can be wrong with Profiles, Groups and Machines, and with what they name. \`davit lint\`
([lint.md](../use/lint.md)) ends each of its lines with one of these codes; logs, conditions and \`/readyz?verbose\`
report the same mistakes in the same words. An **error** keeps machines from getting what is written, a **warning** is
probably unintended, and an **advice** may be intended.

This page is made by \`npm run findings\` of \`src/model/findings.ts\`.
`;

const sections = Object.entries(findingSections).map(([title, rules]) => {
  const rows = Object.entries(rules).map(
    ([code, { severity, means, cure }]) => `| \`${code}\` | ${severity} | ${means} | ${cure} |`,
  );
  return [`## ${title}`, "", "| code | severity | what it means | what to do |", "|---|---|---|---|", ...rows, ""];
});
const page = [head, ...sections.flat()].join("\n");

if (!process.argv.includes("--check")) {
  await writeFile(path, page);
} else if ((await readFile(path, "utf8").catch(() => "")) !== page) {
  process.stderr.write("docs/reference/findings.md is not what it would be made to now: npm run findings\n");
  process.exitCode = 1;
}

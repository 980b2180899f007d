/** docs/reference/findings.md, made of the catalogue. `npm run findings` writes it; with `--check` it is only compared. */

import { findingSections } from "../../src/model/objects/findings.ts";
import { generate } from "./generated-file.ts";

const head = `# Findings

\`davit lint\` ([lint.md](../use/lint.md)) ends each of its lines with one of these codes; logs, conditions and
\`/readyz?verbose\` report the same mistakes in the same words. An **error** keeps machines from getting what is written, a
**warning** is probably unintended, and an **advice** may be intended.

\`npm run findings\` makes this page.
`;

const sections = Object.entries(findingSections).map(([title, rules]) => {
  const rows = Object.entries(rules).map(
    ([code, { severity, means, cure }]) => `| \`${code}\` | ${severity} | ${means} | ${cure} |`,
  );
  return [`## ${title}`, "", "| code | severity | what it means | what to do |", "|---|---|---|---|", ...rows, ""];
});
const page = [head, ...sections.flat()].join("\n");

await generate("docs/reference/findings.md", page, "npm run findings");

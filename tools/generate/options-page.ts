/** docs/reference/options.md, made of the option tables. `npm run options` writes it; with `--check` it is only compared. */

import { machineOptions } from "../../src/commands/machine/options.ts";
import { byHeading, type Option, rowsOf } from "../../src/options/parsing.ts";
import { bootOptions, serveOptions } from "../../src/options/table.ts";
import { generate } from "./generated-file.ts";

const head = `# Options

Every option of \`davit serve\`, \`davit boot\` and \`davit machine\`; \`davit history\` and \`davit preview\` have some of the
last ones. [operations.md](../operate/operations.md) and [machines.md](../operate/machines.md) have the reasons.

Every option of \`davit serve\` and \`davit boot\` can also be set by an environment variable, such as \`DAVIT_BOOT_ADDRESS\`
for \`--boot-address\`. In a variable, commas separate the values of a list, as in
\`DAVIT_LIMIT=source-grace=30s,assets-cache-bytes=0\`. A flag overrides the variable. Of
\`davit machine\`, only \`--ops-url\`, \`--ops-token-file\`, \`--kubeconfig\` and \`--context\` have variables.

\`npm run options\` generates this page.
`;

function rowOf({ flag, value, preset, repeatable, help }: Option<unknown>): string {
  const option = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  const times = repeatable === true ? "; repeatable" : "";
  const given = value === undefined || preset === undefined ? "" : `\`${preset}\``;
  return `| \`${option}\` | ${given} | ${help}${times} |`.replaceAll(/(?<=\S)\|(?=\S)/g, "\\|");
}

/** Returns the flag of an option, and the name of a limit. */
function shortNameOf({ flag, value = "" }: Option<unknown>): string {
  return value.includes("=") ? `--${flag} ${value.split("=", 1)}` : `--${flag}`;
}

const tables = Object.entries({
  "davit serve": serveOptions,
  "davit boot": bootOptions,
  "davit machine": machineOptions,
});
const written = new Set<string>();
const sections = tables.map(([title, table]) => {
  const rows = rowsOf(table).map((option) => ({ option, row: rowOf(option) }));
  const { known = [], own = [] } = Object.groupBy(rows, ({ row }) => (written.has(row) ? "known" : "own"));
  for (const { row } of own) written.add(row);
  const flags = known.map(({ option }) => `\`${shortNameOf(option)}\``).join(", ");
  const also = known.length === 0 ? [] : [`These options are as above: ${flags}.`, ""];
  return [
    `## ${title}`,
    "",
    ...also,
    ...byHeading(own.map(({ option }) => option)).flatMap(([heading, options]) => [
      ...(heading === "" ? [] : [`### ${heading}`, ""]),
      "| option | default | meaning |",
      "|---|---|---|",
      ...options.map(rowOf),
      "",
    ]),
  ];
});
const page = [head, ...sections.flat()].join("\n");

await generate("docs/reference/options.md", page, "npm run options");

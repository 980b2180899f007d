/** docs/reference/options.md, made of the option tables. `npm run options` writes it; with `--check` it is only compared. */

import { machineOptions } from "../../src/commands/machine/options.ts";
import { bootOptions, serveOptions } from "../../src/options/table.ts";
import { generate } from "./generated-file.ts";

const head = `# Options

Every option of \`davit serve\`, \`davit boot\` and \`davit machine\`. \`davit history\` and \`davit preview\` have some of the
last ones. [operations.md](../operate/operations.md) and
[machines.md](../operate/machines.md) have the reasons.

Every option of \`davit serve\` and \`davit boot\` can also be set by an environment variable, such as \`DAVIT_BOOT_ADDRESS\` for
\`--boot-address\`. In a variable, commas separate the values of a list. A flag overrides the variable. Of \`davit machine\`,
only \`--operations-url\`, \`--operations-token-file\`, \`--kubeconfig\` and \`--context\` have variables.

\`npm run options\` generates this page from \`src/options/table.ts\` and \`src/commands/machine/options.ts\`.
`;

interface Row {
  readonly flag: string;
  readonly value?: string;
  readonly preset?: string;
  readonly repeatable?: true;
  readonly help: string;
}

function rowOf({ flag, value, preset, repeatable, help }: Row): string {
  const option = value === undefined ? `--${flag}` : `--${flag} ${value}`;
  const times = repeatable === true ? "; repeatable" : "";
  const given = value === undefined || preset === undefined ? "" : `\`${preset}\``;
  return `| \`${option}\` | ${given} | ${help}${times} |`.replaceAll(/(?<=\w)\|(?=\w)/g, "\\|");
}

const sections = Object.entries({
  "davit serve": serveOptions,
  "davit boot": bootOptions,
  "davit machine": machineOptions,
}).map(([title, table]) => {
  const rows = Object.values<Row>(table).map(rowOf);
  return [`## ${title}`, "", "| option | default | meaning |", "|---|---|---|", ...rows, ""];
});
const page = [head, ...sections.flat()].join("\n");

await generate("docs/reference/options.md", page, "npm run options");

/** /etc/davit/davit.env of the Debian package: every option of `davit serve` with its default, as a comment. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { byHeading, type OptionTable, optionText } from "../../src/options/parsing.ts";
import { serveOptions } from "../../src/options/table.ts";

interface Row {
  readonly flag: string;
  readonly heading?: string;
  readonly preset?: string;
  readonly repeatable?: true;
  readonly names?: OptionTable;
  readonly help: string;
}

const head = `# Options of davit.service, as environment variables: remove the "#" of those that you change, and run
# "systemctl restart davit". davit serve --help and man davit have the same list.
#
# The service serves the YAML files of /etc/davit/objects. To serve the objects of a cluster instead, set
# DAVIT_MANIFESTS to nothing, and DAVIT_KUBERNETES=true.
`;

// Files that the scripts of the package make.
const ofPackage = [["DAVIT_OPS_TOKEN_FILE", "/etc/davit/ops-token"]] as const;

/** Returns the text of the file. */
export function optionsFile(): string {
  const unit = readFileSync(join(import.meta.dirname, "debian/davit.service"), "utf8");
  const ofUnit = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value] as const);
  const known = new Map<string | undefined, string | undefined>([...ofPackage, ...ofUnit]);
  const rowOf = ({ flag, preset = "", repeatable, names = {}, help }: Row) => {
    const words = `${help}${repeatable === true ? "; commas separate several" : ""}`;
    const name = `DAVIT_${flag.toUpperCase().replaceAll("-", "_")}`;
    const named = Object.values(names).map((each) => wrapped(`${each.flag}=${each.value}: ${optionText(each)}`));
    return `\n${[wrapped(words), ...named].join("\n")}\n#${name}=${known.get(name) ?? preset}\n`;
  };
  const parts = byHeading(Object.values<Row>(serveOptions)).map(
    ([heading, rows]) => `\n### ${heading}\n${rows.map(rowOf).join("")}`,
  );
  return head + parts.join("");
}

/** Comment lines of at most 100 columns. */
function wrapped(words: string): string {
  return words.replaceAll(/(.{1,98})(?: |$)/g, "# $1\n").trimEnd();
}

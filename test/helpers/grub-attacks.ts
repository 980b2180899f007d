/** Random templates and queries of an attacker, rendered as davit does. */

import { hash } from "node:crypto";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { RequestReads } from "../../src/render/template/request-reads.ts";
import { compileTemplate } from "../../src/render/template/template.ts";
import { templateVariables } from "../../src/render/template/variables.ts";

/** A rendered text with the parts that come from the request. */
export interface TracedText {
  readonly text: string;
  readonly ofRequest: readonly number[];
}

/** Renders a template of an operator for a query. */
export function traced(template: string, rawQuery: string): TracedText {
  const sha256 = (text: string) => hash("sha256", text, "hex");
  const reads = new RequestReads();
  const group = {
    metadata: { zone: "a b", note: "it's", open: "{", close: "}", back: "\\" },
    selector: { role: "web" },
  };
  const labels = labelsFromQuery(rawQuery);
  const variables = templateVariables({ group, labels, rawQuery, davitUrl: "http://192.0.2.1" }, reads);
  return { text: compileTemplate(template, { sha256 }).render(variables, undefined, reads), ofRequest: reads.parts };
}

const printed = [
  "{{request.query.x}}",
  "{{request.query.x}}",
  '"{{request.query.x}}"',
  "'{{request.query.x}}'",
  "{{json request.query.x}}",
  "{{json request.query}}",
  "{{request.raw_query}}",
  "{{json request.raw_query}}",
  "{{lower request.query.x}}{{request.query.y}}",
  "{{#each request.query}}{{@key}} {{this}}\n{{/each}}",
  "{{#with request.query.x as |v|}}{{v}}{{/with}}",
];
const written = [
  ...[
    "\n",
    "\n",
    "\n",
    " ",
    " ",
    "\t",
    ";",
    "{{open}}",
    "{{close}}",
    "{ ",
    " }\n",
    "[",
    "]",
    "'",
    '"',
    "{{back}}",
    "\\\n",
    "\r\n",
    "$",
    "$x",
  ],
  ...[
    "$" + "{x}",
    "$?",
    '$"',
    "&",
    "|",
    "<",
    ">",
    "&&",
    "||",
    "#",
    "\n#",
    "# ",
    "=",
    ":",
    "a",
    "a: ",
    '"a": ',
    "a=",
    "x:y=z ",
  ],
  ...["set ", "eval ", "! ", "if true; then ", "if ", "; then\n", "; fi\n", "else\n", "while false; do ", "; done\n"],
  ...[
    "for i in ",
    "; do ",
    "function f { ",
    "function f\n{ ",
    "\nf\n",
    "f ",
    'menuentry "t" { ',
    "echo ",
    "true ",
    "false ",
  ],
  ...["\nREQUEST_A=", "\nMAC=", "{{note}}", "{{zone}}", ",\n", "[\n", "- ", '{"a":"b"}', "]\n", "''", '""'],
];
const said = [
  ...[
    "evil",
    "evil",
    "evil",
    "Evil",
    " ",
    ";",
    "\n",
    "\r",
    "'",
    '"',
    "\\",
    "$",
    "&",
    "&&",
    "|",
    "{",
    "}",
    "#",
    "=",
    "[",
    ":",
  ],
  ...[
    "\t",
    "`",
    "$(",
    "evil=1",
    "\nevil\n",
    "';evil;'",
    '";evil;"',
    " evil",
    "then",
    "fi",
    "do",
    "done",
    "!",
    "if ",
    "",
    "\0",
  ],
];

/** Numbers from a seed (mulberry32), from 0 up to a limit. */
function numbersFrom(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

/** Returns random attacks, the same for the same seed. */
export function* grubAttacks(seed: number, count: number): Generator<TracedText> {
  const upTo = numbersFrom(seed);
  const pick = (list: readonly string[]) => list[upTo(list.length)] ?? "";
  const several = (list: readonly string[], most: number) =>
    Array.from({ length: 1 + upTo(most) }, () => pick(list)).join("");
  for (let made = 0; made < count; made++) {
    const pieces = Array.from({ length: 1 + upTo(4) }, () => several(written, 4) + pick(printed));
    const template = pieces.join("") + several(written, 3);
    const [x, y] = [several(said, 5), several(said, 2)].map(encodeURIComponent);
    const rawQuery = `x=${x}&y=${y}${upTo(4) === 0 ? `&${pick(["evil", ";evil", "'evil", "$evil", "evil=1"])}` : ""}`;
    yield traced(template, rawQuery);
  }
}

/**
 * Returns what GRUB ran or assigned of the attacks, by its screen: `evil` is a name that only a request says. GRUB has
 * no command or variable with a colon or a brace in its name, and `/metadata` has the other two beginnings.
 */
export function judged(screen: string): readonly string[] {
  const end = screen.lastIndexOf("\n@all\n");
  const commands = [...screen.slice(0, end).matchAll(/can't find command `(.*?)'\./gs)].map(([, name = ""]) => name);
  const ran = commands.filter((name) => /evil/i.test(name) && !/^[^=]*:|^REQUEST_|^MAC=|^\{/.test(name));
  return [...ran, ...(screen.slice(end).match(/^\w*evil\w*=.*/gim) ?? [])];
}

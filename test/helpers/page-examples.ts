/** The examples of a page of docs/: code blocks of kind `console`, a command and what it prints. */

import { readFileSync } from "node:fs";

export interface Example {
  readonly command: string;
  readonly answer: string;
}

export function readPage(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");
}

/** The page's code blocks of one kind. */
export function blocksOf(page: string, kind: string): readonly string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${kind}\n([^]*?)\n?\`\`\`$`, "gm"))].map(([, text = ""]) => text);
}

export function examplesOf(page: string): readonly Example[] {
  return blocksOf(page, "console").map((text) => {
    const [line = "", ...answer] = text.split("\n");
    return { command: line, answer: answer.join("\n") };
  });
}

/** What a `curl` of a page asks for. */
export interface CurlCommand {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The form of all `-d`. */
  readonly body: string | undefined;
  /** `-i` and `-I` show the head of the answer. */
  readonly showsHead: boolean;
  /** `-N` shows what comes when it comes. */
  readonly isStream: boolean;
  /** `&` goes on while the next example is run. */
  readonly isBackground: boolean;
}

const formType = "application/x-www-form-urlencoded";

/** @throws {Error} for what is no `curl` line, or has an option that no page needs. */
export function parseCurl(command: string): CurlCommand {
  const [, line, background] = /^\$ curl (.*?)( &)?$/.exec(command) ?? [];
  if (line === undefined) throw new Error(`Not a curl line: ${command}`);
  const { values, target } = readWords(line);
  const form = values("-d");
  const flags = values("-").join("");
  const method = flags.includes("I") ? "HEAD" : form.length === 0 ? "GET" : "POST";
  const lines = [...values("-H"), ...values("-u").map((pair) => `Authorization: Basic ${btoa(pair)}`)];
  return {
    url: new URL(target),
    method: values("-X")[0] ?? method,
    headers: {
      ...(form.length > 0 && { "Content-Type": formType }),
      ...Object.fromEntries(lines.map((header) => [header.replace(/:.*/, ""), header.replace(/^[^:]*: */, "")])),
    },
    body: form.length === 0 ? undefined : form.join("&"),
    showsHead: /i/i.test(flags),
    isStream: flags.includes("N"),
    isBackground: background !== undefined,
  };
}

/** Options that stand alone are the values of `-`. */
function readWords(line: string): { values: (option: string) => readonly string[]; target: string } {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain = ""]) => quoted ?? plain);
  const given: { option: string; value: string }[] = [];
  let target = "";
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (/^-[XdHu]$/.test(word)) given.push({ option: word, value: words.shift() ?? "" });
    else if (/^-[iIN]+$/.test(word)) given.push({ option: "-", value: word.slice(1) });
    else if (target === "") target = word;
    else throw new Error(`More than one target: ${line}`);
  }
  return { values: (option) => given.filter((each) => each.option === option).map(({ value }) => value), target };
}

/**
 * Makes HTML from templates. Every inserted text is escaped, and characters that change the direction of text or are
 * invisible are spelled out: a machine can send anything. Only the result of another template is inserted as it is.
 */

import { visible } from "../../../lib/text/visible.ts";

/** Finished HTML. Only `html` makes it. */
export class Html {
  readonly #text: string;

  constructor(strings: readonly string[], values: readonly HtmlValue[]) {
    this.#text = strings.map((part, at) => part + htmlOf(values[at])).join("");
  }

  toString(): string {
    return this.#text;
  }
}

/** What a template takes. Nothing is inserted for false and undefined; lists are joined. */
export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[];

/** Makes HTML: html`<p>${text}</p>`. Attribute values must be in double quotes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return new Html(strings, values);
}

/** Inserts a text of several lines, whose tabs and line ends stay. */
export function lines(text: string): Html {
  return html`${text.split("\n").map((line, at) => [at === 0 ? "" : newline, line.split("\t").map(tabbed)])}`;
}

/** Inserts a text that a browser may break after each slash. */
export function breakable(text: string | undefined): HtmlValue {
  return text?.split("/").map((part, at) => (at === 0 ? part : [html`/<wbr>`, part]));
}

function tabbed(part: string, at: number): HtmlValue {
  return at === 0 ? part : [tab, part];
}

const newline = html`
`;
const tab = html`	`;

function htmlOf(value: HtmlValue): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string") return escaped(value);
  if (Array.isArray(value)) return value.map(htmlOf).join("");
  return String(value);
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return visible(text).replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}

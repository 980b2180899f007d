/** Splits long lists into pages of a hundred rows. */

import { type HtmlValue, html } from "./html.ts";

const pageRows = 100;

/** One page of a list. */
export interface ListPage<Item> {
  /** From 1. */
  readonly number: number;
  readonly pages: number;
  readonly items: readonly Item[];
}

/** Returns the page that a query asks for; the nearest one if there is no such page. */
export function pageIn<Item>(query: URLSearchParams, all: readonly Item[]): ListPage<Item> {
  const pages = Math.max(1, Math.ceil(all.length / pageRows));
  const number = Math.min(pages, Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1));
  return { number, pages, items: all.slice((number - 1) * pageRows, number * pageRows) };
}

/** Returns links to the pages before and after; nothing for a single page. */
export function pageLinks({ number, pages }: ListPage<unknown>, hrefOf: (page: number) => string): HtmlValue {
  if (pages === 1) return undefined;
  const link = (to: number, name: string) => html`<a href="${hrefOf(to)}">${name}</a> `;
  const earlier = number > 1 && link(number - 1, "Previous");
  const later = number < pages && link(number + 1, "Next");
  return html`<nav aria-label="Pages" class="pages">${earlier}page ${number} of ${pages} ${later}</nav>`;
}

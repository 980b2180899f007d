/** Links between the pages of the repository lead somewhere: to a file that is there, and to a heading that it has. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => join(root, "docs", name));
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  "charts/davit/README.md",
  "bench/README.md",
  "bench/faults.md",
]
  .map((name) => join(root, name))
  .concat(docs);

it.each(pages.map((page) => [relative(root, page), page]))("every link of %s leads somewhere", (_name, page) => {
  expect(linksOf(page).filter((link) => !leadsSomewhere(page, link))).toEqual([]);
});

it("a heading that is not there is found out", () => {
  expect(leadsSomewhere(join(root, "docs/operate/install.md"), "upgrade.md#backup")).toBe(true);
  expect(leadsSomewhere(join(root, "docs/operate/install.md"), "upgrade.md#no-such-heading")).toBe(false);
  expect(leadsSomewhere(join(root, "docs/operate/install.md"), "no-such-page.md")).toBe(false);
});

/** The targets within the repository. */
function linksOf(page: string): readonly string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return links.filter((target) => !/^[a-z]+:/.test(target));
}

function leadsSomewhere(page: string, link: string): boolean {
  const [path = "", heading] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  return existsSync(target) && (heading === undefined || anchorsOf(target).includes(heading));
}

/** As GitHub names headings: lower case, words joined by hyphens, without other signs. */
function anchorsOf(page: string): readonly string[] {
  return [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Without code blocks, in which `#` begins a comment. */
function proseOf(page: string): string {
  return readFileSync(page, "utf8").replace(/^```.*?^```$/gms, "");
}

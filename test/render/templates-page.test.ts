import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { isJsonObject } from "../../src/model/json.ts";
import { helperNames } from "../../src/render/template/template-helpers.ts";
import { parsed, render } from "./fixtures.ts";

const page = readFileSync(new URL("../../docs/use/templates.md", import.meta.url), "utf8");
const variables = parsed(/```json\n(.*?)```/s.exec(page)?.[1] ?? "");
const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$/gm)].map(
  ([, helper = "", example = "", output = ""]) => ({ helper, example, output }),
);

it("the page shows every helper", () => {
  expect([...new Set(rows.map(({ helper }) => helper))].toSorted()).toEqual(helperNames.toSorted());
});

it.each(rows)("the page's `$example` prints `$output`", ({ helper, example, output }) => {
  expect(example).toMatch(new RegExp(`[{(]${helper} `));
  expect(render(example, isJsonObject(variables) ? variables : {})).toBe(output);
});

/** The house rules that no linter knows. Each ban names what to use instead. */

import { readdirSync, readFileSync } from "node:fs";
import { matchesGlob } from "node:path";
import { describe, expect, it } from "vitest";
import { moved, projects } from "./helpers/projects.ts";

const root = new URL("..", import.meta.url);

interface Ban {
  readonly name: string;
  readonly pattern: RegExp;
  /** Files that are the replacement. */
  readonly except?: RegExp;
  readonly instead: string;
}

const bans: readonly Ban[] = [
  { name: "Date.now", pattern: /\bDate\.now\(/, except: /^src\/lib\/clock\.ts$/, instead: "Clock.nowMs" },
  { name: "new Date", pattern: /\bnew Date\(/, except: /^src\/lib\/clock\.ts$/, instead: "toRfc3339 of lib/clock.ts" },
  {
    name: "setTimeout",
    pattern: /(?<!socket\??\.)\bset(Timeout|Interval)\(/,
    except: /^src\/lib\/clock\.ts$/,
    instead: "Clock.sleep",
  },
  {
    name: "performance.now",
    pattern: /\bperformance\./,
    except: /^src\/lib\/clock\.ts$/,
    instead: "Clock.monotonicMs",
  },
  { name: "process", pattern: /\bprocess\.(?!\w+\/)/, except: /^src\/main\.ts$/, instead: "Host, or an option" },
  { name: "console", pattern: /\bconsole\.(?!(ts|css|js)\b)/, instead: "Log" },
  { name: "Math.random", pattern: /\bMath\.random\b/, instead: "an injected source of randomness" },
  { name: "any", pattern: /\bas any\b|:\s*any\b|<any>/, instead: "unknown, parsed at the border" },
  {
    name: "switched-off checks",
    pattern: /@ts-(ignore|expect-error|nocheck)|biome-ignore/,
    instead: "mending the code",
  },
  { name: "default exports", pattern: /^export default\b/, instead: "a named export" },
  { name: "notes to oneself", pattern: /\b(TODO(?!\(#\d+\):)|FIXME|XXX|HACK)\b/, instead: "TODO(#12): with an issue" },
];

/** Constructions that take a second reading, and what to write instead. A space stands for any white space. */
const wordBans: readonly (readonly [words: string, instead: string])[] = [
  ["(need|have|know|see|take|find)s? (it|them|that|this|one) not", "do not need it"],
  ["(?<=[.:;] )(\\w+ed|[Kk]ept|[Hh]eld|[Ss]ent|[Mm]ade|[Ss]hown|[Gg]one) (is|are|was|were)", "the subject first"],
  ["[Hh]ardly|[Ss]carcely", "almost no, few, little, or probably not"],
  ["for want of", "without, or because it lacks"],
  ["lest|whom|shall|hence|hitherto|albeit|upon|heeds?", "so that, that, must, so, until now, although, on, obey"],
  ["(there|here|where)(of|in|by|from|upon|with|to)", "of it, in it, by this"],
  ["of which", "whose, or a sentence of its own"],
  ["be it|but for|save for", "whether, or except"],
  ["(is|are) to be", "must be, should be"],
  [", as \\w+( \\w+)? (do|does|did) not", "unlike, or a sentence of its own"],
  ["not (unreadable|unknown|uncertain|unlike|impossible|without)", "the plain word: no double negation"],
  ["is none,", "is invalid, or there is no"],
  ["tells?|told|telling|\\w*(Tell|Told|tell[A-Z]|told[A-Z])\\w*", "log, report, notify, record, distinguish"],
  ["[Ss]ome (\\d+|two|three|four|five|ten|twenty)", "about 10"],
];

const vagueNames = /(^|\/)(utils?|helpers?|common|misc|index)(\.ts|\/)/;

describe("every file of src/ and packages/", () => {
  const files = ["src", "packages"].flatMap(sourceFiles);

  it("there are some", () => {
    expect(files.length).toBeGreaterThan(20);
  });

  it.each(bans)("has no $name", ({ pattern, except, instead }) => {
    const found = files
      .filter((file) => except?.test(file) !== true)
      .flatMap((file) => linesOf(file).flatMap((line, at) => (pattern.test(code(line)) ? [`${file}:${at + 1}`] : [])));
    expect(found, `use ${instead}`).toEqual([]);
  });

  it("is named for what it holds", () => {
    expect(files.filter((file) => vagueNames.test(file))).toEqual([]);
  });

  it("declares no type that another one declares", () => {
    const declared = Map.groupBy(files.flatMap(typesIn), ({ name }) => name);
    const twice = [...declared].filter(([, places]) => places.length > 1);
    expect(twice.map(([name, places]) => `${name}: ${places.map(({ file }) => file).join(", ")}`)).toEqual([]);
  });

  it("names an error after its class", () => {
    const pattern = /class (\w+) extends \w+ \{\s+override readonly name = "(\w+)"/g;
    const named = files.flatMap((file) => [...linesOf(file).join("\n").matchAll(pattern)]);
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter(([, ofClass, name]) => name !== ofClass).map(([, ofClass]) => ofClass)).toEqual([]);
  });

  it("has lines of at most 120 columns, comments included", () => {
    const isLong = (line: string) => line.length > 120;
    expect(
      files.flatMap((file) => linesOf(file).flatMap((line, at) => (isLong(line) ? [`${file}:${at + 1}`] : []))),
    ).toEqual([]);
  });

  it("has at most 400 lines", () => {
    expect(files.filter((file) => linesOf(file).length > 400)).toEqual([]);
  });
});

describe("every room of src/", () => {
  const files = sourceFiles("src").filter((file) => file.startsWith("src/") && file.split("/").length > 2);
  const rooms = Map.groupBy(files, (file) => file.split("/")[1] ?? "");
  const budgets: Readonly<Record<string, number>> = JSON.parse(readFileSync(new URL("test/lines.json", root), "utf8"));

  it("has a budget of lines", () => {
    expect(Object.keys(budgets)).toEqual([...rooms.keys()].toSorted());
  });

  it.each(Object.entries(budgets))("%s has at most %i lines", (room, budget) => {
    const lines = (rooms.get(room) ?? []).map((file) => linesOf(file).length).reduce((sum, each) => sum + each, 0);
    expect(lines, "delete or merge something, or raise the budget in a commit of its own").toBeLessThanOrEqual(budget);
  });
});

describe("every sentence", () => {
  const files = ["src", "packages", "tools", "bench", "charts", "crds", "docs"].flatMap(proseFiles);

  it.each(wordBans)("is written without %s", (words, instead) => {
    const pattern = new RegExp(`\\b(?:${words.replaceAll(" ", "\\s+")})\\b`, "g");
    const found = [...files, "README.md", "CONTRIBUTING.md"].flatMap((file) => {
      const text = linesOf(file)
        .map((line) => line.replace(/^\s*(\/?\*+|\/\/|#|-) /, ""))
        .join("\n");
      return [...text.matchAll(pattern)].map(({ index }) => `${file}:${text.slice(0, index).split("\n").length}`);
    });
    expect(found, `write ${instead}`).toEqual([]);
  });
});

describe("every test", () => {
  const files = sourceFiles("test").filter((file) => file.endsWith(".test.ts"));

  it("runs: none is skipped, focused or left for later", () => {
    const pattern = /\b(it|test|describe)\.(skip|only|todo)\b/;
    const found = files.filter((file) => file !== "test/tidy.test.ts" && pattern.test(linesOf(file).join("\n")));
    expect(found, "use missing() of helpers/requirements.ts for a program that may be absent").toEqual([]);
  });

  it("belongs to exactly one of the runner's projects", () => {
    const matches = (file: string, globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob));
    const projectsOf = (file: string) =>
      projects.filter(({ include, exclude }) => matches(file, include) && !matches(file, exclude));
    const found = files.filter((file) => projectsOf(file).length !== 1);
    expect(found, "give its folder a project in helpers/projects.ts").toEqual([]);
    expect(moved.filter(({ file }) => !files.includes(`test/${file}`))).toEqual([]);
    const unit = files.filter((file) => file !== "test/tidy.test.ts" && projectsOf(file)[0]?.name === "unit");
    const needing = unit.filter((file) => /\bmissing\(/.test(linesOf(file).join("\n")));
    expect(needing, "a unit test needs no other program: move the file in helpers/projects.ts").toEqual([]);
  });

  it("asserts something", () => {
    const found = files.filter((file) => !/\bexpect\b|\bassert\b/.test(linesOf(file).join("\n")));
    expect(found).toEqual([]);
  });
});

/** A line without what stands in a comment: rules are about code. */
function code(line: string): string {
  return /^\s*(\*|\/\*|\/\/)/.test(line) && !/biome-ignore|@ts-|TODO|FIXME/.test(line) ? "" : line;
}

function typesIn(file: string): readonly { readonly name: string; readonly file: string }[] {
  const declarations = linesOf(file)
    .join("\n")
    .matchAll(/^(?:export )?(?:interface|type|class) (\w+)/gm);
  return [...declarations].map(([, name = ""]) => ({ name, file }));
}

/** Generated files have the generator's form. */
function sourceFiles(folder: string): readonly string[] {
  return readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith("_pb.ts"))
    .map((name) => `${folder}/${name}`);
}

/** Files with prose. */
function proseFiles(folder: string): readonly string[] {
  return readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|md|gotmpl|ya?ml|tpl|txt|sh)$/.test(name))
    .map((name) => `${folder}/${name}`);
}

function linesOf(file: string): readonly string[] {
  return readFileSync(new URL(file, root), "utf8").trimEnd().split("\n");
}

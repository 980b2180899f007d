import { rename, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import "./kept-parsers.ts";
import type { GroupSpec } from "../../../src/model/objects/group.ts";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { Holdings } from "../../../src/sources/directory/holdings.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { groupText, profileText, stream } from "./manifests.ts";
import { replaceFile, SourceUnderTest, StepClock, temporaryDirectory, writeFiles } from "./source-under-test.ts";

const disposals: (() => Promise<void>)[] = [];

afterEach(async () => {
  while (disposals.length > 0) await disposals.pop()?.();
});

/** A source that knows these files since long; what is written now is new to it. */
async function follow(files: Readonly<Record<string, string>>) {
  const root = await temporaryDirectory(disposals);
  await writeFiles(root, files);
  const tested = await SourceUnderTest.start({ directories: [root], aheadMs: 0 });
  disposals.push(() => tested.source.stop());
  return { root, tested };
}

const crds = await readCrds(packagedCrdsDirectory);
const admission = new Admission(crds);
const read = (text: string | Uint8Array) => readFileBytes("a.yaml", Buffer.from(text), admission);

/** Shows one version of a file that is at rest, then others of it that may be half written. */
function showing(whole: string, ...half: readonly (string | Uint8Array)[]): Holdings {
  const holdings = new Holdings();
  const settled = read(whole);
  holdings.take({ files: [settled], problems: [], isAtRest: true });
  for (const text of half) {
    const files = [{ ...read(text), before: settled.definitions }];
    holdings.take({ files, problems: [], isAtRest: false });
  }
  return holdings;
}

const specOf = (holdings: Holdings, name = "a"): GroupSpec | undefined => holdings.get("Group", "default", name)?.spec;

const web = "  selector: {matchLabels: {role: web}}";
const macs = (...values: readonly string[]) =>
  `  selector: {matchExpressions: [{key: mac, operator: In, values: [${values.map((each) => `"${each}"`).join(", ")}]}]}`;
const [first, second] = ["52:54:00:00:00:01", "52:54:00:00:00:02"];

describe("of a Group in a file that may be half written counts at once", () => {
  it.each([
    { name: "a hold", whole: web, half: `${web}\n  hold: true` },
    { name: "a hold, and nothing else of it", whole: web, half: "  matchAll: true\n  hold: true" },
    { name: "one more label, as a hold", whole: web, half: "  selector: {matchLabels: {role: web, slot: a}}" },
    { name: "another value, as a hold", whole: web, half: "  selector: {matchLabels: {role: db}}" },
    { name: "one value less, as a hold", whole: macs(first, second), half: macs(first) },
    { name: "that it takes not everybody any more, as a hold", whole: "  matchAll: true", half: web },
  ])("$name", ({ whole, half }) => {
    const before = specOf(showing(groupText("a", whole)));
    expect(specOf(showing(groupText("a", whole), groupText("a", half)))).toEqual({ ...before, hold: true });
  });

  it("a new Group that is held", () => {
    const holdings = showing(groupText("a"), stream(groupText("a"), groupText("b", `${web}\n  hold: true`)));
    expect(specOf(holdings, "b")).toMatchObject({ hold: true, selector: { role: "web" } });
  });

  it("no release of what was held at once a moment ago", () => {
    const holdings = showing(groupText("a", web), groupText("a", `${web}\n  hold: true`), groupText("a", web));
    expect(specOf(holdings)?.hold).toBe(true);
  });
});

describe("in a file that may be half written waits", () => {
  const held = `${web}\n  hold: true`;
  it.each([
    { name: "a release", whole: held, half: web },
    { name: "a wider selector", whole: "  selector: {matchLabels: {role: web, slot: a}}", half: web },
    { name: "one value more", whole: macs(first), half: macs(first, second) },
    { name: "everybody", whole: web, half: "  matchAll: true" },
    { name: "a priority", whole: web, half: `${web}\n  priority: 5` },
    { name: "metadata", whole: web, half: `${web}\n  metadata: {disk: /dev/sda}` },
    { name: "another Profile", whole: web, half: web, profile: "installer" },
  ])("$name", ({ whole, half, profile = "web" }) => {
    const text = groupText("a", half).replace("{name: web}", `{name: ${profile}}`);
    expect(specOf(showing(groupText("a", whole), text))).toEqual(specOf(showing(groupText("a", whole))));
  });

  it("a new Group, Profile, ConfigMap and Secret", () => {
    const core = (kind: string) => `apiVersion: v1\nkind: ${kind}\nmetadata: {name: new}\n`;
    const added = stream(groupText("new"), profileText("new"), core("ConfigMap"), core("Secret"));
    const holdings = showing(groupText("a"), stream(groupText("a"), added));
    for (const kind of ["Profile", "Group", "ConfigMap", "Secret"] as const) {
      expect([...holdings.all(kind)].filter(({ name }) => name === "new")).toEqual([]);
    }
  });

  it("what another file says of an object that is not in it any more", () => {
    const holdings = new Holdings();
    const [a, b] = [read(groupText("a", held)), read(groupText("a", web))];
    holdings.take({ files: [a], problems: [], isAtRest: true });
    holdings.take({ files: [a, b], problems: [], isAtRest: true });
    holdings.take({ files: [{ ...read("# rewritten\n"), before: a.definitions }, b], problems: [], isAtRest: false });
    expect(specOf(holdings)?.hold).toBe(true);
  });
});

describe("whatever is cut off a file", () => {
  const installer = profileText("p", "  effect: Install\n  boot: {kernel: /k, args: [wipe]}");
  const texts = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: texts}\ndata:\n  a: |\n    one\n    two\n  b: "3"\n';
  const rich = `  selector:\n    matchLabels:\n      role: web\n      slot: a\n    matchExpressions:\n    - key: mac\n      operator: In\n      values:\n      - "${first}"\n      - "${second}"\n`;
  const versions = [
    stream(groupText("a", `${rich}  priority: 7\n  hold: true`), installer, texts),
    stream(installer, groupText("b", web), groupText("a", `${rich}  metadata: {a: 1}`)),
    stream(profileText("p", "  boot:\n    local: exit"), texts, groupText("a", "  matchAll: true")),
  ];

  it("what counts at once releases no machine and gives none anything else", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...versions),
        fc.array(fc.tuple(fc.constantFrom(...versions), fc.nat()), { minLength: 1, maxLength: 3 }),
        (whole, cuts) => {
          const before = showing(whole);
          const half = cuts.map(([text, at]) => Buffer.from(text).subarray(0, at % (text.length + 1)));
          expectNoRelease(before, showing(whole, ...half));
        },
      ),
      { numRuns: 150 },
    );
  });

  it.each(versions.map((text, number) => ({ number, text })))(
    "at every byte of version $number",
    ({ text }) => {
      const before = showing(text);
      const bytes = Buffer.from(text);
      for (let at = 0; at <= bytes.length; at++) expectNoRelease(before, showing(text, bytes.subarray(0, at)));
    },
    60_000,
  );

  function expectNoRelease(before: Holdings, after: Holdings): void {
    for (const kind of ["Profile", "ConfigMap", "Secret"] as const) {
      expect([...after.all(kind)]).toEqual([...before.all(kind)]);
    }
    for (const { name, spec, refusal } of after.all("Group")) {
      const known = specOf(before, name);
      // A Group that is refused or held answers nobody.
      if (known === undefined) expect(spec.hold || refusal !== undefined).toBe(true);
      else expect({ ...spec, hold: true }).toEqual({ ...known, hold: true });
      expect(spec.hold || known?.hold !== true).toBe(true);
    }
    for (const { name } of before.all("Group")) expect(specOf(after, name)).toBeDefined();
  }
});

describe("a directory source", () => {
  it("holds at once, and takes everything else of a file once it is at rest", async () => {
    const { root, tested } = await follow({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const text = stream(groupText("a", `${web}\n  hold: true\n  priority: 5`), groupText("new"));
    await writeFile(join(root, "a.yaml"), text);
    await tested.lookUntil(() => tested.group("a")?.spec.hold === true);
    expect(tested.group("a")?.spec).toMatchObject({ hold: true, priority: 0, selector: { role: "a" } });
    expect(tested.group("new")).toBeUndefined();
    expect(tested.source.view.complete).toBe(true);
    await tested.lookUntil(() => tested.group("new") !== undefined);
    expect(tested.group("a")?.spec).toMatchObject({ hold: true, priority: 5, selector: { role: "web" } });
  });

  it("takes a finished file that is moved in at once", async () => {
    const { root, tested } = await follow({ "a.yaml": groupText("a") });
    await writeFiles(root, { ".a": groupText("a", "  matchAll: true") });
    await utimes(join(root, ".a"), 1, 1);
    await rename(join(root, ".a"), join(root, "a.yaml"));
    await tested.look(2);
    expect(tested.group("a")?.spec.matchAll).toBe(true);
  });

  it("waits with its first list until what was written a moment ago is at rest", async () => {
    const root = await temporaryDirectory(disposals);
    await writeFile(join(root, "a.yaml"), groupText("a"));
    const tested = await SourceUnderTest.start({ directories: [root], aheadMs: 0 });
    disposals.push(() => tested.source.stop());
    expect([tested.listedCount, tested.clock.monotonicMs()]).toEqual([1, 2_000]);
    expect(tested.source.view.complete).toBe(true);
  });

  it("does not wait for a file that never rests: it is not whole then", async () => {
    const root = await temporaryDirectory(disposals);
    const path = join(root, "a.yaml");
    await writeFiles(root, { "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    // Its time passes faster than that of the files, which shall not seem to be old.
    const clock = new StepClock(-3_600_000);
    const starting = SourceUnderTest.start({ directories: [root], clock });
    await clock.someoneSleeps();
    clock.step();
    const tested = await starting;
    disposals.push(() => tested.source.stop());
    for (let write = 0; tested.listedCount === 0; write++) {
      await writeFile(path, stream(groupText("a"), `# ${"x".repeat(write)}\n`));
      await clock.someoneSleeps();
      clock.step();
    }
    expect(clock.monotonicMs()).toBeGreaterThan(15_000);
    expect([tested.names("Group"), tested.source.view.complete]).toEqual([["default/b"], false]);
  });

  it("tells of a file that lacks an object, once", async () => {
    const { root, tested } = await follow({ "a.yaml": stream(groupText("a"), groupText("b")) });
    await writeFile(join(root, "a.yaml"), groupText("a", "  selector: {matchLabels: {role: other}}"));
    await tested.lookUntil(() => tested.group("a")?.spec.selector.role === "other");
    expect(tested.told("file counts 10 s after its last change")).toMatchObject([{ path: "a.yaml" }]);
    expect(tested.group("b")).toBeUndefined();
  });

  it("is changing from the first sight of a change until all of it is taken in", async () => {
    const { root, tested } = await follow({ "a.yaml": groupText("a"), "b.yaml": groupText("b") });
    const { view } = tested.source;
    expect(view.isChanging).toBe(false);
    await writeFile(join(root, "a.yaml"), groupText("a", `${web}\n  priority: 5`));
    await tested.look();
    expect([view.isChanging, tested.group("a")?.spec.priority]).toEqual([true, 0]);
    await replaceFile(join(root, "b.yaml"), groupText("b", `${web}\n  priority: 7`));
    await tested.lookUntil(() => tested.group("b")?.spec.priority === 7);
    expect([view.isChanging, tested.group("a")?.spec.priority]).toEqual([false, 5]);
  });
});

it("What no file defines any more is about to leave, and told as such, while files are not at rest or not usable", () => {
  const holdings = new Holdings();
  const [a, b] = [read(groupText("a", web)), read(groupText("b", web))];
  holdings.take({ files: [a, b], problems: [], isAtRest: true });
  const name = { kind: "Group", namespace: "default", name: "b" } as const;
  expect(holdings.isLeaving(name)).toBe(false);
  const { names } = holdings.take({ files: [a], problems: [], isAtRest: false });
  expect([names, holdings.isLeaving(name), holdings.withheld]).toEqual([[name], true, []]);
  expect(holdings.take({ files: [a], problems: [], isAtRest: false }).names).toEqual([]);
  expect(holdings.take({ files: [a, b], problems: [], isAtRest: false }).names).toEqual([name]);
  expect(holdings.isLeaving(name)).toBe(false);
  holdings.take({ files: [a], problems: [], isAtRest: false });
  expect(holdings.take({ files: [a], problems: [], isAtRest: true }).removed).toEqual([expect.objectContaining(name)]);
  expect(holdings.isLeaving(name)).toBe(false);
});

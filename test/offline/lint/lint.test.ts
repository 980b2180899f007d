import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type JsonValue, parseJsonObject } from "../../../src/model/json.ts";
import { type FindingCode, findingRules } from "../../../src/model/objects/findings.ts";
import { type Ran, runCommand } from "../../helpers/command-under-test.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";
import { linesOf, provocations } from "./provocations.ts";

const golden = join(import.meta.dirname, "../../golden/lint");
const args = ["lint", "--manifests", join(golden, "manifests"), "--assets-dir", join(golden, "assets")];

/** What is written of the golden directory, wherever the tests run. */
function moved(text: string): string {
  return text.replaceAll(`${golden}/`, "");
}

/** The last words of each line are its code. */
function codesOf(output: string): readonly string[] {
  return linesOf(output).map((line) => /\(([-a-z0-9]+)\)$/.exec(line)?.[1] ?? line);
}

describe("`davit lint` of a directory with many mistakes", () => {
  let ran: Ran;

  beforeAll(async () => {
    ran = await runCommand(args);
  });

  it("tells each of them at its place, sorted", async () => {
    await expect(moved(ran.output)).toMatchFileSnapshot("../../golden/lint/findings.txt");
    expect(ran.errors).toBe("davit lint: 46 errors, 2 warnings, 4 advice\n");
    expect(ran.code).toBe(1);
  });

  it("finds more than twenty kinds", () => {
    expect(new Set(codesOf(ran.output)).size).toBeGreaterThan(40);
  });

  it("never tells the text of a Secret", () => {
    expect(ran.output + ran.errors).not.toContain("hunter2");
  });

  it("writes annotations for GitHub", async () => {
    const { output } = await runCommand([...args, "--format", "github"]);
    expect(moved(output)).toContain(
      "::error file=manifests/02-documents.yaml,line=34,col=3,title=out-of-range::Group default/values, spec.priority: " +
        "must be 1000 or less\n",
    );
    expect(output).toContain("::notice ");
    expect(linesOf(output)).toHaveLength(linesOf(ran.output).length);
  });

  it("writes JSON with the counts", async () => {
    const report = parseJsonObject((await runCommand([...args, "--format", "json"])).output);
    expect(report?.counts).toEqual({ error: 46, warning: 2, advice: 4 });
    expect(report?.findings).toHaveLength(52);
    const findings: JsonValue = report?.findings ?? [];
    expect(JSON.parse(moved(JSON.stringify(findings)))[0]).toEqual({
      file: "manifests/01-syntax.yaml",
      line: 7,
      column: 1,
      severity: "error",
      code: "invalid-yaml",
      message:
        "The file cannot be read: the indentation does not fit the lines above, or a bracket before it is not closed: " +
        "correct it",
    });
  });
});

it("the examples of manifests/ say what they do to disks", async () => {
  const { output } = await runCommand(["lint", "--manifests", join(import.meta.dirname, "../../../manifests")]);
  expect(codesOf(output)).not.toContain("unmarked-installer");
});

it("the examples of manifests/ have no mistake, and no advice", async () => {
  const { errors } = await runCommand([
    "lint",
    "--manifests",
    join(import.meta.dirname, "../../../manifests/examples"),
  ]);
  expect(errors).toBe("davit lint: no errors, no warnings, no advice\n");
});

it("{{davit.report}} is a variable of configs, and only of Profiles with install", async () => {
  const config = 'generic: {inline: "{{davit.report}}"}';
  const installer = "  effect: Install\n  install: {then: exit}\n  boot: {kernel: /k}";
  expect(await told(profileText("web", `${installer}\n  ${config}`), group)).toEqual([]);
  const inBoot = profileText("web", `${installer.replace("/k", '"/{{davit.report}}"')}\n  ${config}`);
  expect(await told(inBoot, group)).toEqual([expect.stringContaining("variable is not defined")]);
  expect(await told(profileText("web", `  ${config}`), group)).toEqual([
    expect.stringContaining("variable is not defined"),
  ]);
});

describe("every code of the catalogue", () => {
  it.each(provocations)("$code is told of $what", async ({ code, input, directory, words = [] }) => {
    const manifests = directory === undefined ? [] : ["--manifests", await directory()];
    const ran = await runCommand(["lint", ...manifests, ...words], { input: input === undefined ? [] : [input] });
    expect(codesOf(ran.output)).toContain(code);
  });

  it("is provoked by a test", async () => {
    const { output } = await runCommand(args);
    const provoked = new Set<string>([...codesOf(output), ...provocations.map(({ code }) => code)]);
    expect(Object.keys(findingRules).filter((code) => !provoked.has(code))).toEqual([]);
  });
});

const group = groupText("g", "  selector: {matchLabels: {role: g}}");

/** What lint says of an input, a line each. */
async function told(...documents: readonly string[]): Promise<readonly string[]> {
  return linesOf((await runCommand(["lint"], { input: [stream(...documents)] })).output);
}

describe("a list of MAC addresses for an installer", () => {
  const plan =
    "  effect: Install\n  install: {then: exit, timeout: 1h}\n  boot: {kernel: /assets/k, initrd: [/assets/i]";
  const installer = profileText("web", `${plan}, efiInitrd: true}\n  generic: {inline: "{{davit.report}}"}`);
  const [a, b] = ["52:54:00:00:02:0a", "52:54:00:00:02:0b"];
  const select = (more = "") =>
    groupText("g", `  selector: {${more}matchExpressions: [{key: mac, operator: In, values: ["${a}", "${b}"]}]}`);
  const machine = (name: string, ...macs: readonly (string | undefined)[]) =>
    `apiVersion: davit.dev/v1alpha1\nkind: Machine\nmetadata: {name: ${name}}\n` +
    `spec: {identity: {macs: ${JSON.stringify(macs)}}}\n`;

  it("is reported until Machines list each address", async () => {
    const found = [expect.stringMatching(`no Machine lists ${a}, so each of the 2 MAC addresses may install once`)];
    expect(await told(installer, select())).toEqual(found);
    expect(await told(installer, select(), machine("one", b))).toEqual(found);
    expect(await told(installer, select(), machine("one", a, b))).toEqual([]);
    expect(await told(installer, select(), machine("one", a), machine("two", b))).toEqual([]);
  });

  it("is not reported if a uuid names the machine, or nothing installs by a permit", async () => {
    expect(await told(installer, select('matchLabels: {uuid: "4c4c4544-0042-3510-8052-b4c04f4e4a32"}, '))).toEqual([]);
    const live = profileText("web", "  boot: {kernel: /assets/k, initrd: [/assets/i], efiInitrd: true}");
    expect(await told(live, select())).toEqual([]);
  });
});

describe("files as arguments", () => {
  const manifests = join(golden, "manifests");
  const [syntax, documents] = [join(manifests, "01-syntax.yaml"), join(manifests, "02-documents.yaml")];

  it("are read, and named as they were given", async () => {
    const one = linesOf((await runCommand(["lint", syntax])).output);
    expect(one).toEqual([expect.stringContaining(`${syntax}:7:1: error`)]);
    const two = linesOf((await runCommand(["lint", syntax, documents, "--format", "text"])).output);
    expect(two[0]).toBe(one[0]);
    expect(two.slice(1).every((line) => line.startsWith(`${documents}:`))).toBe(true);
    expect(two.length).toBeGreaterThan(5);
  });

  it("may stand beside directories", async () => {
    const lines = linesOf((await runCommand(["lint", syntax, "--manifests", manifests])).output);
    expect(lines.some((line) => line.startsWith(`${documents}:`))).toBe(true);
  });

  it("must exist", async () => {
    expect((await runCommand(["lint", "absent.yaml"])).errors).toContain('No file "absent.yaml": give files');
  });
});

it("braces of a template that nothing closes are told where they begin", async () => {
  const spec = "  generic:\n    inline: |\n      {{name}}\n      a {{disk\n      b\n      c";
  const lines = await told(profileText("web", spec), group);
  expect(lines).toEqual([expect.stringMatching(/^<stdin>:8:9: error: .*is not closed/)]);
});

describe("the place of a mistake in a template", () => {
  it.each([
    ["a block", "  generic:\n    inline: |\n      one\n      two {{absent}}", "8:13"],
    ["a block whose indentation is said", "  generic:\n    inline: |2\n       one\n      {{absent}}", "8:9"],
    ["a block of Windows lines", "  generic:\r\n    inline: |\r\n      one\r\n      two {{absent}}", "8:13"],
    ["a part by its name", '  genericParts:\n    - name: a.cfg\n      inline: "x {{absent}}"', "7:20"],
    ["a quoted text", '  generic: {inline: "a {{absent}}"}', "5:26"],
    ["a plain text", "  generic:\n    inline: a {{absent}}", "6:17"],
    ["a text with escapes, which is told as a whole", '  generic: {inline: "\\t{{absent}}"}', "5:13"],
    ["a folded block, which is told as a whole", "  generic:\n    inline: >\n      one\n      two {{absent}}", "6:5"],
  ])("in %s is told in the file", async (_, spec, place) => {
    const [line] = await told(profileText("web", spec), group);
    expect(line).toMatch(new RegExp(`^<stdin>:${place}: error: .*variable is not defined`));
  });

  it("is told in the ConfigMap that has it, and in the plain text of a Secret", async () => {
    const from = (ref: string) => `  generic: {templateFrom: {${ref}: {name: texts, key: k}}}`;
    const allowed = 'labels: {davit.dev/allow-template: "true"}';
    const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: texts}\ndata:\n  k: |\n    a {{absent}}\n";
    const secret = `apiVersion: v1\nkind: Secret\nmetadata: {name: texts, ${allowed}}\nstringData:\n  k: |\n    a {{absent}}\n`;
    const encoded = `apiVersion: v1\nkind: Secret\nmetadata: {name: texts, ${allowed}}\ndata:\n  k: YSB7e2Fic2VudH19\n`;
    expect((await told(profileText("web", from("configMapKeyRef")), group, configMap))[0]).toMatch(/^<stdin>:19:9: /);
    expect((await told(profileText("web", from("secretKeyRef")), group, secret))[0]).toMatch(/^<stdin>:19:9: /);
    expect((await told(profileText("web", from("secretKeyRef")), group, encoded))[0]).toMatch(/^<stdin>:18:3: /);
  });
});

describe("`davit lint` of standard input", () => {
  it("counts a ConfigMap that is missing as advice where none is in the input, since kubectl was asked for others", async () => {
    const profile = profileText("web", "  generic: {templateFrom: {configMapKeyRef: {name: texts, key: k}}}");
    const ran = await runCommand(["lint"], { input: [stream(profile, group)] });
    expect(linesOf(ran.output)).toEqual([
      '<stdin>:5:28: advice: Profile default/web, spec.generic: ConfigMap "texts" is not in the input, so its text was ' +
        "not looked at (not-in-input)",
    ]);
    expect(ran.code).toBe(0);
  });

  it("counts it as an error where there is another", async () => {
    const profile = profileText("web", "  generic: {templateFrom: {configMapKeyRef: {name: texts, key: k}}}");
    const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {k: v}\n";
    expect((await told(profile, group, other))[0]).toContain("(missing-config-map)");
  });

  it("is silent on good objects", async () => {
    expect(await runCommand(["lint"], { input: [stream(profileText("web"), group)] })).toEqual({
      code: 0,
      output: "",
      errors: "davit lint: no errors, no warnings, no advice\n",
    });
  });
});

describe("the exit code", () => {
  const shadowed = stream(profileText("web"), group, groupText("h", "  selector: {matchLabels: {role: g}}"));
  const unmarked = stream(profileText("web", "  boot: {kernel: /k, args: [autoinstall]}"), group);

  it.each([
    { what: "warnings alone", input: shadowed, words: [], code: 0 },
    { what: "warnings, with --strict", input: shadowed, words: ["--strict"], code: 1 },
    { what: "an unmarked installer, with --strict", input: unmarked, words: ["--strict"], code: 1 },
  ])("is $code for $what", async ({ input, words, code }) => {
    const ran = await runCommand(["lint", ...words], { input: [input] });
    expect(linesOf(ran.output).map((line) => line.includes(": warning: "))).toEqual([true]);
    expect(ran.code).toBe(code);
  });
});

describe("every severity", () => {
  it("is that of the catalogue", async () => {
    const { output } = await runCommand(args);
    for (const line of linesOf(output)) {
      const [, severity, code] = / (error|warning|advice): .*\(([-a-z0-9]+)\)$/.exec(line) ?? [];
      expect(findingRules[code as FindingCode].severity).toBe(severity);
    }
  });
});

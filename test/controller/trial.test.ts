import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runTrials } from "../../src/controller/trials/trial.ts";
import { renderedCondition } from "../../src/controller/trials/trials.ts";
import { encodeDocument, type GroupDocument } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileContent, ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { sha256 } from "./around.ts";
import { groupSpec, kernelBoot } from "./objects.ts";

const provenance = { origin: "web.yaml, document 1 (line 1)", uid: "u", generation: 1 };
const tools = { davitUrl: "http://192.0.2.1:8080", sha256 };

interface Tried {
  readonly content: Partial<ProfileContent>;
  readonly group?: Partial<GroupSpec>;
  readonly document?: Partial<GroupDocument>;
  readonly secretTexts?: readonly string[];
}

function tried({ content, group = {}, document = {}, secretTexts = [] }: Tried): string {
  const profileText = encodeDocument({
    ...provenance,
    revision: "1",
    content: { displayName: "Web", templates: {}, ...content },
  });
  const text = encodeDocument({ ...provenance, spec: groupSpec(group), ...document });
  const texts = new Map(secretTexts.map((each) => [sha256(each), each]));
  const [trial = "untried"] = runTrials(
    { namespace: "lab", profile: "web", profileText, secretTexts: texts, groups: [{ name: "node1", text }] },
    tools,
  );
  const { status, reason, message } = renderedCondition("web", trial);
  return `${status} ${reason}: ${message.replace('For a sample machine, Profile "web": ', "")}`;
}

function inline(...lines: readonly string[]): ResolvedTemplate {
  return { kind: "text", text: lines.join("\n"), raw: false };
}

const whole = "True Rendered: A sample machine gets every config of its Profile whole";

describe("a trial is whole", () => {
  it.each<Tried & { readonly name: string }>([
    { name: "a kernel alone", content: { boot: kernelBoot } },
    { name: "local boot", content: { boot: { kind: "local", local: "exit" } } },
    {
      name: "defaults of the Profile's, in arguments, scripts and configs",
      content: {
        metadata: { note: "two words" },
        boot: { ...kernelBoot, args: ["n={{note}}"] },
        grubScript: "echo {{note}}",
        templates: { generic: inline("{{note}}") },
      },
      group: { args: ["m={{note}}"] },
    },
    {
      name: "metadata, labels and davit.url",
      content: {
        boot: { ...kernelBoot, kernel: "{{davit.url}}/{{version}}/{{mac}}" },
        templates: { generic: inline("{{request.query.mac}} {{davit.url}} {{version}}") },
      },
      group: { metadata: { version: "1" } },
    },
    {
      name: "what every machine says of itself, where the selector has nothing of it",
      content: {
        templates: {
          generic: {
            kind: "text",
            text: '{"all": {{json request.query}}, "uuid": {{json request.query.uuid}}, "raw": {{json request.raw_query}} }',
            raw: false,
            format: "json",
          },
        },
      },
      group: { selector: { role: "web" } },
    },
    {
      name: "Ignition as YAML, cloud-config and a script",
      content: {
        templates: {
          ignition: inline("ignition:", "  version: 3.4.0"),
          cloudConfig: inline("#cloud-config", "hostname: {{lookup request.query 'hostname'}}"),
          generic: inline("#!/bin/sh"),
        },
      },
    },
  ])("with $name", (each) => {
    expect(tried(each)).toBe(whole);
  });
});

it.each<Tried & { readonly name: string }>([
  { name: "local boot", content: { boot: { kind: "local", local: "exit" } } },
  { name: "a script", content: { boot: { kind: "script", script: "#!ipxe" } } },
  { name: "configs alone", content: { templates: { generic: inline("fine") } } },
])("a trial tells that the Group's arguments are not used beside $name", ({ content }) => {
  expect(tried({ content, group: { args: ["quiet"] } })).toBe(
    "True RenderedWithAdvice: spec.args of the Group are not used: the Profile has no kernel to hand them to",
  );
});

describe("a trial tells the line in the template", () => {
  it.each<Tried & { readonly name: string; readonly told: string }>([
    {
      name: "of an argument of the Group",
      content: { boot: { ...kernelBoot, args: ["quiet"] } },
      group: { args: ["fine", "n={{absent}}"] },
      told:
        "False RenderFailed: /ipxe and /grub are answered 500: spec.args[1] of the Group, line 1, column 5: " +
        'Render template: variable is not defined: "absent"',
    },
    {
      name: "of a script, and of the one for GRUB",
      content: { boot: { kind: "script", script: "#!ipxe\n{{absent}}" }, grubScript: "{{gone}}" },
      told:
        "False RenderFailed: /ipxe is answered 500: spec.boot.script, line 2, column 3: Render template: variable is not " +
        'defined: "absent"; /grub is answered 500: spec.boot.grubScript, line 1, column 3: Render template: variable is ' +
        'not defined: "gone"',
    },
    {
      name: "of a kernel that iPXE alone gets",
      content: { boot: { ...kernelBoot, kernel: "{{absent}}" }, grubScript: "exit" },
      told: 'False RenderFailed: /ipxe is answered 500: spec.boot.kernel, line 1, column 3: Render template: variable is not defined: "absent"',
    },
    {
      name: "of what one of the two clients cannot hand over",
      content: { boot: { ...kernelBoot, args: ["a={{a}}", "b={{b}}"] } },
      group: { metadata: { a: "it's", b: `\${mac}` } },
      told:
        "False RenderFailed: /ipxe is answered 500: spec.boot.args[1]: Render iPXE script: a value in args would be a token " +
        "of iPXE, or a part of one; /grub is answered 500: spec.boot.args[0]: Render GRUB config: a value in args has a " +
        "quote or a backslash, which GRUB does not hand on as it is",
    },
    {
      name: "of a Group's argument, behind one of the Profile's that renders to nothing",
      content: { boot: { ...kernelBoot, args: ["{{#if gone}}x{{/if}}", "quiet"] }, grubScript: "exit" },
      group: { args: ["fine={{v}}", "x={{bad}}"], metadata: { gone: false, v: "two words", bad: `5" disk` } },
      told:
        "False RenderFailed: /ipxe is answered 500: spec.args[1] of the Group: Render boot: blanks and double quotes of a " +
        "value cannot stand in one argument of Linux",
    },
    {
      name: "of the argument with an open quote, not of the value that it hits",
      content: { boot: { ...kernelBoot, args: ['a="b', "n={{v}}"] }, grubScript: "exit" },
      group: { metadata: { v: "x y" } },
      told:
        "False RenderFailed: /ipxe is answered 500: spec.boot.args[0]: Render boot: a double quote in args is not closed, " +
        "so that a value cannot be quoted",
    },
    {
      name: "of a variable that no sample has",
      content: { templates: { generic: inline("a", "b {{request.query.os}}") } },
      told: 'False RenderFailed: /generic is answered 500: spec.generic, line 2, column 5: Render template: variable is not defined: "request.query.os"',
    },
    {
      name: "of an argument, and the others go on",
      content: {
        boot: { ...kernelBoot, args: ["quiet", "a={{absent}}"], initrd: ["{{gone}}"] },
        templates: { generic: inline("fine") },
      },
      told:
        "False RenderFailed: /ipxe and /grub are answered 500: spec.boot.initrd[0], line 1, column 3: " +
        'Render template: variable is not defined: "gone"; /ipxe and /grub are answered 500: spec.boot.args[1], line 1, ' +
        'column 5: Render template: variable is not defined: "absent"',
    },
    {
      name: "of an empty kernel",
      content: { boot: { ...kernelBoot, kernel: "{{#if x}}k{{/if}}" } },
      told: "False RenderFailed: /ipxe and /grub are answered 500: spec.boot: Render boot: kernel is empty",
    },
    {
      name: "where JSON breaks behind a loop",
      content: {
        templates: {
          ignition: inline(
            '{"ignition": {"version": "3.4.0"}, "storage": {"files": [',
            "{{#each files}}",
            '  {"path": {{json this}} }',
            "{{/each}}",
            "]}",
            '"end"}',
          ),
        },
      },
      group: { metadata: { files: ["/a"] } },
      told:
        "False RenderFailed: /ignition is answered 500: spec.ignition, line 6, column 1: " +
        "Read Ignition result: neither JSON nor YAML without outer braces",
    },
    {
      name: "where a value breaks YAML",
      content: { templates: { cloudConfig: inline("#cloud-config", "# x", "motd: {{motd}}", "a: 1") } },
      group: { metadata: { motd: "a: b: c" } },
      told: "False RenderFailed: /cloud is answered 500: spec.cloudConfig, line 3, column 7: Read cloud-config result: not YAML",
    },
    {
      name: "where Ignition refuses a value that came out of a loop",
      content: {
        templates: {
          ignition: inline(
            "ignition: {version: 3.4.0}",
            "storage:",
            "  files:",
            "{{#each files}}",
            "    - path: {{path}}",
            "      mode: {{mode}}",
            "{{/each}}",
          ),
        },
      },
      group: {
        metadata: {
          files: [
            { path: "/a", mode: 420 },
            { path: "/b", mode: "0x1z" },
          ],
        },
      },
      told:
        "False InvalidConfig: Ignition refuses this: spec.ignition, line 6, column 13: " +
        "storage.files[1].mode must be a whole number",
    },
    {
      name: "of a field that Ignition has not",
      content: {
        templates: {
          ignition: {
            kind: "text",
            text: '{"ignition": {"version": "3.4.0"},\n "systemd": {"units": [{"name": "a.service",\n  "enable": true}]}}',
            raw: true,
          },
        },
      },
      told:
        "True RenderedWithAdvice: spec.ignition, line 3, column 3: " +
        "systemd.units[0] has a field that the specification has not: Ignition passes over it",
    },
    {
      name: "of generic JSON that is none",
      content: { templates: { generic: { kind: "text", text: '{"a": 1,\n}', raw: false, format: "json" } } },
      told:
        "False RenderFailed: /generic is answered 500: spec.generic, line 2, column 1: " +
        "Read generic result: not JSON, which its format says it is",
    },
    {
      name: "of a generic part, by its name, and the others go on",
      content: {
        templates: {
          "generic/user-data": inline("a", "b {{absent}}"),
          "generic/meta-data": { kind: "broken" },
          "generic/answers": { kind: "text", text: '{"a": 1,\n}', raw: false, format: "json" },
          "generic/fine": inline("fine"),
        },
      },
      told:
        "False RenderFailed: /generic/user-data is answered 500: spec.genericParts[user-data], line 2, column 5: " +
        'Render template: variable is not defined: "absent"; ' +
        "/generic/meta-data is answered 500: spec.genericParts[meta-data] is broken, see the Profile's status; " +
        "/generic/answers is answered 500: spec.genericParts[answers], line 2, column 1: " +
        "Read generic result: not JSON, which its format says it is",
    },
    {
      name: "of Butane, with the place in the template",
      content: { templates: { ignition: inline("{{#if v}}", "variant: fcos", "{{/if}}", "version: {{v}}") } },
      group: { metadata: { v: "1.9.0" } },
      told:
        "False RenderFailed: /ignition is answered 500: spec.ignition, line 4, column 10: Read Butane result: variant and " +
        "version must be fcos and 1.0.0 to 1.6.0, or flatcar and 1.0.0 or 1.1.0",
    },
    {
      name: "of no Butane that is translated",
      content: { templates: { ignition: inline("variant: fcos", "version: {{v}}", "storage: {}") } },
      group: { metadata: { v: "1.5.0" } },
      told: "True Rendered: A sample machine gets every config of its Profile whole",
    },
    {
      name: "of nothing, for a part that is broken",
      content: { boot: { kind: "broken" }, templates: { ignition: { kind: "broken" } } },
      told:
        "False RenderFailed: /ipxe and /grub are answered 500: spec.boot is broken, see the Profile's status; " +
        "/ignition is answered 500: spec.ignition is broken, see the Profile's status",
    },
  ])("$name", ({ told, ...each }) => {
    expect(tried(each)).toBe(told);
  });
});

describe("a template from a Secret", () => {
  const text = '{"ignition": {"version": "3.4.0"}, "hunter2": {{json absent}}, "storage": {"files": ["hunter2"]} }';
  const secret = { kind: "secret", name: "s", key: "k", sha256: sha256(text), raw: false } as const;

  it("is tried, and no finding has a word of it", () => {
    const told = tried({ content: { templates: { ignition: secret } }, secretTexts: ["other", text] });
    expect(told).toBe(
      "False InvalidConfig: Ignition refuses this: spec.ignition, line 1, column 86: storage.files[0] must be an object; " +
        "spec.ignition, line 1, column 36: the config has a field that the specification has not: Ignition passes over it",
    );
  });

  it("is not tried while its text is another", () => {
    const told = tried({ content: { templates: { generic: secret } }, secretTexts: ["other"] });
    expect(told).toBe("True RenderedWithAdvice: spec.generic was not tried: its Secret is not in view");
  });
});

describe("nothing is tried", () => {
  it.each<Tried & { readonly name: string }>([
    { name: "of a refused Group", content: { boot: kernelBoot }, document: { refused: true } },
  ])("$name", (each) => {
    expect(tried(each)).toBe("Unknown NotRendered: No machine gets a config of this Group now");
  });

  it("of documents that cannot be read", () => {
    const job = { namespace: "lab", profile: "web", secretTexts: new Map(), groups: [{ name: "a", text: "?" }] };
    expect(runTrials({ ...job, profileText: "?" }, tools)).toEqual(["untried"]);
    const profileText = encodeDocument({ ...provenance, revision: "1", content: { displayName: "W", templates: {} } });
    expect(runTrials({ ...job, profileText }, tools)).toEqual(["untried"]);
  });
});

it("a message tells ten findings, and how many more there are", () => {
  const args = Array.from({ length: 256 }, () => "{{absent}}");
  const told = tried({ content: { boot: { ...kernelBoot, args } } });
  expect(told.match(/answered 500/g)).toHaveLength(10);
  expect(told).toMatch(/; and 246 more$/);
});

it("the example of the page of Group says what it gives", () => {
  const page = readFileSync(new URL("../../docs/reference/crds/group.md", import.meta.url), "utf8");
  const [, profile = "", condition = ""] =
    /The Profile\n\n```yaml\n(.*?)```\n.*?```yaml\n(- type: Rendered.*?)```/s.exec(page) ?? [];
  const parts: Readonly<Record<string, { readonly inline: string }>> = parse(profile);
  const templates = Object.fromEntries(
    Object.entries(parts).map(([part, text]) => [part, { kind: "text", text: text.inline, raw: false } as const]),
  );
  const [{ status, reason, message }] = parse(condition);
  const prefix = 'For a sample machine, Profile "worker": ';
  expect(message.startsWith(prefix)).toBe(true);
  expect(tried({ content: { templates }, group: { metadata: { role: "worker" } } })).toBe(
    `${status} ${reason}: ${message.slice(prefix.length)}`,
  );
});

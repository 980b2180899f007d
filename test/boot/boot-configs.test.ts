import { beforeEach, describe, expect, it } from "vitest";
import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/boot-index.ts";
import { createLog } from "../../src/lib/create-log.ts";
import { secretPath } from "../../src/model/documents.ts";
import { labelsFromQuery } from "../../src/model/labels.ts";
import type { Boot, ProfileContent } from "../../src/model/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";

const boot: Boot = { kind: "kernel", kernel: "/assets/{{os}}", initrd: [], args: ["role={{role}}"], efiInitrd: false };

let index: BootIndex;
let configs: BootConfigs;

beforeEach(() => {
  index = new BootIndex({ log: createLog({ level: "silent", format: "json" }) });
  configs = new BootConfigs({ index, authority: "192.0.2.1:80", grub: { separator: "auto", commands: "auto" } });
  index.open();
});

/** One group, role=web, whose metadata says os=debian. */
function fill(content: Partial<ProfileContent>, metadata: Record<string, string> = { os: "debian" }): void {
  index.replaced([
    profileDocument("lab/web", content),
    groupDocument("lab/web", { selector: { role: "web" }, metadata }),
    syncedDocument(),
  ]);
}

function render(name: ConfigName, rawQuery = "role=web"): string {
  return configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" }).rendered.body;
}

it.each([true, false])("a generic config that promises JSON is broken when it is none (raw: %s)", (raw) => {
  const generic = (text: string) => fill({ templates: { generic: { kind: "text", text, raw, format: "json" } } });
  generic('{"a": 1}');
  expect(render("generic")).toBe('{"a": 1}');
  generic('{"a": 1');
  expect(() => render("generic")).toThrow(expect.objectContaining({ reason: "broken" }));
  fill({ templates: { generic: { kind: "text", text: '{"a": 1', raw } } });
  expect(render("generic")).toBe('{"a": 1');
});

it.each([
  { what: "never was good", template: { kind: "broken" }, says: "spec.generic cannot be used: the conditions of" },
  {
    what: "was taken away",
    template: { kind: "broken", withdrawn: true },
    says: "the Secret of spec.generic, its key or its label was taken away",
  },
] as const)("a config that $what says so to the log", ({ template, says }) => {
  fill({ templates: { generic: template } });
  const problem = expect.stringContaining(says);
  expect(() => render("generic")).toThrow(
    expect.objectContaining({ reason: "broken", group: "lab/web", profile: "lab/web", problem }),
  );
});

describe("the boot section", () => {
  it("is filled from metadata, selector and davit's address", () => {
    fill({ boot: { ...boot, args: ["u={{davit.url}}", "r={{role}}"] } });
    expect(render("ipxe")).toBe("#!ipxe\nkernel /assets/debian u=http://192.0.2.1:80 r=web\nboot\n");
  });

  it("is never filled from the request", () => {
    fill({ boot: { ...boot, args: ["s={{request.query.serial}}"] } });
    expect(() => render("ipxe", "role=web&serial=evil")).toThrow(expect.objectContaining({ reason: "broken" }));
  });

  it("follows a change of the group alone, and of the Profile alone", () => {
    fill({ boot });
    expect(render("ipxe")).toContain("/assets/debian role=web\n");
    const [groupAt, group] = groupDocument("lab/web", { selector: { role: "web" }, metadata: { os: "fedora" } });
    index.changed([{ path: groupAt, text: group }]);
    expect(render("ipxe")).toContain("/assets/fedora role=web\n");
    const [profileAt, profile] = profileDocument("lab/web", { boot: { ...boot, args: ["quiet"] } });
    index.changed([{ path: profileAt, text: profile }]);
    expect(render("ipxe")).toContain("/assets/fedora quiet\n");
    expect(render("grub")).toContain('/assets/fedora" "quiet"\n');
  });

  it.each<[name: string, broken: Partial<ProfileContent>]>([
    ["its template has a mistake", { boot: { ...boot, kernel: "{{" } }],
    ["a variable is not defined", { boot: { ...boot, kernel: "{{absent}}" } }],
    ["a value has a line break", { boot: { ...boot, kernel: "a\nb" } }],
    ["it was never good", { boot: { kind: "broken" } }],
  ])("is broken when %s, and the templates still work", (_name, broken) => {
    fill({ ...broken, templates: { generic: { kind: "text", text: "fine", raw: false } } });
    for (const name of ["ipxe", "grub"] as const)
      expect(() => render(name)).toThrow(expect.objectContaining({ reason: "broken", group: "lab/web" }));
    expect(render("generic")).toBe("fine");
  });
});

describe("templates", () => {
  it("see the request, and raw ones are served as they are", () => {
    fill({ templates: { generic: { kind: "text", text: "{{request.raw_query}}", raw: false } } });
    expect(render("generic", "role=web&x=%2F")).toBe("role=web&x=%2F");
    fill({ templates: { generic: { kind: "text", text: "{{request.raw_query}}", raw: true } } });
    expect(render("generic")).toBe("{{request.raw_query}}");
  });

  it("never evaluate what a machine sends", () => {
    fill({ templates: { generic: { kind: "text", text: "{{request.query.x}}", raw: false } } });
    expect(render("generic", "role=web&x={{os}}")).toBe("{{os}}");
  });

  it("come from secrets by their hash", () => {
    index.replaced([
      profileDocument("lab/web", {
        templates: { generic: { kind: "secret", name: "s", key: "k", sha256: "abc", raw: false } },
      }),
      groupDocument("lab/web", { selector: { role: "web" }, metadata: { os: "debian" } }),
      [secretPath("lab", "web", "abc"), "os={{os}}"],
      syncedDocument(),
    ]);
    expect(render("generic")).toBe("os=debian");
  });

  it("are broken when what they yield is no config of their kind", () => {
    const text = { kind: "text", text: "[]", raw: false } as const;
    fill({ templates: { ignition: text, cloudConfig: text, generic: text } });
    expect(() => render("ignition")).toThrow(expect.objectContaining({ reason: "broken", profile: "lab/web" }));
    expect(() => render("cloud")).toThrow(expect.objectContaining({ reason: "broken" }));
    expect(render("generic")).toBe("[]");
  });
});

it("metadata needs no Profile, and is held with its group", () => {
  index.replaced([
    groupDocument("lab/web", { selector: { role: "web" }, profile: "gone" }),
    groupDocument("lab/held", { selector: { role: "held" }, profile: "gone", hold: true }),
    syncedDocument(),
  ]);
  expect(render("metadata")).toContain("ROLE=web\n");
  expect(() => render("metadata", "role=held")).toThrow(expect.objectContaining({ reason: "held" }));
});

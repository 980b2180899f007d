import { beforeEach, describe, expect, it } from "vitest";
import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { secretPath } from "../../src/model/objects/documents.ts";
import type { Boot, ProfileContent } from "../../src/model/objects/profile.ts";
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
function fill(
  content: Partial<ProfileContent>,
  metadata: Record<string, string> = { os: "debian" },
  args: readonly string[] = [],
): void {
  index.replaced([
    profileDocument("lab/web", content),
    groupDocument("lab/web", { selector: { role: "web" }, metadata, args }),
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

describe("a variable that is not defined is named, with the field that prints it", () => {
  const told = (field: string) => `${field}: Render template: variable is not defined: "disk.path" (line 1, column 3)`;
  const absent = "{{disk.path}}";

  it.each<[field: string, name: ConfigName, content: Partial<ProfileContent>, args?: readonly string[]]>([
    ["spec.boot.kernel", "ipxe", { boot: { ...boot, kernel: absent } }],
    ["spec.boot.initrd[1]", "grub", { boot: { ...boot, initrd: ["/a", absent] } }],
    ["spec.boot.args[1]", "ipxe", { boot: { ...boot, args: ["a", absent] } }],
    ["spec.args[1] of the Group", "grub", { boot }, ["b", absent]],
    ["spec.boot.script", "ipxe", { boot: { kind: "script", script: absent } }],
    ["spec.boot.grubScript", "grub", { boot, grubScript: absent }],
    ["spec.cloudConfig", "cloud", { templates: { cloudConfig: { kind: "text", text: absent, raw: false } } }],
    [
      "spec.genericParts[user-data]",
      "generic/user-data",
      { templates: { "generic/user-data": { kind: "text", text: absent, raw: false } } },
    ],
  ])("%s", (field, name, content, args = []) => {
    fill(content, { os: "debian" }, args);
    expect(() => render(name)).toThrow(expect.objectContaining({ problem: told(field) }));
  });

  it("but for that of a template from a Secret", () => {
    const path = secretPath("lab", "web", "00");
    const template = { kind: "secret", raw: false, name: "s", key: "k", sha256: "00" } as const;
    index.replaced([
      profileDocument("lab/web", { templates: { ignition: template } }),
      [path, absent],
      groupDocument("lab/web", { selector: { role: "web" } }),
      syncedDocument(),
    ]);
    const problem = "spec.ignition: Render template: variable is not defined (line 1, column 3)";
    expect(() => render("ignition")).toThrow(expect.objectContaining({ problem }));
  });

  it("which is cut where it is long, and has no control character", () => {
    fill({ templates: { generic: { kind: "text", text: `{{a${"b".repeat(1000)}}}`, raw: false } } });
    const problem = expect.stringMatching(/^spec\.generic: Render template: variable is not defined: "ab{127}\.\.\." /);
    expect(() => render("generic")).toThrow(expect.objectContaining({ problem }));
  });
});

describe("a script of the Profile's own", () => {
  const script = `#!ipxe\nchain /{{os}}/{{role}} \${mac}\n`;

  it("is what iPXE gets, and GRUB finds nothing", () => {
    fill({ boot: { kind: "script", script } });
    expect(render("ipxe")).toBe(`#!ipxe\nchain /debian/web \${mac}\n`);
    expect(() => render("grub")).toThrow(expect.objectContaining({ reason: "noPart" }));
  });

  /** Ends the waiting of a GRUB that got a 503 before. */
  const answered = "set davit_answered=yes\n";

  it("for GRUB is what GRUB gets, and iPXE finds nothing", () => {
    fill({ grubScript: `set root={{os}} \${mac}\n` });
    expect(render("grub")).toBe(`${answered}set root=debian \${mac}\n`);
    expect(() => render("ipxe")).toThrow(expect.objectContaining({ reason: "noPart" }));
  });

  it("for GRUB takes the place of the kernel for GRUB alone", () => {
    fill({ boot, grubScript: "exit\n" });
    expect([render("ipxe"), render("grub")]).toEqual([
      "#!ipxe\nkernel /assets/debian role=web\nboot\n",
      `${answered}exit\n`,
    ]);
  });

  it("is never filled from the request", () => {
    fill({ boot: { kind: "script", script: "#!ipxe\n{{request.raw_query}}" }, grubScript: "{{request.raw_query}}" });
    for (const name of ["ipxe", "grub"] as const)
      expect(() => render(name)).toThrow(expect.objectContaining({ reason: "broken", group: "lab/web" }));
  });

  it("is broken where its Profile never was good", () => {
    fill({ boot: { kind: "broken" }, grubScript: "exit" });
    for (const name of ["ipxe", "grub"] as const)
      expect(() => render(name)).toThrow(expect.objectContaining({ reason: "broken" }));
  });

  it("follows a change of the group and of the Profile", () => {
    fill({ boot: { kind: "script", script }, grubScript: "{{os}}" });
    expect(render("ipxe") + render("grub")).toBe(`#!ipxe\nchain /debian/web \${mac}\n${answered}debian`);
    fill({ boot: { kind: "script", script }, grubScript: "{{os}}" }, { os: "fedora" });
    expect(render("ipxe") + render("grub")).toBe(`#!ipxe\nchain /fedora/web \${mac}\n${answered}fedora`);
    const [path, text] = profileDocument("lab/web", { boot, grubScript: "exit" });
    index.changed([{ path, text }]);
    expect(render("ipxe") + render("grub")).toBe(`#!ipxe\nkernel /assets/fedora role=web\nboot\n${answered}exit`);
  });
});

describe("arguments of the group", () => {
  const withArgs = (content: Partial<ProfileContent>, args: readonly string[]) =>
    index.replaced([
      profileDocument("lab/web", content),
      groupDocument("lab/web", { selector: { role: "web" }, metadata: { os: "debian", note: "two words" }, args }),
      syncedDocument(),
    ]);

  it("come behind the Profile's, before those of efiInitrd, as templates over the same", () => {
    withArgs({ boot: { ...boot, initrd: ["/i"], efiInitrd: true } }, [
      "note={{note}}",
      "{{#if absent}}x{{/if}}",
      "end",
    ]);
    expect(render("ipxe")).toBe(
      '#!ipxe\nkernel /assets/debian role=web "note=two words" end initrd=i\ninitrd /i\nboot\n',
    );
    expect(render("grub")).toContain('"role=web" "note=two words" "end"\n');
  });

  it("are no error where the Profile has no use for them", () => {
    for (const own of [
      { boot: { kind: "local", local: "exit" } },
      { boot: { kind: "script", script: "#!ipxe" } },
    ] as const) {
      withArgs(own, ["{{absent}}"]);
      expect(render("ipxe")).toMatch(/^#!ipxe/);
    }
  });

  it("are never filled from the request", () => {
    withArgs({ boot }, ["{{request.query.role}}"]);
    expect(() => render("ipxe")).toThrow(expect.objectContaining({ reason: "broken" }));
  });

  it("that iPXE cannot hand over are broken there, and GRUB gets them", () => {
    withArgs({ boot }, [`x={{replace note 'two words' '\${mac}'}}`]);
    expect(() => render("ipxe")).toThrow(expect.objectContaining({ reason: "broken" }));
    expect(render("grub")).toContain(String.raw`"x=\${mac}"`);
  });
});

describe("the Profile's metadata", () => {
  const defaults = { os: "fedora", ntp: "192.0.2.123", net: { vlan: 7, mtu: 9000 } };

  it("is under the group's, name by name at the top, in every template and in /metadata", () => {
    const generic = { kind: "text", text: "{{os}} {{ntp}} {{json net}}", raw: false } as const;
    const profile = { metadata: defaults, boot: { ...boot, args: ["{{ntp}}"] }, templates: { generic } };
    index.replaced([
      profileDocument("lab/web", profile),
      groupDocument("lab/web", { selector: { role: "web" }, metadata: { os: "debian", net: { vlan: 8 } } }),
      syncedDocument(),
    ]);
    expect(render("generic")).toBe('debian 192.0.2.123 {"vlan":8}');
    expect(render("ipxe")).toContain("kernel /assets/debian 192.0.2.123\n");
    expect(render("metadata")).toMatch(/^NET_VLAN=8\nNTP=192.0.2.123\nOS=debian\nROLE=web\n/);
  });

  it("loses to the selector, and to a null of the group's", () => {
    fill({ metadata: { role: "db", gone: "x" }, templates: {} }, {});
    const [path, text] = groupDocument("lab/web", { selector: { role: "web" }, metadata: { gone: null } });
    index.changed([{ path, text }]);
    expect(render("metadata")).toMatch(/^ROLE=web\nREQUEST/);
  });

  it("changes /metadata when it changes, and is gone with the Profile", () => {
    fill({ metadata: { ntp: "a" } }, {});
    expect(render("metadata")).toMatch(/^NTP=a\n/);
    const [path, text] = profileDocument("lab/web", { metadata: { ntp: "b" } });
    index.changed([{ path, text }]);
    expect(render("metadata")).toMatch(/^NTP=b\n/);
    index.changed([{ path, text: undefined }]);
    expect(render("metadata")).toMatch(/^ROLE=web\n/);
  });

  it("is not known while davit has failed on the Profile, and /metadata is not answered without it", () => {
    fill({ metadata: { ntp: "a" } }, {});
    const [path, text] = profileDocument("lab/web", {});
    const failed = JSON.stringify({ ...JSON.parse(text), failed: true });
    index.changed([{ path, text: failed }]);
    expect(() => render("metadata")).toThrow(expect.objectContaining({ reason: "failed", profile: "lab/web" }));
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

describe("generic parts", () => {
  const text = (template: string) => ({ kind: "text", text: template, raw: false }) as const;

  it("are each rendered of their own, beside the generic config", () => {
    fill({ templates: { generic: text("whole"), "generic/user-data": text("os={{os}}"), "generic/b": text("b") } });
    expect([render("generic"), render("generic/user-data"), render("generic/b")]).toEqual(["whole", "os=debian", "b"]);
    expect(() => render("generic/c")).toThrow(expect.objectContaining({ reason: "noPart", profile: "lab/web" }));
  });

  it("promise what they promise, each for itself", () => {
    fill({ templates: { "generic/a": { ...text("[1"), format: "json" }, "generic/b": text("[1") } });
    expect(() => render("generic/a")).toThrow(expect.objectContaining({ reason: "broken" }));
    expect(render("generic/b")).toBe("[1");
  });

  it("break alone, and the log has their name", () => {
    fill({ templates: { "generic/a": { kind: "broken", withdrawn: true }, "generic/b": text("b") } });
    const problem = "the Secret of spec.genericParts[a], its key or its label was taken away: the conditions of the";
    expect(() => render("generic/a")).toThrow(
      expect.objectContaining({ reason: "broken", problem: expect.stringContaining(problem) }),
    );
    expect(render("generic/b")).toBe("b");
  });

  it("come from one Secret when they have one text", () => {
    const secret = { kind: "secret", name: "s", key: "k", sha256: "abc", raw: false } as const;
    fill({ templates: { "generic/a": secret, "generic/b": { ...secret, raw: true } } });
    index.changed([{ path: secretPath("lab", "web", "abc"), text: "os={{os}}" }]);
    expect([render("generic/a"), render("generic/b")]).toEqual(["os=debian", "os={{os}}"]);
    index.changed([{ path: secretPath("lab", "web", "abc"), text: undefined }]);
    for (const name of ["generic/a", "generic/b"] as const)
      expect(() => render(name)).toThrow(expect.objectContaining({ reason: "broken" }));
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

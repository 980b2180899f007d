import { beforeEach, describe, expect, it } from "vitest";
import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import type { AddressedMachine } from "../../src/boot/making/boot-scripts.ts";
import { KeptConfigs } from "../../src/boot/making/config-maker.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { secretPath } from "../../src/model/objects/documents.ts";
import type { Rendered } from "../../src/render/core/rendered.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";

const web = { selector: { role: "web" }, metadata: { os: "debian", vip: "no" } };
const generic = (text: string) => ({ templates: { generic: { kind: "text", text, raw: false } as const } });

let index: BootIndex;
let configs: BootConfigs;

beforeEach(() => {
  index = new BootIndex({ log: silentLog });
  configs = new BootConfigs({ index, authority: "192.0.2.1:80", grub: { separator: "auto", commands: "auto" } });
  index.open();
  index.replaced([profileDocument("lab/web"), groupDocument("lab/web", web), syncedDocument()]);
});

function render(rawQuery = "role=web", name: ConfigName = "generic"): Rendered {
  return configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" }).rendered;
}

function change(...documents: readonly (readonly [path: string, text: string | undefined])[]): void {
  index.changed(documents.map(([path, text]) => ({ path, text })));
}

describe("a config", () => {
  it("that says nothing of the request is made once", () => {
    change(profileDocument("lab/web", generic("os={{os}} {{davit.url}}")));
    const first = render("role=web&serial=1");
    expect(first.body).toBe("os=debian http://192.0.2.1:80");
    expect(render("role=web&serial=2")).toBe(first);
  });

  it("is kept for each part of its own", () => {
    const text = { kind: "text", text: "os={{os}}", raw: false } as const;
    change(profileDocument("lab/web", { templates: { "generic/a": text, "generic/b": text } }));
    const [a, b] = [render("role=web", "generic/a"), render("role=web", "generic/b")];
    expect([render("role=web&x=1", "generic/a"), render("role=web&x=1", "generic/b")]).toEqual([a, b]);
    change(profileDocument("lab/web", { templates: { "generic/a": { ...text, text: "new" }, "generic/b": text } }));
    expect([render("role=web", "generic/a").body, render("role=web", "generic/b").body]).toEqual(["new", "os=debian"]);
  });

  it.each([
    "{{lookup request.query 'serial'}}",
    "{{request.raw_query}}",
    "{{#with request}}{{raw_query}}{{/with}}",
    "{{json @root}}",
    "{{#each @root}}{{json this}}{{/each}}",
    "{{#if (eq os 'debian')}}{{json (lookup @root 'request')}}{{/if}}",
    "{{#each (split 'a b' ' ')}}{{@root.request.raw_query}}{{/each}}",
  ])("of %s is made for each request", (text) => {
    change(profileDocument("lab/web", generic(text)));
    const answers = ["role=web&serial=1", "role=web&serial=2", "role=web"].map((query) => render(query).body);
    expect(new Set(answers).size).toBe(3);
    expect(render("role=web&serial=1").body).toBe(answers[0]);
  });

  it("whose Group never gets to the words of the request is made once", () => {
    change(profileDocument("lab/web", generic("{{#if (eq vip 'yes')}}{{request.raw_query}}{{/if}}os={{os}}")));
    expect(render("role=web&a=1")).toBe(render("role=web&a=2"));
    change(groupDocument("lab/web", { ...web, metadata: { os: "debian", vip: "yes" } }));
    expect(render("role=web&a=1").body).toBe("role=web&a=1os=debian");
    expect(render("role=web&a=2").body).toBe("role=web&a=2os=debian");
  });

  it("follows a change of its Group, of its Profile and of its Secret", () => {
    change(profileDocument("lab/web", generic("os={{os}}")));
    expect(render().body).toBe("os=debian");
    change(groupDocument("lab/web", { ...web, metadata: { os: "fedora" } }));
    expect(render().body).toBe("os=fedora");
    change(profileDocument("lab/web", generic("system {{os}}")));
    expect(render().body).toBe("system fedora");
    const secret = {
      templates: { generic: { kind: "secret", name: "s", key: "k", sha256: "abc", raw: false } as const },
    };
    change([secretPath("lab", "web", "abc"), "secret {{os}}"], profileDocument("lab/web", secret));
    expect(render().body).toBe("secret fedora");
    change([secretPath("lab", "web", "abc"), undefined]);
    expect(() => render()).toThrow(expect.objectContaining({ reason: "broken" }));
  });
});

describe("kept configs", () => {
  const profile = {
    revision: "r1",
    id: "lab/web",
    content: contentOf(),
    hasFailed: false,
    isInstall: false,
    isOutdated: false,
  };
  const machine: AddressedMachine = { group: selected(), profile, davitUrl: "http://192.0.2.1:80" };
  const config = (body: string): Rendered => ({ body, contentType: "text/plain" });

  function contentOf() {
    return { displayName: "web", templates: {} };
  }

  function selected(): AddressedMachine["group"] {
    const fresh = new BootIndex({ log: silentLog });
    fresh.replaced([profileDocument("lab/web"), groupDocument("lab/web", web), syncedDocument()]);
    fresh.open();
    return fresh.selectGroup(labelsFromQuery("role=web"));
  }

  it("are let go together when they are too many", () => {
    const kept = new KeptConfigs({ limitBytes: 1_000 });
    const others = Array.from({ length: 3 }, () => ({ ...machine, group: selected() }));
    for (const each of others) kept.keep(each, "generic", config("x".repeat(50)));
    expect(others.map((each) => kept.get(each, "generic")?.body.length)).toEqual([50, 50, 50]);
    kept.keep(machine, "generic", config("y".repeat(50)));
    expect(others.map((each) => kept.get(each, "generic"))).toEqual([undefined, undefined, undefined]);
    expect(kept.get(machine, "generic")?.body).toBe("y".repeat(50));
  });

  it("have no room for one that would drive out all others", () => {
    const kept = new KeptConfigs({ limitBytes: 1_000 });
    const other = { ...machine, group: selected() };
    kept.keep(other, "generic", config("x"));
    const large = kept.keep(machine, "ignition", config("x".repeat(1_000)));
    expect(large.isShared).toBe(true);
    expect(kept.get(other, "generic")?.body).toBe("x");
    expect(kept.get(machine, "ignition")).toBeUndefined();
  });

  it("are those of one part, of one version of the Profile and of one URL of davit", () => {
    const kept = new KeptConfigs({ limitBytes: 1_000 });
    kept.keep(machine, "generic", config("x"));
    expect(kept.get(machine, "ignition")).toBeUndefined();
    expect(kept.get({ ...machine, profile: { ...machine.profile } }, "generic")).toBeUndefined();
    expect(kept.get({ ...machine, davitUrl: "https://192.0.2.1:8443" }, "generic")).toBeUndefined();
  });
});

import { expect, it } from "vitest";
import { type ProfileWorld, resolveProfile } from "../../src/controller/reconcile/resolve-profile.ts";
import type { ConfigMapObject } from "../../src/model/objects/source.ts";
import { configMapObject, profileObject } from "./objects.ts";

function resolved(configMap: ConfigMapObject, raw = false) {
  const world: ProfileWorld = {
    sha256: () => "",
    secretName: () => "",
    isGone: () => false,
    isForbidden: () => false,
    configMap: () => configMap,
    secret: () => undefined,
    checkTemplate: () => undefined,
  };
  const ignition = { kind: "configMap", name: configMap.name, key: "bu", raw } as const;
  return resolveProfile(profileObject({ templates: { ignition } }), world);
}

const butane = "variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: /a, contents: {local: a.conf}}]}\n";

it("a Butane template has the other texts of its ConfigMap that it names", () => {
  const { content, findings } = resolved(configMapObject({ bu: butane, "a.conf": "x {{y}}\n" }));
  const text = butane.replace("local: a.conf", 'inline: "x \\u007b\\u007by}}\\n"');
  expect(content.templates.ignition).toEqual({ kind: "text", text, raw: false });
  expect(findings).toEqual([]);
});

it.each([
  { name: "a name that no key has", data: { bu: butane }, reason: "InvalidTemplate", tells: "no such local text" },
  {
    name: "texts that are too large together",
    data: { bu: butane, "a.conf": "{".repeat(300_000) },
    reason: "TooLarge",
    tells: "Template is longer than 1 MiB",
  },
])("refuses $name", ({ data, reason, tells }) => {
  const { content, findings } = resolved(configMapObject(data));
  expect(content.templates.ignition).toEqual({ kind: "broken" });
  expect(findings).toEqual([expect.objectContaining({ reason, message: expect.stringContaining(tells) })]);
});

it("a raw template has none of them", () => {
  const { findings } = resolved(configMapObject({ bu: butane, "a.conf": "x" }), true);
  expect(findings).toEqual([expect.objectContaining({ code: "butane" })]);
});

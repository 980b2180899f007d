/** Specs for property tests: fields that exist, mostly with values that fit, in any combination. */

import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import type { KindSpec } from "./expression-specs.ts";

/** A spec of a Profile or a Group. Four of five break a rule, one of ten the schema, and one of ten is admitted. */
export function anySpec(): fc.Arbitrary<KindSpec> {
  const genericParts = fc.array(namedPart, { maxLength: 3 });
  const configs = { ignition: part, cloudConfig: part, generic: part, genericParts };
  const profiles = fields({ displayName: text, metadata, boot, ...configs });
  const groups = fields({
    displayName: text,
    selector: fields({
      matchLabels: fc.dictionary(label, value, { maxKeys: 3 }),
      matchExpressions: fc.array(expression, { maxLength: 3 }),
    }),
    matchAll: fc.boolean(),
    priority: mostly([0, 1, 1000], [1001, -1, 0.5, "1"]),
    hold: fc.boolean(),
    args: mostly([[], ["a", "a"]], ["a", ["a\n"], [""]]),
    metadata,
  });
  const profileRef = mostly([{ name: "web" }, { name: "a.b" }], [{}, { name: "A" }, { name: "web", namespace: "b" }]);
  return fc.oneof(
    profiles.map((spec) => ({ kind: "Profile", spec })),
    fc.tuple(groups, profileRef).map(([spec, ref]) => ({ kind: "Group", spec: { ...spec, profileRef: ref } })),
  );
}

/** Any of these fields, some of them with null for a value. */
function fields(of: Readonly<Record<string, fc.Arbitrary<JsonValue>>>): fc.Arbitrary<JsonObject> {
  const names = Object.keys(of);
  const values = Object.values(of).map((field) => fc.option(field, { freq: 12 }));
  return fc.tuple(fc.subarray(names), fc.tuple(...values)).map(([present, made]) => {
    const entries = names.map((name, at): [string, JsonValue] => [name, made[at] ?? null]);
    return Object.fromEntries(entries.filter(([name]) => present.includes(name)));
  });
}

/** A value that fits, or in one of twenty cases one that does not. */
function mostly(fitting: readonly JsonValue[], odd: readonly JsonValue[]): fc.Arbitrary<JsonValue> {
  return fc.oneof(
    { weight: 19, arbitrary: fc.constantFrom(...fitting) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const text = mostly(["a", "/assets/x", "a b", "😀"], ["", "a\nb", "a\u007f", 7, true]);
const boot = fields({
  kernel: text,
  initrd: mostly([[], ["a", "a"]], ["a", [1], [null], [""]]),
  args: mostly([[], ["a=b", "c d"]], [{}, ["a\r"]]),
  efiInitrd: fc.boolean(),
  local: mostly(["exit", "sanboot", "notFound"], ["disk", ""]),
  disk: mostly(
    [{}, { efi: ["/EFI/debian/shimx64.efi"] }, { bios: 129, efi: [] }],
    [{ efi: ["/EFI/a b.efi"] }, { efi: [String.raw`\a.efi`] }, { bios: 1 }, { bios: 256 }, { drive: 1 }, null, "hd0"],
  ),
  script: mostly(["#!ipxe", "#!ipxe\n\tshell\n"], ["#!ipxe2", "#!ipxe\r\n", ""]),
  grubScript: mostly(["exit", "a\n\tb"], ["", "a\r\n", 1]),
});
const metadata = mostly([{}, { a: null, b: ["x", { c: [1] }] }, JSON.parse('{"__proto__": {"x": 1}}')], [[], "x", 1]);
const reference = mostly(
  [
    { name: "web", key: "K_1.x" },
    { name: "a.b", key: ".." },
  ],
  [{ name: "A", key: "k" }, { name: "web", key: "/" }, { name: "web" }],
);
const source = fields({ configMapKeyRef: reference, secretKeyRef: reference });
const part = fields({ inline: text, templateFrom: source, raw: fc.boolean() });
const namedPart = fields({
  name: mostly(["user-data", "meta-data", "a.b"], ["a.sig", "A", "", 7]),
  inline: text,
  templateFrom: source,
});
const label = fc.constantFrom("role", "a-b", "mac", "uuid", "MAC", "Serial", "-a", "constructor", "__proto__", "");
const value = mostly(["x", "52:54:00:a1:9c:ae", "4c4c4544-0042-3510-8052-b4c04f4e4a32"], ["", "a\nb", 1, {}, null]);
const expression = fields({
  key: mostly(["role", "a-b", "mac", "uuid", "constructor"], ["MAC", "-a", "", 1]),
  operator: mostly(["In", "NotIn", "Exists", "DoesNotExist", "Prefix", "Glob"], ["in", "", 1]),
  values: fc.array(value, { maxLength: 2 }),
});

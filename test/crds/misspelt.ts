/** Objects with one name that does not exist, once in each place that has names of the CRDs' own. */

import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import type { SchemaNode } from "../../src/sources/admission/schema.ts";

export interface Misspelt {
  readonly kind: string;
  /** Where the name is, such as `spec.selector`. */
  readonly place: string;
  /** The names that the place has. */
  readonly names: readonly string[];
  readonly object: JsonObject;
}

/** How a Profile installs. */
function asBoots(then: string): JsonObject {
  return { then, disk: { bios: 128 } };
}

const entry = { name: "a", key: "k" };
const examples: Readonly<Record<string, JsonObject>> = {
  Group: {
    profileRef: { name: "web" },
    selector: { matchLabels: { role: "a" }, matchExpressions: [{ key: "b", operator: "Exists" }] },
    install: { generation: 1 },
  },
  Machine: { identity: { macs: ["52:54:00:a1:9c:ae"] }, install: { generation: 1 } },
  Profile: {
    effect: "Install",
    install: asBoots("sanboot"),
    reports: { labels: { os: ["installed"] } },
    boot: { kernel: "k" },
    ignition: { templateFrom: { configMapKeyRef: entry } },
    cloudConfig: { templateFrom: { secretKeyRef: entry } },
    generic: { inline: "x" },
    genericParts: [{ name: "a", inline: "x" }],
  },
};

/** Every one of them, by the schemas of the kinds' specs. */
export function misspelt(specs: ReadonlyMap<string, SchemaNode>): readonly Misspelt[] {
  return [...specs].flatMap(([kind, node]) => {
    const spec = examples[kind] ?? {};
    const whole = { apiVersion: "davit.dev/v1alpha1", kind, metadata: { name: "misspelt" }, spec };
    return spoilt(node, spec, "spec").map(({ place, names, value }) => ({
      kind,
      place,
      names,
      object: { ...whole, spec: value },
    }));
  });
}

interface Spoilt {
  readonly place: string;
  readonly names: readonly string[];
  readonly value: JsonValue;
}

/** The value with a name too many, in itself and in each place below it. */
function spoilt(node: SchemaNode, value: JsonValue, place: string): readonly Spoilt[] {
  const { items, properties } = node;
  if (Array.isArray(value)) {
    return value.flatMap((each: JsonValue, at) =>
      (items ? spoilt(items, each, `${place}[${at}]`) : []).map((inner) => ({
        ...inner,
        value: value.with(at, inner.value),
      })),
    );
  }
  if (!isJsonObject(value) || properties.size === 0) return [];
  const own = { place, names: [...properties.keys()], value: { ...value, onHold: true } };
  const below = Object.entries(value).flatMap(([name, each]) => {
    const child = properties.get(name);
    const inside = child === undefined ? [] : spoilt(child, each, `${place}.${name}`);
    return inside.map((inner) => ({ ...inner, value: { ...value, [name]: inner.value } }));
  });
  return [own, ...below];
}

/**
 * The fields of a Butane document: those of the Ignition version that it becomes, in snake case, and those that Butane
 * adds (coreos.github.io/butane/specs). `since` counts minor versions of Ignition's specification 3.
 */

import {
  cex,
  dropin,
  type Field,
  fields,
  filesystem,
  type IgnitionFields,
  ignitionConfig,
  ignitionSection,
  list,
  needed,
  since,
  storage,
  tang,
  texts,
  unit,
  user,
} from "../core/ignition-fields.ts";

/** One version of a variant. */
export interface ButaneSpec {
  /** The minor version of Ignition's specification 3 that a document becomes. */
  readonly minor: number;
  /** The fields of Fedora CoreOS that the version has. */
  readonly extensions: readonly ButaneExtension[];
  /** True if Ignition on this system has no Clevis. */
  readonly lacksClevis?: true;
  /** True if mount units may only be below `/etc` and `/var`. */
  readonly limitsMounts?: true;
}

type ButaneExtension = "bootDevice" | "grub";

const specs: ReadonlyMap<string, ButaneSpec> = new Map<string, ButaneSpec>([
  ["fcos 1.0.0", { minor: 0, extensions: [] }],
  ["fcos 1.1.0", { minor: 1, extensions: [] }],
  ["fcos 1.2.0", { minor: 2, extensions: [] }],
  ["fcos 1.3.0", { minor: 2, extensions: ["bootDevice"] }],
  ["fcos 1.4.0", { minor: 3, extensions: ["bootDevice"] }],
  ["fcos 1.5.0", { minor: 4, extensions: ["bootDevice", "grub"] }],
  ["fcos 1.6.0", { minor: 5, extensions: ["bootDevice", "grub"], limitsMounts: true }],
  ["flatcar 1.0.0", { minor: 3, extensions: [], lacksClevis: true }],
  ["flatcar 1.1.0", { minor: 4, extensions: [], lacksClevis: true }],
]);

/** Returns the specification of a document; undefined if davit does not translate this version. */
export function specOf(variant: string, version: string): ButaneSpec | undefined {
  return specs.get(`${variant} ${version}`);
}

/** The first minor versions with these. */
export const features = {
  /** A text of the document sets `compression`. */
  compressionOfTexts: 1,
  /** The unit of a filesystem that a Tang server unlocks waits for the network. */
  remoteMounts: 2,
  swapUnits: 3,
  /** The layouts of s390x. */
  mainframes: 5,
} as const;

const bootDevice = fields({
  layout: "text",
  luks: fields({
    cex: since(5, cex),
    device: since(5, "text"),
    discard: since(4, "boolean"),
    tang,
    threshold: "integer",
    tpm2: "boolean",
  }),
  mirror: fields({ devices: list("path") }),
});

const grub = fields({ users: list(fields({ name: needed("text"), passwordHash: needed("text") })) });
const tree = fields({ local: "text", path: "text" });

const root = { variant: "text", version: "text", bootDevice, grub } as const;

/** What Butane adds to a table of Ignition. */
const additions: ReadonlyMap<IgnitionFields, IgnitionFields> = new Map([
  [ignitionConfig, fields(root)],
  [storage, fields({ trees: since(1, list(tree)) })],
  [filesystem, fields({ withMountUnit: since(1, "boolean") })],
  [unit, fields({ contentsLocal: since(4, "text") })],
  [dropin, fields({ contentsLocal: since(4, "text") })],
  [user, fields({ sshAuthorizedKeysLocal: since(4, texts) })],
]);

/** A field of a Butane document. */
export interface ButaneField {
  /** In camel case. */
  readonly name: string;
  readonly field: Field;
}

/** True if a version has the field. */
export function isOfVersion({ name, field }: ButaneField, { minor, extensions }: ButaneSpec): boolean {
  const isExtension = name === "bootDevice" || name === "grub";
  return field.since <= minor && (!isExtension || extensions.includes(name));
}

const known = new WeakMap<IgnitionFields, ReadonlyMap<string, ButaneField>>();

/** Returns the fields of a mapping by their names in Butane. */
export function butaneFields(shape: IgnitionFields): ReadonlyMap<string, ButaneField> {
  const before = known.get(shape);
  if (before !== undefined) return before;
  const all = [...shape.fields, ...(additions.get(shape)?.fields ?? []), ...additionsOfResource(shape)]
    // Butane's own version decides about the one of Ignition.
    .filter(([name]) => shape !== ignitionSection || name !== "version");
  const found = new Map(all.map(([name, field]) => [snakeCase(name), { name, field }]));
  known.set(shape, found);
  return found;
}

function additionsOfResource({ fields: own }: IgnitionFields): readonly (readonly [string, Field])[] {
  const compression = own.get("compression");
  if (!own.has("source") || compression === undefined) return [];
  return [
    // A resource has both since the same version.
    ["inline", since(compression.since, "text")],
    ["local", since(1, "text")],
  ];
}

/** Returns the name that Butane gives to a field of Ignition: `size_mib` for `sizeMiB`. */
function snakeCase(name: string): string {
  return name.replace(/MiB|[A-Z]/g, (part) => `_${part.toLowerCase()}`);
}

/** Butane documents with one mistake each. */

import type { RenderReason } from "../../src/render/core/render-error.ts";

interface ButaneMistake {
  readonly name: string;
  readonly text: string;
  readonly reason: RenderReason;
  /** Line and column. */
  readonly at?: readonly [line: number, column: number];
  /** Set if Butane accepts the document. */
  readonly isOurs?: true;
}

/** A document for Fedora CoreOS 1.5.0. */
export const fcos = (...lines: readonly string[]) => ["variant: fcos", "version: 1.5.0", ...lines].join("\n");
const file = (...lines: readonly string[]) => fcos("storage:", "  files:", "    - path: /a", ...lines);
const partition = (rest: string) => fcos(`storage: {disks: [{device: /dev/a, partitions: [{${rest}}]}]}`);
export const flow = (version: string, rest: string, variant = "fcos") =>
  `variant: ${variant}\nversion: ${version}\n${rest}`;
const mirror = (layout: string) => `boot_device: {layout: ${layout}, mirror: {devices: [/dev/a, /dev/b]}}`;
const mount = (rest: string) => `storage: {filesystems: [{device: /dev/a, with_mount_unit: true, ${rest}}]}`;

export const butaneMistakes: readonly ButaneMistake[] = [
  { name: "no version", text: "variant: fcos", reason: "butaneVersion", at: [1, 1] },
  { name: "a version without its last number", text: flow("1.5", ""), reason: "butaneVersion", at: [2, 10] },
  { name: "a later version", isOurs: true, text: flow("1.7.0", ""), reason: "butaneVersion", at: [2, 10] },
  {
    name: "an experiment",
    isOurs: true,
    text: flow("1.2.0-experimental", "", "flatcar"),
    reason: "butaneVersion",
    at: [2, 10],
  },
  { name: "another variant", text: flow("4.14.0", "", "openshift"), reason: "butaneVersion", at: [2, 10] },
  { name: "an unknown field", text: file("      modus: 1"), reason: "butaneUnknown", at: [6, 7] },
  { name: "a key that is a list", text: fcos("? [a]", ": b"), reason: "butaneUnknown", at: [3, 3] },
  { name: "a merge key", text: fcos("storage: &a {}", "systemd: {<<: *a}"), reason: "butaneUnknown", at: [4, 11] },
  { name: "Ignition's name of a field", text: fcos("kernelArguments: {}"), reason: "butaneUnknown", at: [3, 1] },
  { name: "a later field", text: flow("1.3.0", "kernel_arguments: {}"), reason: "butaneUnknown", at: [3, 1] },
  { name: "a later extension", text: flow("1.2.0", "boot_device: {}"), reason: "butaneUnknown", at: [3, 1] },
  { name: "grub in 1.4.0", text: flow("1.4.0", "grub: {}"), reason: "butaneUnknown", at: [3, 1] },
  {
    name: "an extension in Flatcar",
    text: flow("1.1.0", "boot_device: {}", "flatcar"),
    reason: "butaneUnknown",
    at: [3, 1],
  },
  { name: "a list for a text", text: file("      contents: {inline: [a]}"), reason: "butaneText", at: [6, 26] },
  { name: "nothing for a text of a list", text: mountOptions("~"), reason: "butaneText", at: [3, 67] },
  { name: "a text for a mapping", text: fcos("storage: /a"), reason: "butaneMapping", at: [3, 10] },
  { name: "a mapping for a list", text: fcos("storage: {files: {}}"), reason: "butaneList", at: [3, 18] },
  { name: "a mode in quotes", text: file('      mode: "0644"'), reason: "butaneInteger", at: [6, 13] },
  { name: "a mode with an 8", isOurs: true, text: file("      mode: 0844"), reason: "butaneInteger", at: [6, 13] },
  { name: "a fraction", isOurs: true, text: file("      mode: 1.5"), reason: "butaneInteger", at: [6, 13] },
  { name: "a huge number", text: file("      mode: 9007199254740993"), reason: "butaneInteger", at: [6, 13] },
  { name: "1 for true", text: file("      overwrite: 1"), reason: "butaneBoolean", at: [6, 18] },
  { name: "true in quotes", text: file('      overwrite: "true"'), reason: "butaneBoolean", at: [6, 18] },
  { name: "a relative path", text: fcos("storage: {files: [{path: a}]}"), reason: "butanePath", at: [3, 26] },
  { name: "no path", text: fcos("storage:", "  files:", "    - mode: 1"), reason: "butaneMissing", at: [5, 7] },
  { name: "an empty entry", text: fcos("systemd: {units: [{}]}"), reason: "butaneMissing", at: [3, 19] },
  {
    name: "nothing for an entry",
    isOurs: true,
    text: fcos("systemd: {units: [~]}"),
    reason: "butaneMapping",
    at: [3, 19],
  },
  { name: "no URL", text: file("      contents: {source: file.txt}"), reason: "butaneSource", at: [6, 26] },
  {
    name: "two sources",
    text: file("      contents: {inline: a, source: 'data:,b'}"),
    reason: "butaneSources",
    at: [6, 29],
  },
  { name: "a local file", text: file("      contents: {local: b}"), reason: "butaneLocal", at: [6, 18] },
  { name: "a local unit", text: localUnit("u"), reason: "butaneLocal", at: [3, 37] },
  {
    name: "local keys",
    text: fcos("passwd: {users: [{name: a, ssh_authorized_keys_local: [b]}]}"),
    reason: "butaneLocal",
    at: [3, 28],
  },
  { name: "a tree", text: fcos("storage: {trees: [{local: t}]}"), reason: "butaneTree", at: [3, 11] },
  {
    name: "two files of one path",
    text: fcos("storage:", "  files:", "    - path: /a", "    - path: /a"),
    reason: "butaneDuplicate",
    at: [6, 7],
  },
  {
    name: "a file and a link of one path",
    text: fcos("storage: {files: [{path: /a}], links: [{path: /a, target: b}]}"),
    reason: "butaneDuplicate",
    at: [3, 10],
  },
  {
    name: "an argument that must and must not be",
    text: fcos("kernel_arguments: {should_exist: [a], should_not_exist: [a]}"),
    reason: "butaneDuplicate",
    at: [3, 19],
  },
  { name: "an unknown alias", text: fcos("storage: *a"), reason: "butaneAlias", at: [3, 10] },
  { name: "an alias of its own parent", text: fcos("storage: &a {files: [*a]}"), reason: "butaneUnknown" },
  { name: "a list in itself", text: fcos("storage: {files: &a [*a]}"), reason: "butaneMapping" },
  { name: "an alias too often", isOurs: true, text: often(101), reason: "butaneAlias", at: [109, 11] },
  {
    name: "Butane in a config to merge",
    text: fcos("ignition: {config: {replace: {inline: 'variant: fcos'}}}"),
    reason: "butaneMerge",
    at: [3, 31],
  },
  { name: "a mount without a format", text: fcos(mount("wipe_filesystem: no")), reason: "butaneMount", at: [3, 42] },
  { name: "a mount without a path", text: fcos(mount("format: ext4")), reason: "butaneMount", at: [3, 42] },
  {
    name: "a mount with a line break",
    text: fcos(mount('format: ext4, path: "/a\\nb"')),
    reason: "butaneMount",
    at: [3, 42],
  },
  {
    name: "a mount elsewhere",
    text: flow("1.6.0", mount("format: ext4, path: /variable")),
    reason: "butaneMountPath",
    at: [3, 79],
  },
  {
    name: "Clevis in Flatcar",
    text: flow("1.1.0", "storage: {luks: [{name: a, device: /dev/a, clevis: {tpm2: true}}]}", "flatcar"),
    reason: "butaneClevis",
    at: [3, 44],
  },
  { name: "an unknown layout", text: fcos(mirror("riscv64")), reason: "butaneLayout", at: [3, 15] },
  { name: "a later layout", text: fcos(mirror("s390x-virt")), reason: "butaneLayout", at: [3, 15] },
  { name: "a mirror on s390x", text: flow("1.6.0", mirror("s390x-virt")), reason: "butaneMirror", at: [3, 35] },
  { name: "one disk", text: fcos("boot_device: {mirror: {devices: [/dev/a]}}"), reason: "butaneMirror", at: [3, 15] },
  {
    name: "a DASD of another name",
    text: flow("1.6.0", "boot_device: {layout: s390x-eckd, luks: {device: /dev/sda, tpm2: true}}"),
    reason: "butaneLuks",
    at: [3, 35],
  },
  {
    name: "a card on x86_64",
    text: flow("1.6.0", "boot_device: {luks: {cex: {enabled: true}}}"),
    reason: "butaneLuks",
    at: [3, 15],
  },
  { name: "GRUB without a hash", text: fcos("grub: {users: [{name: a}]}"), reason: "butaneMissing", at: [3, 16] },
  {
    name: "GRUB with a command",
    isOurs: true,
    text: fcos('grub: {users: [{name: "a\\"\\nreboot", password_hash: b}]}'),
    reason: "butaneGrub",
    at: [3, 16],
  },
  { name: "a custom tag", isOurs: true, text: fcos("storage: !mine {}"), reason: "notJson" },
  { name: "a repeated key", text: fcos("storage: {}", "storage: {}"), reason: "notJson", at: [4, 1] },
  { name: "nine MiB by aliases", isOurs: true, text: large(), reason: "butaneTooLarge" },
  { name: "lists by aliases", text: wide("{inline: x}"), reason: "butaneTooLarge" },
  { name: "empty mappings by aliases", text: wide("{}", 15_000), reason: "butaneTooLarge" },
  {
    name: "a path with ..",
    text: file("      contents: {}").replace("/a", "/a/../b"),
    reason: "butanePath",
    at: [5, 13],
  },
  {
    name: "a path with a slash at its end",
    text: fcos("storage: {links: [{path: /a/}]}"),
    reason: "butanePath",
    at: [3, 26],
  },
  { name: "an empty device", text: fcos('storage: {disks: [{device: ""}]}'), reason: "butanePath", at: [3, 28] },
  { name: "a unit without a type", text: fcos("systemd: {units: [{name: a}]}"), reason: "butaneUnitName", at: [3, 26] },
  {
    name: "a drop-in of another type",
    text: fcos("systemd: {units: [{name: a.service, dropins: [{name: b}]}]}"),
    reason: "butaneUnitName",
    at: [3, 54],
  },
  {
    name: "an unknown filesystem",
    text: fcos("storage: {filesystems: [{device: /dev/a, format: ext3}]}"),
    reason: "butaneChoice",
    at: [3, 50],
  },
  {
    name: "a format of a later version",
    text: flow("1.3.0", "storage: {filesystems: [{device: /dev/a, format: none}]}"),
    reason: "butaneChoice",
    at: [3, 50],
  },
  {
    name: "an unknown RAID",
    text: fcos("storage: {raid: [{name: a, devices: [/dev/a], level: raid7}]}"),
    reason: "butaneChoice",
    at: [3, 54],
  },
  {
    name: "a RAID without devices",
    text: fcos("storage: {raid: [{name: a, level: raid1, devices: []}]}"),
    reason: "butaneMissing",
    at: [3, 18],
  },
  {
    name: "an unknown compression",
    text: file("      contents: {inline: a, compression: xz}"),
    reason: "butaneChoice",
    at: [6, 42],
  },
  {
    name: "a short hash",
    text: file("      contents: {verification: {hash: sha512-ab}}"),
    reason: "butaneHash",
    at: [6, 39],
  },
  {
    name: "sha256 in 1.0.0",
    text: flow("1.0.0", `storage: {files: [{path: /a, contents: {verification: {hash: sha256-${"0".repeat(64)}}}}]}`),
    reason: "butaneHash",
    at: [3, 62],
  },
  {
    name: "a GUID with a letter",
    text: partition("label: a, guid: 0FC63DAF-8483-4772-8E79-3D69D8477DEX"),
    reason: "butaneGuid",
    at: [3, 66],
  },
  { name: "a colon in a label", text: partition('label: "a:b"'), reason: "butaneLabel", at: [3, 57] },
  { name: "a label of 37 bytes", text: partition(`label: ${"é".repeat(18)}a`), reason: "butaneLabel", at: [3, 57] },
  { name: "a partition without a name", text: partition("size_mib: 1"), reason: "butaneMissing", at: [3, 49] },
  {
    name: "a proxy without a scheme",
    text: fcos("ignition: {proxy: {http_proxy: 'a:1'}}"),
    reason: "butaneUrl",
    at: [3, 32],
  },
  {
    name: "Tang without a thumbprint",
    text: fcos("boot_device: {luks: {tang: [{url: 'https://a'}]}}"),
    reason: "butaneMissing",
    at: [3, 29],
  },
  { name: "a mode of five digits", text: file("      mode: 010000"), reason: "butaneMode", at: [6, 13] },
  { name: "a negative mode", text: file("      mode: -1"), reason: "butaneMode", at: [6, 13] },
  { name: "overwrite without contents", text: file("      overwrite: true"), reason: "butaneOverwrite", at: [6, 7] },
  { name: "two names of an owner", text: file("      user: {id: 1, name: a}"), reason: "butaneOwner", at: [6, 13] },
  {
    name: "a filesystem without a format",
    text: fcos("storage: {filesystems: [{device: /dev/a, label: a}]}"),
    reason: "butaneMissing",
    at: [3, 25],
  },
];

function mountOptions(option: string): string {
  return fcos(`storage: {filesystems: [{device: /dev/a, mount_options: [noatime, ${option}]}]}`);
}

function localUnit(rest: string): string {
  return fcos(`systemd: {units: [{name: a.service, contents_local: ${rest}}]}`);
}

export function often(count: number): string {
  const options = Array.from({ length: count }, () => "        - *a");
  const filesystem = ["    - device: /dev/a", "      format: ext4", "      label: &a x", "      options:"];
  return fcos("storage:", "  filesystems:", ...filesystem, ...options);
}

function wide(resource: string, length = 12_000): string {
  const append = Array.from({ length }, () => resource).join(",");
  const files = Array.from({ length: 99 }, (_, at) => `    - {path: /${at}, append: *list}`);
  return fcos("storage:", "  files:", `    - {path: /a, append: &list [${append}]}`, ...files);
}

function large(): string {
  const files = Array.from({ length: 16 }, (_, at) => `    - {path: /${at}, contents: {inline: *text}}`);
  return fcos("storage:", "  files:", `    - {path: /a, contents: {inline: &text ${"x".repeat(600_000)}}}`, ...files);
}

/** `disk` of a boot from the disk and of an install, as the CRD admits and refuses it. */

import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import type { KindSpec } from "./expression-specs.ts";

/** One Profile for each of the two places. */
function disks(disk: JsonValue, way = "sanboot"): readonly KindSpec[] {
  const install = { then: way, disk };
  return [
    { kind: "Profile", spec: { boot: { local: way, disk } } },
    { kind: "Profile", spec: { effect: "Install", boot: { kernel: "k" }, install } },
  ];
}

function localDisk(disk: JsonObject): JsonObject {
  return { boot: { local: "sanboot", disk } };
}

export const admittedDisks: readonly KindSpec[] = [
  {},
  { efi: ["/EFI/debian/shimx64.efi", "/a.efi", "/EFI/x_1/a+b-c..d.EFI"], bios: 0x81 },
  { efi: [], bios: 0x80 },
  { bios: 0x8f },
].flatMap((disk) => disks(disk));

export const disksRefusedByRules: readonly (KindSpec & { readonly message: string })[] = [
  ...["exit", "notFound"].flatMap((way) => {
    const [local, install] = disks({}, way);
    return [
      { kind: "Profile", spec: local?.spec ?? {}, message: "disk is for sanboot: set local: sanboot, or remove disk" },
      { kind: "Profile", spec: install?.spec ?? {}, message: "disk is for sanboot: set then: sanboot, or remove disk" },
    ];
  }),
  {
    kind: "Profile",
    spec: { boot: { kernel: "k", disk: {} } },
    message: "disk is for sanboot: set local: sanboot, or remove disk",
  },
  ...[0, 1, 127, 144, 255].flatMap((bios) =>
    disks({ bios }).map((spec) => ({
      ...spec,
      message: "a disk of the BIOS has a number of 0x80 (the first) to 0x8f: correct it",
    })),
  ),
];

/** What a boot loader could take for more than one path, and what is no path. */
const unusable: readonly string[] = [
  ...["", "/", "EFI/a.efi", "/EFI/a", "/EFI/a.efi/", "//a.efi", "/.efi", "/EFI/a.efi.", "/EFI/.a.efi"],
  ...[String.raw`\EFI\debian\shimx64.efi`, String.raw`/EFI\a.efi`, "/../a.efi", "/EFI/../a.efi", "/EFI/./a.efi"],
  ...["/EFI/-a.efi", "/EFI/a b.efi", "/EFI/a.efi ", "/EFI/a.efi\n", "/EFI/$a.efi", `/EFI/\${a}.efi`, '/EFI/"a.efi'],
  ...["/EFI/a;b.efi", "/EFI/a|b.efi", "/EFI/#a.efi", "/EFI/ä.efi", "--set=x.efi", "(hd0,gpt1)/EFI/a.efi"],
  ...["{{efi}}.efi", "/EFI/{{name}}.efi"],
];

export const disksRefusedBySchema: readonly (KindSpec & { readonly text: string })[] = [
  ...unusable.flatMap((path) => disks({ efi: [path] }).map((spec) => ({ ...spec, text: "is no path of a loader" }))),
  { kind: "Profile", spec: localDisk({ efi: "/EFI/debian/shimx64.efi" }), text: "must be a list" },
  { kind: "Profile", spec: localDisk({ bios: "0x80" }), text: "must be a whole number" },
  { kind: "Profile", spec: localDisk({ bios: -1 }), text: "must be 0 or more" },
  { kind: "Profile", spec: localDisk({ bios: 256 }), text: "must be 255 or less" },
  { kind: "Profile", spec: localDisk({ drive: 0x80 }), text: "correct its name to one of bios, efi" },
];

export const diskBounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
  ["the loaders of a disk", "Profile", localDisk({ efi: loaders(8) }), localDisk({ efi: loaders(9) })],
  ["a loader of a disk", "Profile", localDisk({ efi: [longest(128)] }), localDisk({ efi: [longest(129)] })],
];

function loaders(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `/EFI/${at}.efi`);
}

function longest(length: number): string {
  return `/${"x".repeat(length - 5)}.efi`;
}

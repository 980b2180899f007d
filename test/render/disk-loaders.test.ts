import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DiskLoaders } from "../../src/model/permits/permit.ts";
import { renderGrub } from "../../src/render/grub/grub.ts";
import { renderIpxe } from "../../src/render/ipxe/ipxe.ts";
import { compileCheck } from "../../src/sources/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { readKindSchemas, toSchemaNode } from "../../src/sources/admission/schema.ts";
import { missing } from "../helpers/requirements.ts";

const [schema] = (await readCrds(packagedCrdsDirectory))
  .flatMap(readKindSchemas)
  .filter(({ kind }) => kind === "Profile");
if (schema === undefined) throw new Error("The packaged CRDs have a Profile");
const check = compileCheck(toSchemaNode(schema.spec));

function isAdmitted(path: string): boolean {
  return check({ boot: { local: "sanboot", disk: { efi: [path] } } }).kind === "good";
}

function ipxeLines(disk: DiskLoaders): readonly string[] {
  return renderIpxe({ kind: "local", local: "sanboot", disk })?.body.trimEnd().split("\n") ?? [];
}

function grubConfig(disk: DiskLoaders): string {
  const boot = { kind: "local", local: "sanboot", disk } as const;
  const context = { labels: new Map(), authority: "192.0.2.1:8080", isGrubClient: true } as const;
  return renderGrub({ title: "t", boot, separator: "auto", commands: "auto", ...context })?.body ?? "";
}

const letters = ["a", "Z", "0", "_", "+", "-", ".", "/", "\\", " ", "\t", "\n", '"', "'", "$", "{", "}", "#", ";", "|"];
const odd = fc.string({
  unit: fc.constantFrom(...letters, "&", "(", ")", "*", "=", "`", "~", "%", "ä", "\u00a0"),
  maxLength: 12,
});
const part = fc.string({ unit: fc.constantFrom("a", "Z", "0", "_", "+", "-", "."), minLength: 1, maxLength: 6 });
const usual = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join("/")}.efi`);
const anyPath = fc.oneof(
  usual,
  odd,
  odd.map((text) => `/EFI/${text}.efi`),
  fc.string({ unit: "grapheme" }),
);

describe("the path of a loader", () => {
  it("is one argument of iPXE, or is refused", () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        if (!isAdmitted(path)) return;
        const line = ipxeLines({ efi: [path] })[2] ?? "";
        const words = [
          "sanboot",
          "--no-describe",
          "--drive",
          "0",
          "--filename",
          path.replaceAll("/", "\\"),
          "&&",
          "exit",
          "||",
        ];
        expect(line.split(/\s+/)).toEqual(words);
        expect(words[5]).toMatch(/^\\[-\w.+\\]+$/);
      }),
      { numRuns: 2000 },
    );
  });

  it("is one argument of GRUB that begins with a slash, or is refused", () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        if (!isAdmitted(path)) return;
        expect(path).toMatch(/^\/[-\w.+/]+$/);
        expect(
          path
            .split("/")
            .slice(1)
            .some((each) => /^(?:$|[-.])/.test(each)),
        ).toBe(false);
        expect(grubConfig({ efi: [path] })).toContain(`\nfor loader in "${path}"; do\n`);
      }),
      { numRuns: 2000 },
    );
  });

  it.skipIf(missing("grub"))("stays in a config that GRUB's own parser takes", () => {
    const paths = fc.sample(anyPath, { numRuns: 4000, seed: 7 }).filter(isAdmitted);
    expect(paths.length).toBeGreaterThan(200);
    const input = [grubConfig({}), ...paths.map((path) => grubConfig({ efi: [path], bios: 0x8f }))].join("");
    expect(() => execFileSync("grub-script-check", { input, stdio: "pipe" })).not.toThrow();
  });
});

describe("a script that starts a found disk", () => {
  const every: readonly DiskLoaders[] = [
    {},
    { bios: 0x81 },
    { efi: ["/a.efi"] },
    { efi: ["/a.efi", "/b.efi"], bios: 0x8f },
  ];

  it.each(every)("ends in exit, and loads no file of a network: %j", (disk) => {
    expect(ipxeLines(disk).at(-1)).toMatch(/(?:^| )exit$/);
    expect(grubConfig(disk)).toMatch(/\nfi\nexit\n\}\n$/);
    for (const text of [ipxeLines(disk).join("\n"), grubConfig(disk)]) {
      expect(text).not.toMatch(/^(?:kernel|initrd|linux|chain |autoboot|configfile)|http/m);
    }
  });

  it.each(every)("never comes to the floppy disk of a BIOS: %j", (disk) => {
    const [, first, ...rest] = ipxeLines(disk);
    const drive = (disk.bios ?? 0x80).toString(16);
    expect(first).toBe(`iseq \${platform} efi || sanboot --no-describe --drive 0x${drive} || exit`);
    expect(rest.filter((line) => line.includes("--drive 0 ")).every((line) => line.includes(" --filename "))).toBe(
      true,
    );
  });

  it("tries only the loaders that the Profile names", () => {
    expect(grubConfig({ efi: ["/a.efi"] })).not.toContain("BOOT");
    expect(ipxeLines({ efi: ["/a.efi"] }).slice(2)).toEqual([
      String.raw`sanboot --no-describe --drive 0 --filename \a.efi && exit ||`,
      "exit",
    ]);
  });
});

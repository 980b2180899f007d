import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KernelBoot } from "../../src/model/objects/profile.ts";
import { renderBoot } from "../../src/render/boot/boot.ts";
import { RenderError } from "../../src/render/core/render-error.ts";
import { renderGrub } from "../../src/render/grub/grub.ts";
import { renderIpxe } from "../../src/render/ipxe/ipxe.ts";
import { compile, renderErrorOf } from "./fixtures.ts";
import { readByGrub, readByIpxe, readByLinux, writtenByGrub } from "./kernel-line.ts";

const plain: KernelBoot = { kernel: "/k", initrd: [], args: [], efiInitrd: false };

function ipxeOf(boot: Partial<KernelBoot>, v: string): string {
  return renderIpxe(renderBoot({ ...plain, ...boot }, { v }, compile))?.body ?? "";
}

function grubOf(boot: Partial<KernelBoot>, v: string, labels = new Map<string, string>()): string {
  const filled = renderBoot({ ...plain, ...boot }, { v }, compile);
  const config = renderGrub({
    title: "t",
    boot: filled,
    labels,
    authority: "192.0.2.1",
    separator: "auto",
    commands: "plain",
    isGrubClient: false,
  });
  return config?.body.split("\n").find((line) => line.startsWith("linux ")) ?? "";
}

/** What Linux gets, by iPXE and by GRUB, or the reason why it does not. */
function readBoth(boot: Partial<KernelBoot>, v: string) {
  return {
    ipxe: outcomeOf(() => readByLinux(readByIpxe(ipxeOf(boot, v)) ?? "")),
    grub: outcomeOf(() => readByLinux(writtenByGrub(readByGrub(grubOf(boot, v)).slice(1)))),
  };
}

function outcomeOf(read: () => readonly string[]): readonly string[] | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof RenderError) return error.reason;
    throw error;
  }
}

it("an argument of cloud-init keeps its semicolon", () => {
  const argument = "ds=nocloud;s=http://192.0.2.1:8080/nocloud/52-54-00-00-00-01/";
  expect(readBoth({ args: [argument] }, "")).toEqual({ ipxe: [argument], grub: [argument] });
});

describe("a value is one argument to Linux, whoever hands it over", () => {
  it.each([
    "two words",
    "two  words",
    " x ",
    "a && reboot",
    "a || b ; c",
    "# x",
    "#",
    "&&",
    "$5",
    "a&b|c;d",
    "{x}",
    "} ${",
    "${x",
    "a # ${ b",
    "ä😀",
    "à la carte",
    "",
  ])("`%s`", (v) => {
    const read = [`note=${v}`, "role=x", ...(v === "" ? [] : [v]), "quiet"];
    expect(readBoth({ args: ["note={{v}}", "role=x {{v}}", "quiet"] }, v)).toEqual({ ipxe: read, grub: read });
  });

  it.each([
    { v: `say "hi" now`, grub: "grubEscapes" },
    { v: `x"y"z`, grub: "grubEscapes" },
    { v: "it's", grub: "grubEscapes" },
    { v: String.raw`a\b`, grub: "grubEscapes" },
    { v: "à", grub: "grubSplits" },
  ])("`$v`, or it is refused: $grub", ({ v, grub }) => {
    expect(readBoth({ args: ["note={{v}}", "quiet"] }, v)).toEqual({ ipxe: [`note=${v}`, "quiet"], grub });
  });

  it.each([
    { v: `5" disk`, ipxe: "valueIsNoWord" },
    { v: '"x"', ipxe: "valueIsNoWord" },
    { v: `a" b "c d`, ipxe: "valueIsNoWord" },
    { v: `\${mac}`, ipxe: "valueIsToken" },
    { v: `a \${ b } c`, ipxe: "valueIsToken" },
  ])("`$v` is refused: $ipxe", ({ v, ipxe }) => {
    expect(readBoth({ args: ["note={{v}}"] }, v).ipxe).toBe(ipxe);
  });

  it("a value alone is refused where Linux would drop a quote of it", () => {
    expect(readBoth({ args: ["{{v}}"] }, '==""').ipxe).toBe("valueIsNoWord");
  });

  it("a token in a value is none to GRUB", () => {
    expect(readBoth({ args: ["note={{v}}"] }, `\${mac}`).grub).toEqual([`note=\${mac}`]);
  });

  it.each([
    { arg: `x\${mac}{{v}}`, v: "{a}" },
    { arg: `$\{{v}}`, v: "{mac}" },
    { arg: `\${net{{v}}`, v: "0}" },
  ])("`$arg` with `$v` would be a token of iPXE", ({ arg, v }) => {
    expect(readBoth({ args: [arg] }, v).ipxe).toBe("valueIsToken");
  });
});

describe("what the author writes stays as it is", () => {
  it.each([
    { name: "tokens and words beside a value", args: [`u=\${uuid} a  b {{v}}`], line: `u=\${uuid} a b "x y"` },
    { name: "quotes around a value", args: [`note="{{v}}" end`], line: `note="x y" end` },
    { name: "quotes within a value's word", args: [`c={"a":"{{v}}"}`], line: `c={"a":"x y"}` },
    { name: "an argument without a value", args: [`a  b="c # d"`, "n={{v}}"], line: `a  b="c # d" "n=x y"` },
    { name: "words from a loop", args: ["{{#each (split v ' ')}}{{this}} {{/each}}"], line: "x y" },
  ])("$name", ({ args, line }) => {
    expect(ipxeOf({ args }, "x y").split("\n")[1]?.trimEnd()).toBe(`kernel /k ${line}`);
  });

  it("to the byte, where the values are harmless", () => {
    const args = ["a={{v}}  b", `open="{{v}} x`, "||", `x$\{y {{v}}`];
    expect(ipxeOf({ args }, "v-1.0/2")).toBe(`#!ipxe\nkernel /k a=v-1.0/2  b open="v-1.0/2 x || x$\{y v-1.0/2\nboot\n`);
  });

  it("a setting comes first only where a value's blank is none to iPXE", () => {
    expect(ipxeOf({ args: ["n={{v}}"] }, "a && b")).toBe(
      `#!ipxe\nset davit-blank:hex 20\nkernel /k "n=a\${davit-blank:string}&&\${davit-blank:string}b"\nboot\n`,
    );
    expect(ipxeOf({ args: ["n={{v}}"] }, "a & b")).toBe(`#!ipxe\nkernel /k "n=a & b"\nboot\n`);
  });

  it("a quote that is never closed is refused beside a value that needs quotes", () => {
    expect(readBoth({ args: [`a="b`, "n={{v}}"] }, "x y").ipxe).toBe("openQuote");
  });
});

const letters = fc.constantFrom("a", " ", '"', "'", "\\", "$", "{", "}", "&", "|", ";", "#", "=", "à", "\u00a0", "-");
const values = fc.oneof(fc.string({ unit: letters, maxLength: 8 }), fc.string({ unit: "grapheme", maxLength: 6 }));

const written: Readonly<Record<string, (v: string) => readonly string[]>> = {
  "n={{v}}": (v) => [`n=${v}`],
  "{{v}}": (v) => [v],
  'n="{{v}}"': (v) => [`n=${v}`],
  "a{{v}}b": (v) => [`a${v}b`],
  "p {{v}}  q": (v) => ["p", v, "q"],
};

it("whatever a value is, it is one argument or it is refused", () => {
  fc.assert(
    fc.property(values, fc.array(fc.constantFrom(...Object.keys(written)), { maxLength: 3 }), (v, args) => {
      fc.pre(!/\p{Cc}/u.test(v) && v.trim() !== "");
      const { ipxe, grub } = readBoth({ args: ["first", ...args, "last"] }, v);
      const meant = ["first", ...args.flatMap((arg) => written[arg]?.(v) ?? []), "last"];
      for (const read of [ipxe, grub]) if (typeof read !== "string") expect(read).toEqual(meant);
    }),
    { numRuns: 3_000 },
  );
});

it("whatever a value is, a quote that is left open beside it holds no other one", () => {
  fc.assert(
    fc.property(values, (v) => {
      fc.pre(!/\p{Cc}/u.test(v) && /[^\w%+,./:=@~-]/.test(v));
      const { ipxe, grub } = readBoth({ args: ["first", `"n={{v}}`, "last"] }, v);
      expect(ipxe).toBe("openQuote");
      if (typeof grub !== "string") expect(grub).toEqual(["first", `n=${v}`, "last"]);
    }),
  );
});

describe("a value in kernel or initrd", () => {
  it.each(["a b", "a && reboot", `\${mac}`, "#", "--autofree", "||", "&&", ";", `a"b`, String.raw`a\b`])(
    "is refused where it would be more than a location: `%s`",
    (v) => {
      for (const boot of [{ kernel: "{{v}}" }, { initrd: ["{{v}}"] }, { initrd: ["--name x {{v}}"] }]) {
        expect(renderErrorOf(() => renderBoot({ ...plain, ...boot }, { v }, compile)).reason).toBe("valueInLocation");
      }
    },
  );

  it.each(["/assets/a-1.0;x?a=1&b=%20|c", "(http;192.0.2.1:80)/k", "é"])("is served as it is: `%s`", (v) => {
    expect(ipxeOf({ kernel: "{{v}}", initrd: ["--name main {{v}}"] }, v)).toBe(
      `#!ipxe\nkernel ${v}\ninitrd --name main ${v}\nboot\n`,
    );
  });
});

it("a label that GRUB fills in is a value, too", () => {
  const read = (serial: string) => grubOf({ args: [`s=\${serial}`] }, "", new Map([["serial", serial]]));
  expect(read("a && b")).toBe(`linux "(http;192.0.2.1)/k" "s=a && b"`);
  expect(renderErrorOf(() => read('x" init=/bin/sh "')).reason).toBe("grubEscapes");
});

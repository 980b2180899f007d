import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Labels } from "../../src/model/labels/labels.ts";
import type { FilledBoot, FilledKernel } from "../../src/render/boot/boot.ts";
import { textOf } from "../../src/render/boot/pieces.ts";
import { renderErrorOf } from "../../src/render/core/render-error.ts";
import { type GrubInput, renderGrub } from "../../src/render/grub/grub.ts";
import { guardOf } from "../../src/render/grub/guard.ts";
import { foreignLocation } from "../../src/render/grub/locations.ts";
import { fillTokens, foreignToken, quote } from "../../src/render/grub/words.ts";
import { missing } from "../helpers/requirements.ts";

const labels = new Map([
  ["uuid", "a1b2c3d4-0000-4000-8000-00000000abcd"],
  ["mac", "52:54:00:a1:9c:ae"],
  ["serial", "VMware-56 4d"],
]);

function input(part: Partial<GrubInput>): GrubInput {
  return {
    title: "Debian 12",
    boot: kernel({}),
    labels,
    authority: "192.0.2.1:8080",
    separator: "auto",
    commands: "auto",
    isGrubClient: false,
    ...part,
  };
}

function kernel(part: Partial<FilledKernel>): FilledBoot {
  return {
    kind: "kernel",
    kernel: "/assets/vmlinuz",
    initrd: ["/assets/initrd"],
    args: ["quiet"],
    efiInitrd: false,
    ...part,
  };
}

const tokens = `config=http://192.0.2.1:8080/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`;
const cases: readonly { name: string; part: Partial<GrubInput> }[] = [
  { name: "documented", part: {} },
  { name: "grub-client", part: { isGrubClient: true } },
  { name: "comma", part: { separator: "comma" } },
  { name: "semicolon-for-grub-client", part: { separator: "semicolon", isGrubClient: true } },
  { name: "plain-commands", part: { commands: "plain" } },
  { name: "arm64", part: { labels: new Map([["arch", "arm64"]]) } },
  { name: "arm64-efi-commands", part: { commands: "efi", labels: new Map([["arch", "aarch64"]]) } },
  { name: "no-initrd", part: { boot: kernel({ initrd: [] }) } },
  {
    name: "two-initrds",
    part: { boot: kernel({ initrd: ["--name main /assets/a", "/assets/b?v=1"], efiInitrd: true }) },
  },
  { name: "tokens", part: { boot: kernel({ args: [tokens, `s=\${serial} h=\${hostname} n=\${net0/mac} u=\${x`] }) } },
  {
    name: "words",
    part: { boot: kernel({ args: ["console=tty0 console=ttyS0", `opt="two words" end`, String.raw`a\b$c`] }) },
  },
  {
    name: "locations",
    part: {
      isGrubClient: true,
      boot: kernel({
        kernel: "http://198.51.100.7/vmlinuz",
        initrd: ["(http,198.51.100.7)/a", "HTTP://198.51.100.7:81/b?c", "http://198.51.100.7", "assets/c"],
      }),
    },
  },
  {
    name: "tftp",
    part: { boot: kernel({ kernel: "tftp://198.51.100.7/k", initrd: ["TFTP://boot.example:69/a/i"] }) },
  },
  {
    name: "kernel-with-arguments",
    part: { boot: kernel({ kernel: `--name k /k auto=true url="http://x/a b" m=\${mac}`, args: ["quiet"] }) },
  },
  { name: "title-quoted", part: { title: `Rack "A" $5 \\ \n} é` } },
  { name: "guarded", part: { guard: guardOf(labels, (label) => label === "mac") } },
  { name: "guarded-by-all", part: { guard: guardOf(labels, () => true) } },
  { name: "guarded-without-mac", part: { guard: guardOf(new Map(), () => true) } },
  { name: "local-exit", part: { boot: { kind: "local", local: "exit" } } },
  { name: "local-sanboot", part: { boot: { kind: "local", local: "sanboot" } } },
  { name: "local-disk", part: { boot: { kind: "local", local: "sanboot", disk: {} } } },
  {
    name: "local-disk-loaders",
    part: {
      boot: {
        kind: "local",
        local: "sanboot",
        disk: { efi: ["/EFI/debian/shimx64.efi", "/EFI/x_1/a+b.EFI"], bios: 0x81 },
      },
    },
  },
];

describe("renderGrub", () => {
  it.each(cases)("$name", async ({ name, part }) => {
    const rendered = renderGrub(input(part));
    expect(rendered?.contentType).toBe("text/plain; charset=utf-8");
    await expect(rendered?.body).toMatchFileSnapshot(`../golden/grub/${name}.cfg`);
  });

  it.each([
    { location: "https://192.0.2.7/k" },
    { location: "HTTPS://192.0.2.7/k" },
    { location: "http://user:password@192.0.2.7/k" },
    { location: "http://a,81/k" },
    { location: "http:///k" },
    { location: "http:k" },
    { location: "//192.0.2.7/k" },
    { location: "nfs://192.0.2.7/k" },
    { location: "nfs:192.0.2.7:/k" },
    { location: "ftp://192.0.2.7/k" },
    { location: "tftp://192.0.2.7:6969/k" },
    { location: "tftp://[fd00::1]/k" },
    { location: "tftp://192.0.2.7/a%20b" },
    { location: "tftp://192.0.2.7/" },
    { location: "file:/k" },
    { location: "../k" },
    { location: "--timeout 5 /k" },
    { location: "(http" },
    { location: "http://192.0.2.7/k#part" },
  ])("refuses what GRUB cannot load: $location", ({ location }) => {
    for (const boot of [kernel({ kernel: location }), kernel({ initrd: ["/i", location] })]) {
      const { reason } = renderErrorOf(() => renderGrub(input({ boot }))) ?? {};
      expect(reason).toMatch(/^grub(?:Location|InitrdWords)$/);
    }
    expect(foreignLocation(location, "kernel")).toBe("grubLocation");
  });

  it.each(["/generic?mac=1 preseed.cfg mode=644", "--name fw http://192.0.2.7/f /etc/f"])(
    "refuses an initrd of which iPXE makes a file: %s",
    (initrd) => {
      const error = renderErrorOf(() => renderGrub(input({ boot: kernel({ initrd: [initrd] }) })));
      expect(error?.message).toMatch(/put it into a cpio archive, or set boot\.grubScript$/);
      expect(foreignLocation(initrd, "initrd[0]")).toBe("grubInitrdWords");
    },
  );

  it.each([
    `{{davit.url}}/assets/k`,
    `{{default "a b" base}}/k`,
    `http://{{host}}/k`,
    `http://\${next-server}:{{port}}/k`,
    `tftp://{{host}}/k`,
    `/assets/\${mac:hexhyp}/k`,
    `{{#if secure}}https{{else}}http{{/if}}://a/k`,
    `(tftp,192.0.2.7)/k`,
    `/k auto=true`,
  ])("takes the text of a Profile that GRUB can load: %s", (text) => {
    expect(foreignLocation(text, "kernel")).toBeUndefined();
  });

  it("has no config for a machine that shall find nothing", () => {
    expect(renderGrub(input({ boot: { kind: "local", local: "notFound" } }))).toBeUndefined();
  });

  const text = fc.string({ unit: "grapheme", maxLength: 30 });
  const hostile = fc.string({
    unit: fc.constantFrom('"', "\\", "$", "{", "}", "'", "`", ";", "&", "|", "#", "\n", " ", "<", "(", "x"),
    maxLength: 20,
  });
  const any = fc.oneof(text, hostile);
  // What a machine says of itself fills a part of an argument, and some of that is refused.
  const harmless = fc.string({ unit: fc.constantFrom("$", "{", "}", ";", "&", "|", "#", " ", "x"), maxLength: 20 });
  const anyInput = fc.record({
    title: any,
    boot: fc.record({ kernel: any, initrd: fc.array(any, { maxLength: 3 }), args: fc.array(any, { maxLength: 4 }) }),
    serial: harmless,
    isGrubClient: fc.boolean(),
    commands: fc.constantFrom<GrubInput["commands"]>("auto", "efi", "plain"),
  });
  interface AnyInput extends Pick<GrubInput, "title" | "isGrubClient" | "commands"> {
    readonly boot: { readonly kernel: string; readonly initrd: readonly string[]; readonly args: readonly string[] };
    readonly serial: string;
  }
  /** False for a token that no label fills, and for a location that GRUB cannot load. */
  const isFilled = (any: AnyInput) => renderErrorOf(() => renderAny(any)) === undefined;
  const renderAny = ({ title, boot, serial, isGrubClient, commands }: AnyInput) =>
    renderGrub(
      input({
        title,
        isGrubClient,
        commands,
        labels: new Map([["serial", serial]]),
        boot: kernel({ ...boot, args: [...boot.args, `s=\${serial}`] }),
      }),
    )?.body ?? "";

  it("always has the same number of lines for the same number of initrds", () => {
    fc.assert(
      fc.property(anyInput, (value) => {
        const check = value.isGrubClient ? 6 : 0;
        const inEntry = 7 + check + (value.boot.initrd.length > 0 ? 2 + check : 0);
        fc.pre(isFilled(value));
        expect(renderAny(value).split("\n")).toHaveLength(inEntry + (value.commands === "plain" ? 1 : 7));
      }),
    );
  });

  it.skipIf(missing("grub"))("GRUB's own parser takes whatever the arguments are", () => {
    const samples = fc.sample(anyInput, { numRuns: 500, seed: 42 }).filter(isFilled).map(renderAny);
    const golden = cases.map(({ part }) => renderGrub(input(part))?.body ?? "");
    // All in one run of the program: configs follow each other as in one file.
    const check = () => execFileSync("grub-script-check", { input: [...golden, ...samples].join(""), stdio: "pipe" });
    expect(check).not.toThrow();
    expect(() => execFileSync("grub-script-check", { input: "linux a&b\n", stdio: "pipe" })).toThrow();
  });
});

describe("tokens and quotes", () => {
  const fill = (text: string, values: Labels) => textOf(fillTokens(text, values));

  it.each([
    { text: `\${uuid}`, filled: "a1b2c3d4-0000-4000-8000-00000000abcd" },
    { text: `\${mac} \${mac:hexhyp}`, filled: "52:54:00:a1:9c:ae 52-54-00-a1-9c-ae" },
    { text: `\${serial}`, filled: "VMware-56 4d" },
    { text: `[\${hostname}\${domain}]`, filled: "[]" },
    { text: `\${net0/mac} \${netX/mac:hexhyp}`, filled: "52:54:00:a1:9c:ae 52-54-00-a1-9c-ae" },
    { text: `\${mac:hexraw} \${net1/mac:hex}`, filled: "525400a19cae 52:54:00:a1:9c:ae" },
    { text: `\${serial:uristring}`, filled: "VMware-56%204d" },
    { text: `\${uuid $uuid $`, filled: `\${uuid $uuid $` },
  ])("the tokens of `$text` are filled", ({ text, filled }) => {
    expect(fill(text, labels)).toBe(filled);
    expect(
      fill(
        `\${hostname}.\${domain}`,
        new Map([
          ["hostname", "n1"],
          ["domain", "lab"],
        ]),
      ),
    ).toBe("n1.lab");
  });

  it("labels of /chain.ipxe fill their tokens", () => {
    const sent = new Map([
      ["arch", "arm64"],
      ["platform", "efi"],
      ["net1/mac", "52-54-00-00-00-01"],
    ]);
    expect(fill(`\${arch} \${buildarch} \${platform} \${net1/mac}`, sent)).toBe("arm64 arm64 efi 52:54:00:00:00:01");
  });

  it.each(["next-server", "ip", "", "arch", "serial:hex", "net0/dhcp/hostname", "mac:hexhyp:x"])(
    "a token that no label fills is refused: %s",
    (name) => {
      expect(renderErrorOf(() => fill(`a=\${${name}}`, labels))?.reason).toBe("grubToken");
      const isForeign = foreignToken(`a=\${${name}}`) !== undefined;
      expect(isForeign).toBe(name !== "arch");
    },
  );

  it("tokens of kernel and initrd are filled and escaped, too", () => {
    const boot = kernel({ kernel: `/k/\${mac:hexhyp}`, initrd: [`/i/\${serial}`] });
    const odd = new Map([...labels, ["serial", `a"$b`]]);
    const body = renderGrub(input({ boot, labels: odd }))?.body;
    expect(body).toContain('linuxefi "(http;192.0.2.1:8080)/k/52-54-00-a1-9c-ae"');
    expect(body).toContain(String.raw`initrdefi "(http;192.0.2.1:8080)/i/a\"\$b"`);
  });

  it("a filled value is not filled again, and never two words", () => {
    const odd = new Map([["serial", `\${uuid} x`]]);
    expect(fill(`a=\${serial}`, odd)).toBe(`a=\${uuid} x`);
  });

  it("a quoted text reads back without its control characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const quoted = quote(text);
        expect(quoted.slice(1, -1).replaceAll(/\\(.)/gsu, "$1")).toBe(text.replaceAll(/\p{Cc}/gu, ""));
        expect(quoted.slice(1, -1)).not.toMatch(/(?<!\\)(?:\\\\)*["$]/);
      }),
    );
  });
});

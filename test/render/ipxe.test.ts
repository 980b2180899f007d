import { describe, expect, it } from "vitest";
import { BugError } from "../../src/lib/errors.ts";
import type { FilledBoot, FilledKernel } from "../../src/render/boot/boot.ts";
import { bootScript, renderIpxe } from "../../src/render/ipxe/ipxe.ts";

const documented = [
  "coreos.first_boot=1",
  "coreos.autologin",
  `coreos.config.url=http://192.0.2.1:8080/ignition?uuid=\${uuid}&mac=\${mac:hexhyp}`,
];

const cases: readonly { name: string; boot: FilledBoot }[] = [
  { name: "documented", boot: kernel({ initrd: ["/assets/coreos/1.0/initrd"], args: documented }) },
  { name: "bare-kernel", boot: kernel({}) },
  { name: "two-initrds", boot: kernel({ initrd: ["/assets/a.img", "--name extra http://192.0.2.1/b.img?v=1"] }) },
  {
    name: "efi-initrd",
    boot: kernel({
      initrd: ["/assets/a.img", "--name extra http://192.0.2.1/b.img?v=1", "/assets/here.img", "/assets/"],
      args: ["quiet", "initrd=here.img"],
      efiInitrd: true,
    }),
  },
  {
    name: "quotes-kept",
    boot: kernel({ args: [`opt="two words"`, String.raw`path=\\host\share`, "console=tty0 quiet"] }),
  },
  { name: "local-exit", boot: { kind: "local", local: "exit" } },
  { name: "local-sanboot", boot: { kind: "local", local: "sanboot" } },
];

function kernel(part: Partial<FilledKernel>): FilledBoot {
  return { kind: "kernel", kernel: "/assets/vmlinuz", initrd: [], args: [], efiInitrd: false, ...part };
}

describe("renderIpxe", () => {
  it.each(cases)("$name", async ({ name, boot }) => {
    const rendered = renderIpxe(boot);
    expect(rendered?.contentType).toBe("text/plain; charset=utf-8");
    await expect(rendered?.body).toMatchFileSnapshot(`../golden/ipxe/${name}.ipxe`);
  });

  it("has no script for a machine that shall find nothing", () => {
    expect(renderIpxe({ kind: "local", local: "notFound" })).toBeUndefined();
  });

  it.each([
    { initrd: "/assets/a/b.img", name: "b.img" },
    { initrd: "http://192.0.2.1/a/b.img?v=1/2", name: "b.img" },
    { initrd: "--name main http://192.0.2.1/a.img?v=1", name: "main" },
    { initrd: "b.img", name: "b.img" },
  ])("efiInitrd calls `$initrd` $name", ({ initrd, name }) => {
    const body = renderIpxe(kernel({ initrd: [initrd, "/x"], args: ["quiet"], efiInitrd: true }))?.body;
    expect(body).toContain(`kernel /assets/vmlinuz quiet initrd=${name} initrd=x\n`);
  });

  it("treats a line break that got this far as a bug", () => {
    expect(() => renderIpxe(kernel({ args: ["a\nshell"] }))).toThrow(BugError);
  });
});

describe("bootScript", () => {
  it("is the contract's two lines, 104 bytes", () => {
    expect(bootScript).toBe(
      [
        "#!ipxe",
        `chain ipxe?uuid=\${uuid}&mac=\${mac:hexhyp}&domain=\${domain}&hostname=\${hostname}&serial=\${serial}`,
        "",
      ].join("\n"),
    );
    expect(Buffer.byteLength(bootScript)).toBe(104);
  });
});

import { describe, expect, it } from "vitest";
import { BugError } from "../../src/lib/errors.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { FilledBoot, FilledKernel } from "../../src/render/boot/boot.ts";
import { bootScript, chainScript, renderIpxe } from "../../src/render/ipxe/ipxe.ts";
import { isDataToGrub } from "../../src/trust/sign/grub-reading.ts";

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
  { name: "local-disk", boot: { kind: "local", local: "sanboot", disk: {} } },
  {
    name: "local-disk-loaders",
    boot: {
      kind: "local",
      local: "sanboot",
      disk: { efi: ["/EFI/debian/shimx64.efi", "/EFI/x_1/a+b.EFI"], bios: 0x81 },
    },
  },
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

describe("chainScript", () => {
  const chain = (query: string) => chainScript(labelsFromQuery(query))?.body;

  it("sends more settings than the constant script", () => {
    const sent = [
      `uuid=\${uuid}&mac=\${mac:hexhyp}&domain=\${domain:uristring}&hostname=\${hostname:uristring}`,
      `serial=\${serial:uristring}&arch=\${arch}&buildarch=\${buildarch}&platform=\${platform}`,
      `manufacturer=\${manufacturer:uristring}&product=\${product:uristring}&asset=\${asset:uristring}`,
      `net0/mac=\${net0/mac:hexhyp}&net1/mac=\${net1/mac:hexhyp}`,
      `net2/mac=\${net2/mac:hexhyp}&net3/mac=\${net3/mac:hexhyp}`,
    ];
    const arch = `cpuid --ext 29 && set arch x86_64 || set arch \${buildarch}`;
    expect(chain("")).toBe(`#!ipxe\n${arch}\nchain ipxe?${sent.join("&")}\n`);
  });

  it("passes its own query on, escaped, in the place of settings", () => {
    expect(chain("zone=a&arch=riscv")).toMatch(/[^c]\/mac=\$\{net3\/mac:hexhyp\}&zone=a&arch=riscv\n$/);
    expect(chain("zone=a&arch=riscv")).not.toContain("&arch=$");
    expect(chain("a%20b=%24%7Bx%7D%27%22%23;||")).toMatch(/&a%20b=%24%7Bx%7D%27%22%23%3B%7C%7C\n$/);
  });

  it.each(["x=a%0Ashell", "x%0d=a", "x=%00", "x=a%26b", "x=a%2Bb", "mac=52:54:00:a1:9c:ae", "UUID=a", "serial=%zz"])(
    "refuses %s",
    (query) => expect(chain(query)).toBeUndefined(),
  );

  it("marks what comes from the request, which is data to GRUB", () => {
    for (const query of ["zone=a", "a%20b=%24%7Bx%7D%27%22%23;||", "zone=%7D%3B%20reboot", "set=a%3Db", ""]) {
      const { body = "", ofRequest = [] } = chainScript(labelsFromQuery(query)) ?? {};
      const [from, to] = ofRequest;
      expect(decodeURIComponent(body.slice(from, to))).toBe(query && `&${decodeURIComponent(query)}`);
      expect(isDataToGrub(body, ofRequest)).toBe(true);
    }
  });

  it("has three lines of plain words whatever the query", () => {
    const bytes = Array.from({ length: 256 }, (_, at) => `%${at.toString(16).padStart(2, "0")}`);
    for (const byte of bytes) {
      const script = chain(`x${byte}=${byte}y`);
      if (script !== undefined) expect(script.split("net3/mac:hexhyp}&")[1]).toMatch(/^[\w.~%-]+=[\w.~%-]*\n$/);
    }
  });
});

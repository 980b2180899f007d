import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KernelBoot } from "../../src/model/objects/profile.ts";
import { renderBoot } from "../../src/render/boot/boot.ts";
import { textOf } from "../../src/render/boot/pieces.ts";
import { renderIpxe } from "../../src/render/ipxe/ipxe.ts";
import { compile, renderErrorOf } from "./fixtures.ts";

const plain: KernelBoot = { kernel: "/assets/vmlinuz", initrd: [], args: [], efiInitrd: false };

describe("renderBoot", () => {
  it("renders kernel, initrds and arguments, and leaves the client's tokens", () => {
    const boot = {
      kernel: "/assets/{{os}}/vmlinuz",
      initrd: ["--name main {{davit.url}}/assets/{{os}}/initrd"],
      args: [`config={{davit.url}}/ignition?mac=\${mac:hexhyp}`, "console={{console}}"],
      efiInitrd: true,
    };
    const variables = { os: "debian", console: "ttyS0,115200", davit: { url: "http://192.0.2.1" } };
    const { args, ...others } = renderBoot(boot, variables, compile);
    expect({ ...others, args: args.map(textOf) }).toEqual({
      kind: "kernel",
      kernel: "/assets/debian/vmlinuz",
      initrd: ["--name main http://192.0.2.1/assets/debian/initrd"],
      args: [`config=http://192.0.2.1/ignition?mac=\${mac:hexhyp}`, "console=ttyS0,115200"],
      efiInitrd: true,
    });
  });

  it("leaves out initrds and arguments that render to nothing", () => {
    const boot = { ...plain, initrd: ["{{#if a}}/a{{/if}}", "/b"], args: ["", "{{#if a}}x{{/if}} ", "quiet"] };
    expect(renderBoot(boot, {}, compile)).toMatchObject({ initrd: ["/b"], args: ["quiet"] });
  });

  it.each([
    { name: "an empty kernel", boot: { ...plain, kernel: "" }, reason: "emptyKernel" },
    { name: "a kernel that renders to blanks", boot: { ...plain, kernel: "{{a}} " }, reason: "emptyKernel" },
    { name: "a line break from a value", boot: { ...plain, args: ["{{evil}}"] }, reason: "controlCharacter" },
    { name: "a line break as written", boot: { ...plain, initrd: ["/a\nshell"] }, reason: "controlCharacter" },
    { name: "a DEL", boot: { ...plain, kernel: "/a\u007f" }, reason: "controlCharacter" },
    {
      name: "a variable of the request",
      boot: { ...plain, args: ["{{request.query.a}}"] },
      reason: "undefinedVariable",
    },
    { name: "a broken template", boot: { ...plain, args: ["{{#if}}"] }, reason: "notClosed" },
  ])("refuses $name", ({ boot, reason }) => {
    expect(renderErrorOf(() => renderBoot(boot, { a: "", evil: "x\nshell" }, compile)).reason).toBe(reason);
  });

  it("a script never gains a line from data", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "\n", "\r", "\t", "\u0085", "\u2028", "|", "#", "/") });
    fc.assert(
      fc.property(text, fc.array(text), fc.array(text), (kernel, initrd, args) => {
        const boot = { kernel: "/k{{kernel}}", initrd, args: [...args, "{{kernel}}"], efiInitrd: true };
        try {
          const rendered = renderBoot(boot, { kernel }, compile);
          const body = renderIpxe(rendered)?.body ?? "";
          expect(body.split(/[\n\r]/)).toHaveLength(rendered.initrd.length + 4);
        } catch (error) {
          const { reason } = renderErrorOf(() => {
            throw error;
          });
          expect(["controlCharacter", "valueInLocation", "valueIsNoWord"]).toContain(reason);
          if (reason === "controlCharacter") expect(`${kernel}${initrd.join("")}${args.join("")}`).toMatch(/\p{Cc}/u);
        }
      }),
    );
  });
});

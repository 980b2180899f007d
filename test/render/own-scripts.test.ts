import { describe, expect, it } from "vitest";
import { renderGrubScript, renderIpxeScript } from "../../src/render/boot/own-scripts.ts";
import { compile, renderErrorOf } from "./fixtures.ts";

const variables = { os: "debian", evil: "x\nshell", tab: "a\tb", hash: "#!ipxe", disks: ["a", "b"] };

it("a script is rendered and served as it comes out, with the client's tokens", () => {
  const script = `#!ipxe\n{{#each disks}}\nset d \${net0/mac} {{this}}\n{{/each}}\n\tchain /{{os}} || shell`;
  expect(renderIpxeScript(script, variables, compile)).toEqual({
    body: `#!ipxe\nset d \${net0/mac} a\nset d \${net0/mac} b\n\tchain /debian || shell`,
    contentType: "text/plain; charset=utf-8",
    isShared: true,
  });
  expect(renderGrubScript("menuentry '{{os}}' {\n\texit\n}\n", variables, compile).body).toBe(
    "menuentry 'debian' {\n\texit\n}\n",
  );
});

it.each(["#!ipxe", "#!ipxe\n", "#!ipxe{{#if absent}}x{{/if}}\nexit", "{{hash}}\nexit"])(
  "%j is a script for iPXE",
  (text) => {
    expect(renderIpxeScript(text, variables, compile).body).toMatch(/^#!ipxe(\n|$)/);
  },
);

describe.each([
  { name: "iPXE", render: renderIpxeScript, head: "#!ipxe\n" },
  { name: "GRUB", render: renderGrubScript, head: "" },
])("a script for $name is refused", ({ render, head }) => {
  it.each([
    { name: "with a value that has a line break", text: "echo {{evil}}", reason: "scriptValue" },
    { name: "with a value that has a tab", text: "echo {{tab}}", reason: "scriptValue" },
    { name: "with a carriage return", text: "exit\r\n", reason: "scriptControl" },
    { name: "with a NEL", text: "exit\u0085", reason: "scriptControl" },
    { name: "of more than 1 MiB", text: "é".repeat(524_289), reason: "scriptTooLarge" },
    { name: "with a variable of the request", text: "{{request.raw_query}}", reason: "undefinedVariable" },
    { name: "with a mistake", text: "{{#if os}}", reason: "notClosed" },
  ])("$name", ({ text, reason }) => {
    expect(renderErrorOf(() => render(`${head}${text}`, variables, compile)).reason).toBe(reason);
  });
});

it.each(["", "exit", " #!ipxe\n", "#!ipxe exit", "#!ipxe{{os}}\n", "{{#if absent}}#!ipxe{{/if}}\n"])(
  "%j is no script for iPXE",
  (text) => {
    expect(renderErrorOf(() => renderIpxeScript(text, variables, compile)).reason).toBe("noIpxeLine");
  },
);

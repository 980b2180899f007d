import { describe, expect, it } from "vitest";
import { ignitionValue } from "../../src/render/config/ignition.ts";
import { withLocalTexts } from "../../src/render/config/local-texts.ts";
import { render } from "./fixtures.ts";

const texts: Readonly<Record<string, string>> = {
  "a.conf": 'x: "1"\n\t{{y}} \\ {{{z}}} \u0001é\u2028\n',
  "b.service": "[Unit]\nDescription=b\n",
};
const textOf = (name: string) => (Object.hasOwn(texts, name) ? texts[name] : undefined);

/** A template for Fedora CoreOS 1.5.0. */
const butane = (...lines: readonly string[]) => ["variant: fcos", "version: 1.5.0", ...lines, ""].join("\n");

describe("withLocalTexts", () => {
  it("puts texts in the place of their names, which no template changes", () => {
    const template = butane(
      "storage:",
      "  files:",
      "    {{#each names}}",
      "    - path: /etc/{{this}}",
      "      contents:",
      "        local: a.conf # a comment",
      "    {{/each}}",
      "systemd: {units: [{name: b.service, contents_local: 'b.service'}]}",
    );
    const whole = withLocalTexts(template, textOf);
    expect(whole.split("\n")).toHaveLength(template.split("\n").length);
    const value = ignitionValue(render(whole, { names: ["one", "two"] }));
    const source = `data:;base64,${Buffer.from(texts["a.conf"] ?? "").toString("base64")}`;
    expect(value).toEqual({
      ignition: { version: "3.4.0" },
      storage: {
        files: [
          { path: "/etc/one", contents: { source, compression: "" } },
          { path: "/etc/two", contents: { source, compression: "" } },
        ],
      },
      systemd: { units: [{ name: "b.service", contents: texts["b.service"] }] },
    });
  });

  const inFile = "storage: {files: [{path: /a, contents: {local: NAME}}]}";

  it.each([
    { name: "a name without a text", template: butane(inFile.replace("NAME", "c")) },
    { name: "an inherited name", template: butane(inFile.replace("NAME", "constructor")) },
    { name: "a name from a value", template: butane(inFile.replace("NAME", "{{name}}")) },
    { name: "a text with such a line", template: butane("x:", "  inline: |", "    local: a.conf") },
    { name: "no Butane", template: "ignition: {version: 3.4.0}\nlocal: a.conf\n" },
    { name: "no YAML", template: butane("a: b: c", "local: a.conf") },
    { name: "a list", template: butane("local: [a.conf]") },
  ])("leaves $name as it is", ({ template }) => {
    expect(withLocalTexts(template, textOf)).toBe(template);
  });

  // In quadratic time this would take hours.
  it("reads a megabyte of braces that no tag ends", () => {
    const template = butane("local: a.conf", `#${"{{".repeat(500_000)}`);
    expect(withLocalTexts(template, textOf)).toContain("inline: ");
  });
});

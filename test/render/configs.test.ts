import { describe, expect, it } from "vitest";
import { renderCloudConfig, renderGeneric } from "../../src/render/config/check-config.ts";
import { renderIgnition } from "../../src/render/config/ignition.ts";
import { renderErrorOf } from "./fixtures.ts";

const ignition =
  '{ "ignition": {"version":"3.4.0"},\n\t"systemd": {"units": [{"name": "a.service", "enable": true}]} }\n\n';

describe("renderIgnition", () => {
  it.each([true, false])("serves JSON byte for byte (raw: %s)", (raw) => {
    expect(renderIgnition({ text: ignition, raw })).toEqual({ body: ignition, contentType: "application/json" });
  });

  it("leaves braces of a raw document untouched", () => {
    const text = '{"ignition":{"version":"3.4.0","x":"{{y}}"}}';
    expect(renderIgnition({ text, raw: true }).body).toBe(text);
  });

  it("turns YAML that means the same into JSON", async () => {
    const text = [
      "# a comment",
      "ignition: {version: 3.4.0}",
      "storage:",
      "  files:",
      "    - path: /etc/motd",
      "      mode: 420",
      "      contents: &hello {source: 'data:,hello'}",
      "    - {path: /etc/issue, contents: *hello}",
      "",
    ].join("\n");
    await expect(renderIgnition({ text, raw: false }).body).toMatchFileSnapshot("../golden/ignition/from-yaml.json");
  });

  it.each([
    { name: "an empty result", text: "", reason: "notIgnition" },
    { name: "a list", text: "[1]", reason: "notIgnition" },
    { name: "no ignition", text: "{}", reason: "notIgnition" },
    { name: "a version that is a number", text: '{"ignition":{"version":3}}', reason: "notIgnition" },
    { name: "a YAML version that is a number", text: "ignition: {version: 3.4}", reason: "notIgnition" },
    { name: "an inherited name", text: '{"__proto__":{"ignition":{"version":"3.4.0"}}}', reason: "notIgnition" },
    { name: "broken JSON", text: '{"ignition":\n {"version" "3"}}', reason: "notJson", line: 2, column: 13 },
    { name: "broken YAML", text: "a: b: c", reason: "notJson", line: 1, column: 4 },
    { name: "an unknown alias", text: "a: *b", reason: "notJson" },
    { name: "aliases that multiply", text: bomb(), reason: "notJson" },
    { name: "two documents", text: "ignition: {version: 3.4.0}\n---\na: 1", reason: "notJson", line: 2, column: 1 },
    { name: "a tag", text: "ignition: {version: !mine 3.4.0}", reason: "notJson" },
    { name: "nesting beyond the stack", text: "[".repeat(20_000), reason: "notJson" },
    { name: "Butane as JSON", text: '{"variant":"flatcar","version":"1.0.0"}', reason: "butane" },
    {
      name: "an octal mode",
      text: "ignition: {version: 3.4.0}\nmode: 0644",
      reason: "ambiguousYaml",
      line: 2,
      column: 7,
    },
    { name: "an octal mode in JSON", text: '{"mode": 0644}', reason: "ambiguousYaml", line: 1, column: 10 },
    {
      name: "JSON without its quotes",
      text: '{"ignition":{"version":"3.4.0"},\n"x":bare}',
      reason: "notJson",
      line: 2,
      column: 5,
    },
    {
      name: "JSON with a comma too many",
      text: '{"ignition":{"version":"3.4.0"},}',
      reason: "notJson",
      line: 1,
      column: 33,
    },
    { name: "yes", text: "ignition: {version: 3.4.0}\nenabled: yes", reason: "ambiguousYaml", line: 2, column: 10 },
    { name: "YAML of more than 1 MiB", text: `a: ${"x".repeat(1024 * 1024)}`, reason: "yamlTooLarge" },
    {
      name: "a key given twice among 60,000",
      text: `ignition: {version: 3.4.0}\n${Array.from({ length: 60_000 }, (_, at) => `k${at}: 1\n`).join("")}k7: 1\n`,
      reason: "notJson",
      line: 60_002,
      column: 1,
    },
  ])("refuses $name as $reason", ({ text, reason, line, column }) => {
    const error = renderErrorOf(() => renderIgnition({ text, raw: false }));
    expect(error.reason).toBe(reason);
    if (line !== undefined) expect(error.position).toEqual({ line, column });
  });

  it.each([
    { name: "YAML", text: "ignition: {version: 3.4.0}", reason: "notRawJson" },
    { name: "broken JSON", text: '{"ignition"', reason: "notRawJson" },
    { name: "Butane", text: "variant: fcos\nversion: 1.5.0\nmode: 0644", reason: "butane" },
    { name: "another object", text: "{}", reason: "notIgnition" },
  ])("refuses a raw document that is $name", ({ text, reason }) => {
    expect(renderErrorOf(() => renderIgnition({ text, raw: true })).reason).toBe(reason);
  });

  it("takes a large JSON document", () => {
    const text = `{"ignition":{"version":"3.4.0"},"x":"${"x".repeat(2 * 1024 * 1024)}"}`;
    expect(renderIgnition({ text, raw: false }).body).toBe(text);
  });
});

function bomb(): string {
  const lists = Array.from({ length: 9 }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at},`.repeat(9)}]`);
  return ["l0: &l0 [x]", ...lists].join("\n");
}

describe("renderCloudConfig", () => {
  const units = "#cloud-config\ncoreos:\n  units:\n    - name: etcd.service\n      command: start\n";

  it.each([
    { name: "the documented shape", text: units },
    { name: "line ends of DOS", text: "#cloud-config\r\na: 1\r\n" },
    { name: "the first line alone", text: "#cloud-config" },
    { name: "a key given twice", text: "#cloud-config\na: 1\na: 2\n" },
    { name: "a script, unread", text: "#!/bin/sh\na: b: c\n" },
  ])("serves $name as it is", ({ text }) => {
    expect(renderCloudConfig(text)).toEqual({ body: text, contentType: "text/plain; charset=utf-8" });
  });

  it.each([
    { name: "an empty result", text: "", reason: "noCloudConfigLine" },
    { name: "another first line", text: "\n#cloud-config\n", reason: "noCloudConfigLine" },
    { name: "a longer first line", text: "#cloud-config-archive\n", reason: "noCloudConfigLine" },
    { name: "broken YAML", text: "#cloud-config\na: b: c\n", reason: "notYaml" },
  ])("refuses $name as $reason", ({ text, reason }) => {
    expect(renderErrorOf(() => renderCloudConfig(text)).reason).toBe(reason);
  });

  it("tells the first of a hundred thousand mistakes", () => {
    const commas = renderErrorOf(() => renderCloudConfig(`#cloud-config\na: [1${",".repeat(100_000)}]\n`));
    expect(commas.position).toEqual({ line: 2, column: 7 });
    const escapes = renderErrorOf(() => renderCloudConfig(`#cloud-config\na: "${"\\q".repeat(100_000)}"\n`));
    expect(escapes.position).toEqual({ line: 2, column: 5 });
  });

  it("tells where the YAML breaks", () => {
    const error = renderErrorOf(() => renderCloudConfig("#cloud-config\na: b: c\n"));
    expect(error.position).toEqual({ line: 2, column: 4 });
  });
});

describe("renderGeneric", () => {
  it.each([
    { text: '{"uuid":"","mac":"52:54:00:a1:9c:ae"}', contentType: "application/json" },
    { text: " 5 ", contentType: "application/json" },
    { text: "{}x", contentType: "text/plain; charset=utf-8" },
    { text: "#!/bin/sh", contentType: "text/plain; charset=utf-8" },
    { text: "", contentType: "text/plain; charset=utf-8" },
  ])("`$text` is $contentType", ({ text, contentType }) => {
    expect(renderGeneric(text, undefined)).toEqual({ body: text, contentType });
  });

  it("serves what its format promises", () => {
    expect(renderGeneric('{"a": [1]}\n', "json")).toEqual({ body: '{"a": [1]}\n', contentType: "application/json" });
  });

  it.each([
    { name: "nothing", text: "", position: { line: 1, column: 1 } },
    { name: "half an object", text: '{"a":\n 1', position: { line: 2, column: 3 } },
    { name: "a comma too many", text: '{"a": 1,\n}', position: { line: 2, column: 1 } },
  ])("refuses $name where the format is JSON, and tells the place", ({ text, position }) => {
    const error = renderErrorOf(() => renderGeneric(text, "json"));
    expect(error).toMatchObject({ reason: "notGenericJson", position });
    expect(error.message).toMatch(/of the result\)$/);
  });
});

import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { RequestReads } from "../../src/render/template/request-reads.ts";
import { bootVariables, templateVariables } from "../../src/render/template/variables.ts";
import { compile, group, parsed, render } from "./fixtures.ts";

const davitUrl = "http://192.0.2.1:8080";

function variables(metadata: string, selector: Readonly<Record<string, string>>, rawQuery: string) {
  const value = parsed(metadata);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("Metadata is an object");
  const one = group({ metadata: Object.fromEntries(Object.entries(value)), selector });
  return {
    config: templateVariables({ group: one, labels: labelsFromQuery(rawQuery), rawQuery, davitUrl }),
    boot: bootVariables({ group: one, davitUrl }),
  };
}

describe("templateVariables", () => {
  it("lets the selector win over metadata, and request and davit over both", () => {
    const metadata = '{"mac": "m", "zone": "a", "request": 1, "davit": 2}';
    const { config } = variables(
      metadata,
      { mac: "52:54:00:a1:9c:ae", Role: "web", davit: "x" },
      "a=1&MAC=525400a19cae",
    );
    expect(config).toEqual({
      mac: "52:54:00:a1:9c:ae",
      zone: "a",
      role: "web",
      request: { query: { a: "1", mac: "52:54:00:a1:9c:ae" }, raw_query: "a=1&MAC=525400a19cae" },
      davit: { url: davitUrl },
    });
  });

  it("keeps odd names as own keys", () => {
    const { config } = variables('{"__proto__": "p"}', { constructor: "c" }, "__proto__=q&toString=t");
    const template = "{{__proto__}}{{constructor}}{{request.query.__proto__}}{{request.query.toString}}";
    expect(render(template, config)).toBe("pcqt");
  });

  it("has no label for an invalid MAC, and the raw query as sent", () => {
    const { config } = variables("{}", {}, "mac=nonsense&x={{y}}");
    expect(render("{{lookup request.query 'mac'}}|{{request.query.x}}|{{request.raw_query}}", config)).toBe(
      "|{{y}}|mac=nonsense&x={{y}}",
    );
  });

  it("takes the lower of two selector keys that differ in case only, whatever their order", () => {
    for (const selector of [
      { role: "b", Role: "a" },
      { Role: "a", role: "b" },
    ]) {
      expect(variables("{}", selector, "").config.role).toBe("a");
    }
  });
});

describe("bootVariables", () => {
  it("is the same without the request, also where metadata has that name", () => {
    const { boot } = variables('{"request": {"query": {"a": 1}}, "zone": "a"}', { Role: "web" }, "a=1");
    expect(boot).toEqual({ zone: "a", role: "web", davit: { url: davitUrl } });
  });
});

describe("what a template has read of its request", () => {
  const rawQuery = "note=a%20b&mac=52-54-00-a1-9c-ae&os=installed";

  it.each([
    { name: "nothing", text: "{{zone}}", isAny: false, parts: [] },
    { name: "a label", text: "{{zone}}/{{request.query.os}}/", isAny: true, parts: ["installed"] },
    { name: "a label that is not there", text: '{{lookup request.query "x"}}', isAny: true, parts: [] },
    { name: "it by a helper", text: "a {{base64 request.query.note}}", isAny: true, parts: ["YSBi"] },
    {
      name: "it with other text",
      text: '{{join (split request.query.os "s") zone}}',
      isAny: true,
      parts: ["in1talled"],
    },
    { name: "it in a condition", text: "{{#if request.query.note}}{{zone}}{{/if}}", isAny: true, parts: [] },
    { name: "whether it is one", text: '{{eq request.query.os "installed"}}', isAny: true, parts: ["true"] },
    { name: "the raw query", text: "{{request.raw_query}}", isAny: true, parts: [rawQuery] },
    {
      name: "a loop",
      text: "{{#each request.query as |v k|}}{{k}}={{v}};{{/each}}{{zone}}",
      isAny: true,
      parts: ["mac", "52:54:00:a1:9c:ae", "note", "a b", "os", "installed"],
    },
    {
      name: "a loop of @key",
      text: "{{#each request.query}}{{#if @last}}{{@key}}{{@root.zone}}{{/if}}{{/each}}",
      isAny: true,
      parts: ["os"],
    },
    { name: "a context", text: "{{#with request.query}}{{os}}{{../zone}}{{/with}}", isAny: true, parts: ["installed"] },
    {
      name: "a nested context",
      text: "{{#with request}}{{#with query}}{{#each list}}{{else}}{{os}}{{/each}}{{/with}}{{/with}}",
      isAny: true,
      parts: ["installed"],
    },
    {
      name: "it by way of all names",
      text: "{{#each this}}{{#if raw_query}}{{raw_query}}{{/if}}{{/each}}",
      isAny: true,
      parts: [rawQuery],
    },
    { name: "the URL for reports, which davit chose", text: "{{davit.report}}", isAny: true, parts: [] },
  ])("$name", ({ text, isAny, parts }) => {
    const reads = new RequestReads();
    const scope = { group: group({ metadata: { zone: "1" } }), labels: labelsFromQuery(rawQuery), rawQuery };
    const variables = templateVariables({ ...scope, davitUrl, reportUrl: `${davitUrl}/report/x` }, reads);
    const result = compile(text).render(variables, undefined, reads);
    const printed = reads.parts.flatMap((from, at) => (at % 2 === 0 ? [result.slice(from, reads.parts[at + 1])] : []));
    expect([reads.isAny, printed]).toEqual([isAny, parts]);
  });
});

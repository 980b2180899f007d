import { describe, expect, it } from "vitest";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { bootVariables, RequestReads, templateVariables } from "../../src/render/template/variables.ts";
import { group, parsed, render } from "./fixtures.ts";

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
  const harmful = "note=a%20b&mac=52-54-00-a1-9c-ae&two+words=x&os=installed";

  it.each([
    { name: "nothing", text: "{{zone}}", isAny: false, isHarmful: false },
    { name: "plain labels", text: "{{request.query.mac}}{{request.query.os}}", isAny: true, isHarmful: false },
    { name: "a label that is not there", text: '{{lookup request.query "x"}}', isAny: true, isHarmful: false },
    { name: "a value with a blank", text: "{{request.query.note}}", isAny: true, isHarmful: true },
    { name: "it by a helper", text: "{{base64 request.query.note}}", isAny: true, isHarmful: true },
    { name: "it by a lookup", text: '{{lookup request.query "note"}}', isAny: true, isHarmful: true },
    { name: "it in a condition", text: "{{#if request.query.note}}{{/if}}", isAny: true, isHarmful: true },
    { name: "the raw query, which has a =", text: "{{request.raw_query}}", isAny: true, isHarmful: true },
    { name: "all labels as JSON", text: "{{json request.query}}", isAny: true, isHarmful: true },
    { name: "all labels in a loop", text: "{{#each request.query as |value|}}{{/each}}", isAny: true, isHarmful: true },
    { name: "all of it", text: "{{json request}}", isAny: true, isHarmful: true },
  ])("$name", ({ text, isAny, isHarmful }) => {
    const reads = new RequestReads();
    const scope = { group: group({ metadata: { zone: "a b" } }), labels: labelsFromQuery(harmful), rawQuery: harmful };
    render(text, templateVariables({ ...scope, davitUrl }, reads));
    expect(reads).toMatchObject({ isAny, isHarmful });
  });

  it.each([
    { rawQuery: "mac=52-54-00-a1-9c-ae", text: "{{json request.query}}", isHarmful: false },
    { rawQuery: "a%3db=c", text: "{{json request.query}}", isHarmful: true },
    { rawQuery: "a=b%3dc", text: "{{json request.query}}", isHarmful: true },
    { rawQuery: "flag", text: "{{request.raw_query}}", isHarmful: false },
  ])("$text of $rawQuery", ({ rawQuery, text, isHarmful }) => {
    const reads = new RequestReads();
    render(text, templateVariables({ group: group({}), labels: labelsFromQuery(rawQuery), rawQuery, davitUrl }, reads));
    expect(reads.isHarmful).toBe(isHarmful);
  });
});

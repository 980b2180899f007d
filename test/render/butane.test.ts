import { describe, expect, it } from "vitest";
import { ignitionValue, mayBeButane, renderIgnition } from "../../src/render/config/ignition.ts";
import { goldenDocuments } from "../helpers/butane-documents.ts";
import { butaneMistakes, flow, often } from "../helpers/butane-mistakes.ts";
import { renderErrorOf } from "./fixtures.ts";

describe("renderIgnition with Butane", () => {
  // Butane translates these documents to the same configs: see butane-oracle.test.ts.
  it("translates every document of golden/butane", async () => {
    const configs = goldenDocuments.map(({ name, text }) => [name, ignitionValue(text)]);
    const all = `${JSON.stringify(Object.fromEntries(configs), undefined, 1)}\n`;
    await expect(all).toMatchFileSnapshot("../golden/butane/ignition.json");
  });

  it("answers with JSON in one line", () => {
    const text = flow("1.4.0", "systemd: {units: [{name: a.service, enabled: yes}]}");
    expect(renderIgnition({ text, raw: false })).toEqual({
      body: '{"ignition":{"version":"3.3.0"},"systemd":{"units":[{"name":"a.service","enabled":true}]}}\n',
      contentType: "application/json",
    });
  });

  it("takes an alias a hundred times", () => {
    expect(ignitionValue(often(100))).toMatchObject({ storage: { filesystems: [{ label: "x" }] } });
  });

  it("leaves YAML with a version of Ignition to the rules of Ignition", () => {
    const text = "variant: fcos\nignition: {version: 3.4.0}\n";
    expect(ignitionValue(text)).toEqual({ variant: "fcos", ignition: { version: "3.4.0" } });
  });

  // In quadratic time this would take an hour.
  it("finds the variant behind a million empty lines", () => {
    expect(mayBeButane(`${"\n".repeat(1_000_000)}variant : fcos\n`)).toBe(true);
    expect(mayBeButane("\n".repeat(1_000_000))).toBe(false);
    expect(mayBeButane('{\r\n "variant": "fcos"}')).toBe(true);
  });

  it.each(butaneMistakes)("refuses $name as $reason", ({ text, reason, at }) => {
    const error = renderErrorOf(() => renderIgnition({ text, raw: false }));
    expect(error.reason).toBe(reason);
    if (at !== undefined) expect([error.position?.line, error.position?.column]).toEqual(at);
  });
});

/** `--set resources=null` takes a default away. What may be missing is empty then, and what may not is named. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { chartDirectory } from "../../tools/generate/chart-files.ts";
import { missing } from "../helpers/requirements.ts";
import { containersOf, manifestsOf, podOf, rendered, runTool, template, valuesOf, ways, within } from "./helm.ts";

interface Value {
  readonly path: readonly string[];
  readonly preset: unknown;
  /** By the schema. */
  readonly isRequired: boolean;
}

const read = (name: string) => readFileSync(join(chartDirectory, name), "utf8");
const all = valuesIn(parseJsonObject(read("values.schema.json")) ?? {}, parse(read("values.yaml")), []);
const empty = all.filter(({ preset }) => isEmpty(preset));
const full = all.filter(({ preset, isRequired }) => !(isEmpty(preset) || isRequired));
const folder = mkdtempSync(join(tmpdir(), "davit-nulls-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(missing("helm"))("null for", () => {
  it.each(ways)("every value that is empty anyway changes nothing in %s", async (way) => {
    expect(empty.length).toBeGreaterThan(100);
    const { stdout, stderr } = await withNulls(empty, ["-f", valuesOf(way)]);
    expect({ stdout, stderr }).toEqual({ stdout: await rendered({ way }), stderr: "" });
  });

  it.each(["default", "followers", "dnsmasq"])("every map that is not needed makes it empty in %s", async (way) => {
    expect(full.map(({ path }) => path.join("."))).toEqual(
      expect.arrayContaining(["resources", "securityContext", "podSecurityContext", "boot.updateStrategy"]),
    );
    const { code, stdout, stderr } = await withNulls(full, ["-f", valuesOf(way)]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const manifests = manifestsOf(stdout).filter((manifest) => podOf(manifest) !== undefined);
    expect(manifests.length).toBeGreaterThan(1);
    for (const manifest of manifests.filter(({ kind }) => kind === "StatefulSet" || kind === "Deployment")) {
      const pod = podOf(manifest) ?? {};
      expect(within(pod, "spec")).toMatchObject({ securityContext: {} });
      for (const container of containersOf(pod)) {
        expect(container).toMatchObject({ securityContext: {}, resources: {} });
        expect(container).not.toHaveProperty("livenessProbe");
      }
    }
  });

  it("everything else is refused by its name", async () => {
    const needed = all.filter(({ isRequired }) => isRequired);
    expect(needed.length).toBeGreaterThan(60);
    const { code, stderr } = await withNulls(needed, []);
    expect(code).toBe(1);
    const told = [...stderr.matchAll(/at '(.*)': missing propert(?:y|ies) (.*)/g)].flatMap(([, at = "", names = ""]) =>
      [...names.matchAll(/'(\w+)'/g)].map(([, name]) => `${at}/${name}`),
    );
    expect(told.toSorted()).toEqual(needed.map(({ path }) => `/${path.join("/")}`).toSorted());
  });

  it("a whole section is refused by its name", async () => {
    const { stderr } = await template({ args: ["--set", "image=null,boot.autoscaling=null"] });
    expect(stderr).toContain("at '': missing property 'image'");
    expect(stderr).toContain("at '/boot': missing property 'autoscaling'");
  });
});

async function withNulls(values: readonly Value[], args: readonly string[]) {
  const nulls: JsonObject = {};
  for (const { path } of values) setNull(nulls, path);
  const file = join(folder, "nulls.json");
  writeFileSync(file, JSON.stringify(nulls));
  return await runTool("helm", ["template", "davit", chartDirectory, "-n", "netboot", "-f", file, ...args]);
}

function setNull(object: Record<string, unknown>, [name = "", ...rest]: readonly string[]): void {
  if (rest.length === 0) {
    object[name] = null;
    return;
  }
  const inner = isJsonObject(object[name]) ? { ...object[name] } : {};
  setNull(inner, rest);
  object[name] = inner;
}

/** Those that have no parts of a fixed name. */
function valuesIn(schema: JsonObject, values: JsonObject, path: readonly string[]): readonly Value[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(within(schema, "properties")).flatMap(([name, inner]) => {
    const value = values[name];
    const own = [...path, name];
    if (isJsonObject(inner) && "properties" in inner) return valuesIn(inner, isJsonObject(value) ? value : {}, own);
    return [{ path: own, preset: value, isRequired: required.includes(name) }];
  });
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value ?? {}).length === 0;
}

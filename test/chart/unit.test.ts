/** The chart's own suites (charts/davit/tests), which anybody with helm-unittest can run, and what is generated. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { chartDirectory, crdTemplate, generatedFiles } from "../../tools/generate/chart-files.ts";
import { missing } from "../helpers/requirements.ts";
import { manifestsOf, rendered, runTool, within } from "./helm.ts";

const root = join(import.meta.dirname, "../..");
const committed = (path: string) => readFileSync(join(root, path), "utf8");

describe.skipIf(missing("helm-unittest"))("helm-unittest", () => {
  it("finds every suite of the chart passing", async () => {
    const { code, stdout } = await runTool("helm-unittest", ["--color=false", chartDirectory]);
    // From the first failure on, so that a line says which suite failed, and where.
    expect(stdout.slice(stdout.search(/FAIL|$/))).toBe("");
    expect(stdout).toMatch(/Tests: +\d{2,} passed, \d+ total/);
    expect(code).toBe(0);
  });
});

describe.skipIf(missing("helm", "helm-docs"))("what is generated", () => {
  it.each(generatedFiles())("is what would be made now: $path", async ({ path, text }) => {
    expect(await text(), "make chart").toBe(committed(path));
  });
});

describe.skipIf(missing("helm"))("the chart's CRDs", () => {
  it("say what crds/ says, and so does manifests/install.yaml", async () => {
    const crds = (yaml: string) =>
      manifestsOf(yaml).flatMap(({ kind, metadata, spec }) =>
        kind === "CustomResourceDefinition" ? [{ name: metadata.name, spec }] : [],
      );
    const wanted = ["groups", "machines", "profiles"].flatMap((name) => crds(committed(`crds/davit.dev_${name}.yaml`)));
    expect(wanted).toHaveLength(3);
    expect(crds(await rendered())).toEqual(wanted);
    expect(crds(committed("manifests/install.yaml"))).toEqual(wanted);
  });
});

describe("manifests/install.yaml", () => {
  it("names at its head how to remove all of it but the namespace and the CRDs", () => {
    const text = committed("manifests/install.yaml");
    const commands = [...text.matchAll(/^# {3}kubectl (?:-n davit )?delete (\S+) -l (\S+)$/gm)];
    const kinds = commands.flatMap(([, names = ""]) => names.split(","));
    const kept = ["namespace", "customresourcedefinition"];
    const manifests = manifestsOf(text).filter(({ kind }) => !kept.includes(kind.toLowerCase()));
    expect(new Set(manifests.map(({ kind }) => kind.toLowerCase()))).toEqual(new Set(kinds));
    expect(commands.map(([, , label]) => label)).toEqual(commands.map(() => "app.kubernetes.io/instance=davit"));
    const instances = manifests.map(({ metadata }) => within(metadata, "labels")["app.kubernetes.io/instance"]);
    expect(new Set(instances)).toEqual(new Set(["davit"]));
  });
});

describe("a CRD as a template", () => {
  const crd =
    "# Of its source.\nkind: CustomResourceDefinition\nmetadata:\n  name: a.davit.dev\nspec:\n  x: as in {{davit.url}}\n";

  it("says braces as text", () => {
    expect(crdTemplate(crd)).toContain('x: as in {{ "{{" }}davit.url}}\n');
  });

  it("cannot be made of metadata that would be lost", () => {
    expect(() => crdTemplate(crd.replace("spec:", "  labels: {}\nspec:"))).toThrow("its metadata is not a name alone");
  });
});

describe("values.yaml", () => {
  it("has a comment for every value, which README.md shows", () => {
    const readme = committed("charts/davit/README.md");
    const described = [...readme.matchAll(/^\| (\S+) \| \w+ \| .* \| (.*) \|$/gm)];
    expect(described.length).toBeGreaterThan(150);
    expect(described.filter(([, , text]) => text === "").map(([, name]) => name)).toEqual([]);
  });

  it("has no value that the schema does not know, and the schema has none beside but former ones", () => {
    const schema = parseJsonObject(committed("charts/davit/values.schema.json")) ?? {};
    expect(differences(schema, parse(committed("charts/davit/values.yaml")), "")).toEqual([]);
  });
});

/** Where a closed schema and values have different names, or a schema that has names is not closed. */
function differences(schema: JsonObject, values: unknown, path: string): readonly string[] {
  if (!isJsonObject(schema.properties)) return [];
  if (schema.additionalProperties !== false || !isJsonObject(values)) return [path];
  const { properties } = schema;
  const names = new Set([...Object.keys(properties), ...Object.keys(values)]);
  return [...names].flatMap((name) => {
    const inner = properties[name];
    if (isJsonObject(inner) && inner.deprecated === true && !(name in values)) return [];
    if (!isJsonObject(inner) || !(name in values)) return [`${path}.${name}`];
    return differences(inner, values[name], `${path}.${name}`);
  });
}

/**
 * The CRDs in a real API server: it takes them, and judges objects as the directory source does, with the same message
 * of the same rule. So a file means the same to both sources.
 */

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { Admission } from "../../src/sources/admission/admission.ts";
import { compileCheck } from "../../src/sources/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import {
  readKindSchemas,
  type SchemaNode,
  toSchemaNode,
  unknownFieldText,
} from "../../src/sources/admission/schema.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { anyIdentityExpression } from "./any-expression.ts";
import { anySpec } from "./any-spec.ts";
import { type KindSpec, profileRef } from "./expression-specs.ts";
import { misspelt } from "./misspelt.ts";
import {
  admitted,
  bounds,
  controlCharacters,
  nulls,
  plainTexts,
  refusedByRules,
  refusedBySchema,
  refusedPlaces,
} from "./specs.ts";

const crds = await readCrds(packagedCrdsDirectory);
const admission = new Admission(crds);
const specs = new Map(crds.flatMap(readKindSchemas).map(({ kind, spec }) => [kind, toSchemaNode(spec)]));
const checks = new Map([...specs].map(([kind, spec]) => [kind, compileCheck(spec)]));
const ruleMessages = new Set([...specs.values()].flatMap(messagesOf));

/** What becomes of a spec. */
interface Judgement {
  readonly isAdmitted: boolean;
  /** The messages of the rules that it breaks, sorted, each with its place. */
  readonly rules: readonly string[];
}

/** Undefined rules: davit asks none when the schema is not kept, the API server then asks some of them. */
function judgedByDavit({ kind, spec }: KindSpec) {
  const document = { apiVersion: "davit.dev/v1alpha1", kind, metadata: { name: "judged" }, spec };
  const verdict = admission.admit(document, { origin: "test", findings: [] });
  if (verdict.kind !== "refused") return { isAdmitted: true, rules: [] };
  const told = verdict.findings.map(({ path, text }) => `${placeOf(path)}: ${text}`);
  return { isAdmitted: false, rules: told.every(isOfRule) ? told.toSorted() : undefined };
}

/** As the API server writes it. */
function placeOf(path: readonly string[]): string {
  return path.join(".").replaceAll(/\.(\d+)(?=\.|$)/g, "[$1]");
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("the API server", () => {
  let cluster: Cluster;
  let warnings: readonly string[];
  beforeAll(async () => {
    cluster = await startCluster({ withoutCrds: true });
    warnings = await cluster.installCrds();
  }, 180_000);
  afterAll(() => cluster?.stop());

  /** As client libraries send it, which ask for no strict look at names, but that nothing is stored. */
  async function judged({ kind, spec }: KindSpec): Promise<Judgement> {
    const path = `/apis/davit.dev/v1alpha1/namespaces/default/${kind.toLowerCase()}s?dryRun=All&fieldValidation=Ignore`;
    const object = { apiVersion: "davit.dev/v1alpha1", kind, metadata: { name: "judged" }, spec };
    const { status, body } = await cluster.ask({ method: "POST", path, body: object });
    expect([201, 422]).toContain(status);
    return { isAdmitted: status === 201, rules: causesOf(body).filter(isOfRule).toSorted() };
  }

  it("takes the CRDs without a warning, and serves them", async () => {
    expect(warnings).toEqual([]);
    const { body } = await cluster.ask({ path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" });
    expect(body.items).toHaveLength(3);
    const conditions = [body.items].flat().flatMap((crd: unknown) => conditionsOf(crd));
    expect(conditions.toSorted()).toEqual(
      ["Established=True", "NamesAccepted=True"].flatMap((text) => [text, text, text]),
    );
  });

  it("takes them from kubectl, too", async () => {
    const flags = ["--server-side", "--force-conflicts", "--warnings-as-errors"];
    expect(await cluster.kubectl(["apply", ...flags, "-f", packagedCrdsDirectory])).toEqual({
      code: 0,
      stdout: ["groups", "machines", "profiles"]
        .map((name) => `customresourcedefinition.apiextensions.k8s.io/${name}.davit.dev serverside-applied\n`)
        .join(""),
      stderr: "",
    });
  });

  it.each(admitted)("admits the $kind $spec", async (object) => {
    expect(await judged(object)).toEqual({ isAdmitted: true, rules: [] });
  });

  it.each(refusedByRules)("refuses the $kind $spec with the message that davit has", async ({ message, ...object }) => {
    const judgement = await judged(object);
    expect(judgement).toEqual(judgedByDavit(object));
    expect(judgement.rules.join("\n")).toContain(message);
  });

  it.each(refusedBySchema)("refuses a $kind of which davit says that it $text", async (object) => {
    expect(await judged(object)).toMatchObject({ isAdmitted: false });
  });

  it.each(refusedPlaces)("refuses %s", async (_place, kind, spec) => {
    expect(await judged({ kind, spec })).toMatchObject({ isAdmitted: false });
  });

  it.each(misspelt(specs))("refuses a name that does not exist in $kind $place, however it is sent", async (odd) => {
    const path = `/apis/davit.dev/v1alpha1/namespaces/default/${odd.kind.toLowerCase()}s`;
    const query = "dryRun=All&fieldValidation=Ignore";
    const answers = await Promise.all([
      cluster.ask({ method: "POST", path: `${path}?${query}`, body: odd.object }),
      cluster.ask({
        method: "PATCH",
        path: `${path}/misspelt?${query}&fieldManager=client`,
        body: odd.object,
        contentType: "application/apply-patch+yaml",
      }),
    ]);
    const message = expect.stringContaining(`${odd.place}: Invalid value: ${unknownFieldText(odd.names)}`);
    expect(answers).toMatchObject([422, 422].map((status) => ({ status, body: { message } })));
  });

  it.each(bounds)("has the bound of %s where davit has it", async (_place, kind, most, more) => {
    expect([await judged({ kind, spec: most }), await judged({ kind, spec: more })]).toMatchObject([
      { isAdmitted: true },
      { isAdmitted: false },
    ]);
  });

  it.each(plainTexts)("admits %s without control characters only", async (_place, kind, specOf) => {
    const texts = ["a-b", ...controlCharacters.map((control) => `a${control}b`)];
    const verdicts = await Promise.all(texts.map((text) => judged({ kind, spec: specOf(text) })));
    expect(verdicts.filter(({ isAdmitted }) => isAdmitted)).toEqual([verdicts[0]]);
  });

  it.each(nulls)("takes $what as davit does", async ({ kind, spec, meant }) => {
    const path = `/apis/davit.dev/v1alpha1/namespaces/default/${kind.toLowerCase()}s?dryRun=All`;
    const object = { apiVersion: "davit.dev/v1alpha1", kind, metadata: { name: "judged" }, spec };
    expect((await cluster.ask({ method: "POST", path, body: object })).body.spec).toEqual(meant);
    expect(checks.get(kind)?.(spec)).toEqual({ kind: "good", value: meant });
  });

  it.each([
    { what: "any spec", arbitrary: anySpec },
    { what: "any expression about MAC addresses or UUIDs", arbitrary: anyIdentityExpression },
  ])(
    "judges $what as davit does, rule by rule",
    async ({ arbitrary }) => {
      const admitted = { true: 0, false: 0 };
      await fc.assert(
        fc.asyncProperty(arbitrary(), async (object) => {
          const { isAdmitted, rules } = judgedByDavit(object);
          admitted[`${isAdmitted}`] += 1;
          expect(await judged(object)).toMatchObject({ isAdmitted, ...(rules && { rules }) });
        }),
        { numRuns: 500 },
      );
      expect(Math.min(admitted.true, admitted.false)).toBeGreaterThan(20);
    },
    60_000,
  );

  it.each([null, []])("refuses expressions of %j, which would take a selector's narrower half away", async (list) => {
    const object = {
      kind: "Group",
      spec: { profileRef, selector: { matchLabels: { role: "a" }, matchExpressions: list } },
    };
    expect(judgedByDavit(object).isAdmitted).toBe(false);
    expect((await judged(object)).isAdmitted).toBe(false);
  });
});

function messagesOf(node: SchemaNode): readonly string[] {
  const inner = [...node.properties.values(), node.items, node.values];
  return [...node.rules.map(({ message }) => message), ...inner.flatMap((child) => (child ? messagesOf(child) : []))];
}

// A rule that cannot be evaluated, such as one on null, is told in more words than one that is false; one on a text or
// a number is told with it.
const notTheRule = /^Invalid value: (?:"object": 'no such overload(?:: size)?': .* for rule: |(?:"[^"]*"|\d+): )?/;

/** What a refusal names, each with its field. */
function causesOf({ details }: JsonObject): readonly string[] {
  const { causes } = isJsonObject(details) ? details : {};
  if (!Array.isArray(causes)) return [];
  return causes.map((cause: unknown) => {
    const { field, message } = isJsonObject(cause) ? cause : {};
    return `${field}: ${String(message).replace(notTheRule, "")}`;
  });
}

function isOfRule(cause: string): boolean {
  return ruleMessages.has(cause.slice(cause.indexOf(": ") + 2));
}

function conditionsOf(crd: unknown): readonly string[] {
  const { status } = isJsonObject(crd) ? crd : {};
  const { conditions } = isJsonObject(status) ? status : {};
  return [conditions].flat().map((condition: unknown) => {
    const { type, status: is } = isJsonObject(condition) ? condition : {};
    return `${type}=${is}`;
  });
}

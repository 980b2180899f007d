/** The step and the trial ask one judge: for equal inputs, a pair's verdict never contradicts the trial's. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runTrials } from "../../src/controller/trials/trial.ts";
import { encodeDocument } from "../../src/model/objects/documents.ts";
import { fieldOf, type ProfileContent, partsOf, type ResolvedTemplate } from "../../src/model/objects/profile.ts";
import { Bench } from "../../src/render/judge/bench.ts";
import { Judge, type PartFault, type Renderable } from "../../src/render/judge/judge.ts";
import { RenderBudget, TooLongHere } from "../../src/render/template/limits.ts";
import { sha256 } from "./around.ts";
import { groupSpec, kernelBoot } from "./objects.ts";

const davitUrl = "http://192.0.2.1:8080";
const provenance = { origin: "web.yaml, document 1 (line 1)", uid: "u", generation: 1 };

const path = fc.constantFrom(
  ...["disk", "size", "role", "note", "mac", "machine.labels.rack", "davit.url", "davit.report", "nothing"],
  ...["request.query.mac", "request.query.os", "request.raw_query"],
);
const piece = fc.oneof(
  fc.constantFrom("x", " ", '"', "a: ", ","),
  path.map((each) => `{{${each}}}`),
  fc.tuple(fc.constantFrom("json", "urlEncode", "indent"), path).map(([name, each]) => `{{${name} ${each}}}`),
  fc.tuple(fc.constantFrom("if", "unless"), path, path).map(([name, a, b]) => `{{#${name} ${a}}}{{${b}}}{{/${name}}}`),
);
const text = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join(""));
const ignition = text.map((each) => `{"ignition":{"version":"3.4.0"},"d":"${each}"}`);
const yaml = text.map((each) => `ignition: {version: 3.4.0}\nd: ${each}\n`);
const cloudConfig = text.map((each) => `#cloud-config\na: ${each}\n`);

function inline(texts: fc.Arbitrary<string>, format?: "json"): fc.Arbitrary<ResolvedTemplate> {
  return texts.map((each) => ({ kind: "text", text: each, raw: false, ...(format && { format }) }));
}

const value = fc.constantFrom("sda", "", 0, 7, true, null, "two words", 'q"', "line\nbreak");
const metadata = fc.dictionary(fc.constantFrom("disk", "size", "role", "note", "machine", "request"), value);
const content: fc.Arbitrary<ProfileContent> = fc.record(
  {
    displayName: fc.constant("Web"),
    metadata,
    install: fc.constant({ then: "exit", timeoutSeconds: 60 } as const),
    boot: fc.array(text, { maxLength: 2 }).map((args) => ({ ...kernelBoot, args })),
    grubScript: text,
    templates: fc.record(
      {
        ignition: inline(fc.oneof(ignition, yaml)),
        cloudConfig: inline(cloudConfig),
        "generic/answers": inline(text, "json"),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ["displayName", "templates"] },
);
const label = fc.constantFrom("web", "a b", 'q"');
const group: fc.Arbitrary<Renderable> = fc.record(
  {
    metadata,
    selector: fc.record({ role: label, os: label, disk: label }, { requiredKeys: [] }),
    args: fc.array(text, { maxLength: 1 }),
  },
  { requiredKeys: ["metadata", "selector"] },
);
const machine = { name: "machine", namespace: "lab", labels: { rack: "r1" } };
const samples = fc.constantFrom({}, { machine }, { machine, disk: "sdz" });

/** What each way finds; undefined if it exceeds its budget. */
function found(judge: Judge, spec: Renderable, work: number): readonly (readonly PartFault[] | undefined)[] {
  return (["names", "renders"] as const).map((way) => {
    try {
      return judge[way](spec, new RenderBudget(work));
    } catch (error) {
      if (error instanceof TooLongHere) return undefined;
      throw error;
    }
  });
}

describe("the judge of a Profile", () => {
  it("finds in the step what the trial finds for every request, and nothing else", () => {
    const bench = new Bench({ sha256, davitUrl });
    fc.assert(
      fc.property(content, group, samples, (profile, spec, known) => {
        const judge = new Judge({ content: profile, secretText: () => undefined, samples: known, bench });
        const profileText = encodeDocument({ ...provenance, revision: "1", content: profile });
        const groups = [{ name: "n1", text: encodeDocument({ ...provenance, spec: groupSpec(spec) }) }];
        const job = { namespace: "lab", profile: "web", profileText, samples: known, secretTexts: new Map(), groups };
        const [trial = "untried"] = runTrials(job, { davitUrl, sha256 });
        expect(trial).not.toBe("untried");
        const failing = trial === "untried" ? [] : trial.filter(({ code, severity }) => code && severity !== "refused");
        const faults = found(judge, spec, 1_000_000).flatMap((each) => each ?? []);
        const configs = new Set<string>(partsOf(profile.templates).map((part) => `spec.${fieldOf(part)}`));
        const inStep = faults.map(({ field }) => field);
        expect(failing.map(({ place }) => place?.field)).toEqual(expect.arrayContaining(inStep));
        const certain = failing.flatMap(({ place, isCertain }) => (isCertain === true && place ? [place.field] : []));
        expect(new Set(inStep.filter((field) => configs.has(field)))).toEqual(
          new Set(certain.filter((field) => configs.has(field))),
        );
      }),
      { numRuns: 300 },
    );
  });

  it("finds the same with less time, or says that it had no time", () => {
    const bench = new Bench({ sha256, davitUrl });
    fc.assert(
      fc.property(content, group, samples, fc.integer({ min: 1, max: 20_000 }), (profile, spec, known, work) => {
        const judge = new Judge({ content: profile, secretText: () => undefined, samples: known, bench });
        const whole = found(judge, spec, 1_000_000);
        for (const [at, part] of found(judge, spec, work).entries()) if (part) expect(part).toEqual(whole[at]);
      }),
      { numRuns: 200 },
    );
  });
});

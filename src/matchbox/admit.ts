/** What davit says of an object that an import made: the same judgement as when it is served. */

import type { Admission } from "../admission/admission.ts";
import type { JsonObject } from "../model/json.ts";

interface AdmitJudgement {
  readonly path: readonly string[];
  readonly text: string;
}

/** Everything that is wrong with an object; empty for a good one. */
export type Admit = (object: JsonObject) => readonly AdmitJudgement[];

/** Judges by the CRDs. */
export function admitBy(admission: Admission): Admit {
  return (object) => {
    const verdict = admission.admit(object, { origin: "import", findings: [] });
    return verdict.kind === "refused" ? verdict.findings : [];
  };
}

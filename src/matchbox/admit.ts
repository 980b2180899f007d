/** Judges an imported object as davit does when it serves it. */

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

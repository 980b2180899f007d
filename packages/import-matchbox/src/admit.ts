/** Checks an imported object by the rules of `davit serve`. */

import type { JsonObject } from "../../../src/model/json.ts";
import type { Admission } from "../../../src/sources/admission/admission.ts";

interface AdmitJudgement {
  readonly path: readonly string[];
  readonly text: string;
}

/** Returns all mistakes in an object; none for a valid object. */
export type Admit = (object: JsonObject) => readonly AdmitJudgement[];

/** Makes a check by the CRDs. */
export function admitBy(admission: Admission): Admit {
  return (object) => {
    const verdict = admission.admit(object, { origin: "import", findings: [] });
    return verdict.kind === "refused" ? verdict.findings : [];
  };
}

/**
 * Compiles schemas. In a bundle, tools/packaging/compiled-schemas.ts takes this file's place: ajv needs 0.15 s of CPU for
 * davit's schemas, which do not change between two starts.
 */

import { Ajv, type Options, type ValidateFunction } from "ajv";
import type { JsonObject } from "../model/json.ts";

/** How ajv checks. `strict` refuses keywords that it does not know. */
export const ajvOptions = {
  allErrors: true,
  useDefaults: true,
  strict: true,
  ownProperties: true,
} as const satisfies Options;

/** Returns the check of a JSON schema. It fills in defaults, and lists all mistakes. */
export function validatorOf(schema: JsonObject): ValidateFunction {
  // A test checks the schemas themselves (test/crds/crds.test.ts). Here this would take as long as the compilation.
  return new Ajv({ ...ajvOptions, validateSchema: false }).compile(schema);
}

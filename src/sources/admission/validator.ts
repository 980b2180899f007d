/**
 * Compiles schemas. The bundle has code of tools/packaging/compiled-schemas.ts in place of this file: ajv needs more
 * than 0.1 s of CPU for davit's schemas, which do not change between two starts.
 */

import { Ajv, type Options, type ValidateFunction } from "ajv";
import type { JsonObject } from "../../model/json.ts";

/** How ajv checks. `strict` refuses keywords that it does not know. davit has its own messages (check.ts). */
export const ajvOptions = {
  allErrors: true,
  useDefaults: true,
  strict: true,
  ownProperties: true,
  messages: false,
} as const satisfies Options;

/** Returns the check of a JSON schema. It fills in defaults, and lists all mistakes. */
export function validatorOf(schema: JsonObject): ValidateFunction {
  // A test checks the schemas themselves (test/crds/crds.test.ts). Here this would take as long as the compilation.
  return new Ajv({ ...ajvOptions, validateSchema: false }).compile(schema);
}

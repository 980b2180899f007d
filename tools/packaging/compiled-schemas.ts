/**
 * A plugin for the bundler: it replaces src/sources/admission/validator.ts by the code that ajv generates for davit's
 * schemas. A schema is found by its digest, so a check can never belong to another schema.
 */

import { hash } from "node:crypto";
import { Ajv } from "ajv";
import standaloneCode from "ajv/dist/standalone/index.js";
import { Admission } from "../../src/sources/admission/admission.ts";
import { ajvOptions } from "../../src/sources/admission/validator.ts";

/** @param crds the texts of the CRDs that the bundle has. */
export function compiledSchemas(crds: readonly string[]) {
  return {
    name: "compiled-schemas",
    load: (id: string) => (id.endsWith("/src/sources/admission/validator.ts") ? codeOf(crds) : undefined),
  };
}

/** Returns a module like src/sources/admission/validator.ts, for the schemas of these CRDs only. */
function codeOf(crds: readonly string[]): { readonly code: string; readonly moduleType: "js" } {
  const ajv = new Ajv({ ...ajvOptions, validateSchema: false, code: { source: true, esm: true } });
  const digests = new Admission(crds).schemas.map((schema) => {
    const digest = hash("sha256", JSON.stringify(schema));
    ajv.addSchema(schema, digest);
    return digest;
  });
  const names = digests.map((digest, at): [string, string] => [`check${at}`, digest]);
  const pairs = names.map(([name, digest]) => `[${JSON.stringify(digest)}, ${name}]`);
  const code = [
    standaloneCode.default(ajv, Object.fromEntries(names)),
    'import { hash } from "node:crypto";',
    `const checks = new Map([${pairs.join(", ")}]);`,
    "export function validatorOf(schema) {",
    '  const check = checks.get(hash("sha256", JSON.stringify(schema)));',
    '  if (check === undefined) throw new Error("The bundle has no check for a schema: build it anew");',
    "  return check;",
    "}",
  ];
  return { code: code.join("\n"), moduleType: "js" };
}

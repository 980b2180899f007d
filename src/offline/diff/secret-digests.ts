/** Digests of the texts of Secrets among manifests: a running davit says for each of them whether it has the same. */

import { createHash } from "node:crypto";
import { readSecret } from "../../controller/reconcile/resolve-profile.ts";
import { partsOf } from "../../model/objects/profile.ts";
import type { SourceView } from "../../model/objects/source.ts";

/** Returns the SHA-256 of each template that has its text from a Secret, by `namespace/profile/part`. */
export function secretDigests(view: Pick<SourceView, "all" | "get">): Readonly<Record<string, string>> {
  const world = {
    secret: (namespace: string, name: string) => view.get("Secret", namespace, name),
    isForbidden: () => false,
  };
  const digests: Record<string, string> = {};
  for (const { namespace, name, spec } of view.all("Profile")) {
    for (const part of partsOf(spec.templates)) {
      const source = spec.templates[part];
      const found = source?.kind === "secret" ? readSecret(source, namespace, world) : undefined;
      if (found === undefined || "fault" in found) continue;
      digests[`${namespace}/${name}/${part}`] = createHash("sha256").update(found.text).digest("hex");
    }
  }
  return digests;
}

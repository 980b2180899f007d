/** Finds valid but probably unintended objects: Groups that take every machine, and Profiles that no Group uses. */

import type { Planned } from "../controller/planner.ts";
import type { Manifests } from "../offline/load-manifests.ts";
import { placeOfField } from "./fields.ts";
import { findingAt, type LintFinding, objectText } from "./finding.ts";

/** Advice on how objects are used. */
export function useFindings(manifests: Manifests): readonly LintFinding[] {
  return [...catchAlls(manifests), ...unusedProfiles(manifests)];
}

/** A catch-all that boots from disk is good practice; any other may be an installer. */
function catchAlls(manifests: Manifests): readonly LintFinding[] {
  const { view } = manifests;
  return [...view.all("Group")].flatMap((group) => {
    const { spec, namespace, refusal } = group;
    const boot = view.get("Profile", namespace, spec.profile)?.spec.boot;
    if (!spec.matchAll || refusal !== undefined || boot === undefined || boot.kind === "local") return [];
    const message = "takes every machine that no other Group takes, and does not boot it from disk";
    return [
      findingAt(
        placeOfField(manifests, group, { field: "spec.matchAll" }),
        "catch-all",
        `${objectText(group)}: ${message}`,
      ),
    ];
  });
}

/** While an object is refused, it may be the Group that names a Profile. */
function unusedProfiles(manifests: Manifests): readonly LintFinding[] {
  if (!manifests.view.complete) return [];
  return manifests.planned.filter(isUnused).map(({ name }) => {
    const place = placeOfField(manifests, name, { field: "metadata.name" });
    return findingAt(place, "unused-profile", `${objectText(name)}: no Group names it`);
  });
}

function isUnused({ name, status }: Planned): boolean {
  return name.kind === "Profile" && status?.groupCount === 0;
}

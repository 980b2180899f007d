/** What is wrong with an object, in the words of its status. */

import { type Condition, heldReason, type ObjectName, type ObjectStatus } from "../../../model/objects/source.ts";

/**
 * Returns what is wrong with a Group or its Profile, for its machines' rows; undefined if nobody needs to act.
 * @param group and `profile` are `namespace/name`.
 */
export function problemOf(
  statuses: { of(name: ObjectName): ObjectStatus | undefined },
  group: string,
  profile: string | undefined,
): string | undefined {
  const named = [profile === undefined ? undefined : ownName("Profile", profile), ownName("Group", group)];
  for (const name of named.filter((each) => each !== undefined)) {
    const problem = problemIn(statuses.of(name));
    if (problem !== undefined) return `${name.kind} ${name.namespace}/${name.name}: ${problem.message}`;
  }
  return undefined;
}

/** Returns the condition that says what is wrong with an object; undefined if nothing is. A held object is right. */
export function problemIn(status: ObjectStatus | undefined): Condition | undefined {
  const of = (type: Condition["type"]) => status?.conditions.find((condition) => condition.type === type);
  const found = [of("Ready"), of("Rendered")].filter((condition) => condition !== undefined);
  return found.find(({ status: is, reason }) => is === "False" && reason !== heldReason);
}

function ownName(kind: "Profile" | "Group", name: string): ObjectName {
  const [namespace = "", plain = ""] = name.split("/");
  return { kind, namespace, name: plain };
}

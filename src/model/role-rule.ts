/** A missing rule of RBAC in words: what an administrator adds to davit's Role, and where all rules are. Pure. */

export interface RoleRule {
  /** Empty for the core group. */
  readonly apiGroup: string;
  /** With its subresource: `groups/status`. */
  readonly resource: string;
  /** Set if the rule is for a single object. */
  readonly name?: string | undefined;
  readonly verbs: readonly string[];
}

/** Returns that davit's Role lacks a rule, and the cure. It is one clause, without the full stop. */
export function lackedRule(rule: RoleRule, kind: "Role" | "ClusterRole" = "Role"): string {
  return `its ${kind} lacks the rule ${ruleText(rule)}: upgrade the chart, or see docs/internals/controller.md#rbac`;
}

/** Returns a rule as YAML for the `rules` of a Role. */
function ruleText({ apiGroup, resource, name, verbs }: RoleRule): string {
  const names = name === undefined ? "" : `, resourceNames: [${name}]`;
  const group = apiGroup === "" ? '""' : apiGroup;
  return `{apiGroups: [${group}], resources: [${resource}]${names}, verbs: [${verbs.join(", ")}]}`;
}

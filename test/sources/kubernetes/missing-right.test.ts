import { describe, expect, it } from "vitest";
import { answeredError, type SentRequest } from "../../../src/sources/kubernetes/client/api-error.ts";

const machines = "/apis/davit.dev/v1alpha1/namespaces/lab/machines";
const configMaps = "/api/v1/namespaces/lab/configmaps";
const secrets = "/api/v1/namespaces/lab/secrets";
const page = "upgrade the chart, or see docs/internals/controller.md#rbac";
const denied = 'machines.davit.dev is forbidden: User "davit" cannot list resource "machines" in API group "davit.dev"';

function refused(request: SentRequest, message?: string): string {
  const body = { kind: "Status", reason: "Forbidden", ...(message !== undefined && { message }) };
  return answeredError(request, { status: 403, headers: {}, body }).message;
}

describe("a 403 names the right and the rule of", () => {
  it.each([
    [{ path: machines }, "list machines.davit.dev", "davit.dev], resources: [machines], verbs: [list]"],
    [
      { path: machines, query: { watch: "1" } },
      "watch machines.davit.dev",
      "davit.dev], resources: [machines], verbs: [watch]",
    ],
    [
      { path: `${machines}/node`, method: "DELETE" },
      'delete machines.davit.dev "node"',
      "davit.dev], resources: [machines], verbs: [delete]",
    ],
    [
      { path: machines, method: "POST" },
      "create machines.davit.dev",
      "davit.dev], resources: [machines], verbs: [create]",
    ],
    [
      { path: `${machines}/node/status`, method: "PATCH" },
      "patch machines/status",
      "davit.dev], resources: [machines/status], verbs: [patch]",
    ],
    [
      { path: `${configMaps}/davit-ledger`, method: "PATCH" },
      'patch configmaps "davit-ledger"',
      '""], resources: [configmaps], resourceNames: [davit-ledger], verbs: [patch]',
    ],
    [
      { path: secrets, query: { watch: "1", fieldSelector: "metadata.name=tokens" } },
      'watch secrets "tokens"',
      '""], resources: [secrets], resourceNames: [tokens], verbs: [watch]',
    ],
    [
      { path: "/apis/events.k8s.io/v1/namespaces/lab/events", method: "POST" },
      "create events",
      "events.k8s.io], resources: [events], verbs: [create]",
    ],
  ] as const)("%j", (request, what, rule) => {
    const text = `davit may not ${what} in namespace "lab" (403): its Role lacks the rule {apiGroups: [${rule}}: ${page}`;
    expect(refused(request, denied)).toBe(text);
    expect(refused(request)).toBe(text);
  });

  it("a ClusterRole, for a request for all namespaces", () => {
    expect(refused({ path: "/apis/davit.dev/v1alpha1/machines" }, denied)).toBe(
      `davit may not list machines.davit.dev in all namespaces (403): its ClusterRole lacks the rule {apiGroups: [davit.dev], resources: [machines], verbs: [list]}: ${page}`,
    );
  });
});

describe("no rule is named", () => {
  it.each([
    "admission webhook denied the request: no",
    "exceeded quota: pods",
    "unable to create new content in namespace lab because it is being terminated",
  ])("for another refusal: %s", (message) => {
    expect(refused({ path: machines, method: "POST" }, message)).toBe("the API server refuses (403 Forbidden)");
  });

  it("for a path without a resource", () => {
    expect(refused({ path: "/.well-known/openid-configuration" })).toBe("the API server refuses (403 Forbidden)");
  });
});

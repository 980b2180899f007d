import { expect, it } from "vitest";
import type { JsonObject } from "../../../src/model/json.ts";
import { specManager } from "../../../src/sources/kubernetes/source/judge.ts";

function entry(manager: string, seconds: number, more: JsonObject = {}): JsonObject {
  const time = `2026-01-01T00:00:0${seconds}Z`;
  return { manager, operation: "Update", time, fieldsV1: { "f:spec": { "f:hold": {} } }, ...more };
}

function managerOf(...managedFields: readonly JsonObject[]): string | undefined {
  return specManager({ metadata: { managedFields } })?.manager;
}

it("is the one that changed the spec last, whatever the order of the record", () => {
  expect(managerOf(entry("helm", 5), entry("kubectl", 2))).toBe("helm");
  expect(managerOf(entry("kubectl", 2), entry("helm", 5))).toBe("helm");
  expect(specManager({ metadata: { managedFields: [entry("kubectl", 2, { operation: "Apply" })] } })).toEqual({
    manager: "kubectl",
    operation: "Apply",
    managedAt: "2026-01-01T00:00:02Z",
  });
});

it("is not one that wrote a status or an annotation, and nobody without a record", () => {
  const status = entry("davit", 9, { subresource: "status" });
  const annotation = entry("argocd", 8, { fieldsV1: { "f:metadata": {} } });
  expect(managerOf(entry("kubectl", 2), status, annotation)).toBe("kubectl");
  expect(managerOf(status, annotation)).toBeUndefined();
  expect(specManager({ metadata: {} })).toBeUndefined();
  expect(specManager({ metadata: { managedFields: "x" } })).toBeUndefined();
});

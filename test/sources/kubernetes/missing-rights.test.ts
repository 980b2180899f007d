import { beforeEach, describe, expect, it } from "vitest";
import type { ObjectName } from "../../../src/model/objects/source.ts";
import { MissingRights } from "../../../src/sources/kubernetes/status/missing-rights.ts";

const group = (name: string, namespace = "lab"): ObjectName => ({ kind: "Group", namespace, name });
const profile: ObjectName = { kind: "Profile", namespace: "lab", name: "a" };
let rights: MissingRights;

beforeEach(() => {
  rights = new MissingRights();
  for (const name of ["a", "b"]) rights.refused(group(name), "groups in lab");
  rights.refused(profile, "profiles in lab");
  rights.refused(group("a", "infra"), "groups in infra");
});

describe("a missing right", () => {
  it("is told once for each kind and namespace", () => {
    expect(rights.lines).toEqual(["groups in lab", "profiles in lab", "groups in infra"]);
  });

  it("is told no more once it was used, and the others are", () => {
    rights.granted(group("c"));
    expect(rights.lines).toEqual(["profiles in lab", "groups in infra"]);
  });

  it("is told no more once no object is left that needs it", () => {
    rights.forget(group("a"));
    expect(rights.lines).toContain("groups in lab");
    rights.forget(group("b"));
    expect(rights.lines).toEqual(["profiles in lab", "groups in infra"]);
  });
});

import { describe, expect, it } from "vitest";
import type { Finding } from "../../src/controller/status/conditions.ts";
import { type FindingCode, findingRules, findingSections, severities } from "../../src/model/objects/findings.ts";
import type { BootRefusal } from "../../src/model/refusals.ts";
import { reasonCodes } from "../../src/render/core/reason-codes.ts";

/** No mistake in objects: of the moment, of davit itself, or told by the findings of the object. */
const noMistake = "no mistake";

type Codes = readonly FindingCode[] | typeof noMistake;

/** Every reason of a condition that says what is wrong; the compiler asks for each. */
const ofReasons: Readonly<Record<Finding["reason"], Codes>> = {
  InvalidTemplate: ["invalid-template", "unknown-name", "wrong-argument", "butane", "invalid-generic"],
  InvalidURL: ["invalid-url"],
  UndefinedVariable: ["undefined-variable"],
  RenderFailed: ["invalid-ignition", "invalid-cloud-config", "unsafe-value", "wrong-argument"],
  TooLarge: ["template-too-large"],
  Refused: noMistake,
  NotPermitted: ["not-permitted"],
  InternalError: noMistake,
  ProfileNotFound: ["missing-profile"],
  ProfileOutdated: noMistake,
  TemplateNotFound: ["missing-config-map", "missing-secret"],
  KeyNotFound: ["missing-key"],
  RefNotPermitted: ["secret-not-allowed"],
};

/** Every reason for which a machine is refused; the compiler asks for each. */
const ofRefusals: Readonly<Record<BootRefusal, Codes>> = {
  notReady: noMistake,
  changing: noMistake,
  noMatch: noMistake,
  noProfile: ["missing-profile"],
  vanished: noMistake,
  noPart: noMistake,
  held: noMistake,
  bereft: noMistake,
  refused: noMistake,
  oldProfile: noMistake,
  failed: noMistake,
  tied: ["selector-tie"],
  unreadable: noMistake,
  ambiguous: noMistake,
  doubtful: noMistake,
  unapproved: noMistake,
  noPermit: noMistake,
  late: noMistake,
  assetMissing: ["missing-asset", "wrong-asset"],
  withheld: noMistake,
  needsTls: noMistake,
  noTls: noMistake,
  busy: noMistake,
  undecryptable: noMistake,
  broken: ["undefined-variable", "invalid-ignition", "invalid-cloud-config", "empty-kernel"],
};

const told = [...Object.values(ofReasons), ...Object.values(ofRefusals), Object.values(reasonCodes)];

describe("the catalogue of findings", () => {
  it("has every mistake that conditions and refusals tell", () => {
    const codes = told.flatMap((each) => (each === noMistake ? [] : each));
    expect(codes.filter((code) => !Object.hasOwn(findingRules, code))).toEqual([]);
  });

  it("has each code in one section", () => {
    const codes = Object.values(findingSections).flatMap((section) => Object.keys(section));
    expect(codes.toSorted()).toEqual(Object.keys(findingRules).toSorted());
    expect(new Set(codes).size).toBe(codes.length);
  });

  it.each(Object.entries(findingRules))("says of %s what it means and what to do, in a sentence each", (code, rule) => {
    expect(code).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
    expect(severities).toContain(rule.severity);
    for (const text of [rule.means, rule.cure]) expect(text).toMatch(/^\S.*[^.\s]$/);
    expect(`${rule.means}${rule.cure}`).not.toContain("|");
  });
});

import { describe, expect, it } from "vitest";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { answerError } from "../../src/http/errors.ts";

describe("a machine without a permit", () => {
  it.each([
    ["noPermit", "5", "no permit to install"],
    ["unapproved", "5", "machine not approved"],
    ["late", "1", "permit not logged yet"],
  ] as const)("is asked to come back: %s", (reason, seconds, words) => {
    const problem = "spec.install.until is over: raise the generation and set a later until";
    const error = new BootError(reason, { group: "lab/node", profile: "lab/web", problem });
    const answer = answerError(error, "/ipxe");
    expect(answer).toMatchObject({ status: 503, headers: { "retry-after": seconds }, body: `503 ${words}\n` });
    expect(answer.report).toBeUndefined();
    expect(answerError(error, "/grub").body).toContain("\nsleep 5\n");
    expect(answerError(error, "/grub.sig").body).toBe(`# 503 ${words}\n`);
  });
});

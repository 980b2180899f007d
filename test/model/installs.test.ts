import { expect, it } from "vitest";
import { installs } from "../../src/model/objects/profile.ts";

const local = { kind: "local", local: "exit" } as const;

it.each([
  ["of no effect", {}, false],
  ["that boots", { effect: "Boot" }, false],
  ["that installs", { effect: "Install" }, true],
  ["that installs by a script of its own for GRUB", { effect: "Install", boot: local, grubScript: "boot" }, true],
  ["whose machines only boot from disk", { effect: "Install", boot: local }, false],
] as const)("a Profile %s", (_what, content, expected) => {
  expect(installs({ displayName: "web", templates: {}, ...content })).toBe(expected);
});

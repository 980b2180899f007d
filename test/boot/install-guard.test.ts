/** Where configs are signed, the GRUB config of an Install is for the machine that asked, and no other. */

import { expect, it } from "vitest";
import { BootConfigs } from "../../src/boot/boot-configs.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";

const kernel = { kind: "kernel", kernel: "/k", initrd: [], args: [], efiInitrd: false } as const;
const mac = "52:54:00:a1:9c:ae";
const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";

interface Given {
  readonly content?: Partial<ProfileContent>;
  readonly selector?: Readonly<Record<string, string>>;
  readonly expressions?: readonly Expression[];
  readonly isSigned?: boolean;
  readonly rawQuery?: string;
}

function grubOf(given: Given): string {
  const { content = { boot: kernel }, selector = { mac }, expressions = [], isSigned = true } = given;
  const { rawQuery = "mac=52-54-00-A1-9C-AE" } = given;
  const index = new BootIndex({ log: silentLog });
  index.replaced([
    profileDocument("lab/web", { effect: "Install", ...content }),
    groupDocument("lab/web", { selector, ...(expressions.length > 0 && { expressions }) }),
    syncedDocument(),
  ]);
  index.open();
  const grub = { separator: "auto", commands: "plain" } as const;
  const configs = new BootConfigs({ index, authority: "192.0.2.1:80", grub, isSigned });
  return configs.render("grub", { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" }).rendered.body;
}

const entry = 'menuentry "web" {\necho "Loading kernel"\nlinux "(http;192.0.2.1:80)/k"\n}\n';
const tail = `regexp --set=1:root '^\\((http.*)\\)$' "$config_directory"\n`;
const rebooting = 'echo "Rebooting in 10 seconds"\nsleep 10\nreboot\n';
const refusal = (label: string, value: string, variable: string) =>
  `echo "davit: this config installs the machine with ${label}" "${value}" "and not $${variable}"\n${rebooting}`;

it("has its entry inside of a condition on the MAC that was asked by", () => {
  expect(grubOf({})).toBe(
    `default=0\ntimeout=1\nif [ "$net_default_mac" = "${mac}" ]; then\n${entry}` +
      `else\n${refusal("mac", mac, "net_default_mac")}fi\n${tail}`,
  );
});

it.each([
  { name: "configs are not signed", given: { isSigned: false } },
  { name: "the Profile installs nothing", given: { content: { effect: "Boot", boot: kernel } } },
] as const)("has none where $name", ({ given }) => {
  expect(grubOf(given)).toBe(`default=0\ntimeout=1\n${entry}${tail}`);
});

it.each([
  { name: "a label", given: { selector: { uuid } } },
  { name: "an expression", given: { selector: {}, expressions: [{ key: "uuid", operator: "In", values: [uuid] }] } },
] as const)("has one on what else its Group selects by, which a machine may claim of another: $name", ({ given }) => {
  const text = grubOf({ ...given, rawQuery: `mac=${mac}&uuid=${uuid}&serial=S1` });
  expect(text).toBe(
    `default=0\ntimeout=1\nif [ "$net_default_mac" = "${mac}" ]; then\n` +
      `smbios --type 1 --get-uuid 8 --set davit_uuid\nif [ "$davit_uuid" = "${uuid}" ]; then\n${entry}` +
      `else\n${refusal("uuid", uuid, "davit_uuid")}fi\nelse\n${refusal("mac", mac, "net_default_mac")}fi\n${tail}`,
  );
});

it("has no entry for a request without a MAC, and says so", () => {
  const text = grubOf({ selector: { uuid }, rawQuery: `uuid=${uuid}` });
  expect(text).not.toContain("menuentry");
  expect(text).toContain("the request does not name it: send mac=$net_default_mac");
  expect(text).toContain(rebooting);
});

it("comes behind a loop where it is the Profile's own, which may have functions", () => {
  const grubScript = "function f {\nexit\n}\nmenuentry x {\nf\n}\n";
  expect(grubOf({ content: { grubScript } })).toBe(
    `until [ "$net_default_mac" = "${mac}" ]; do\n${refusal("mac", mac, "net_default_mac")}done\nset davit_answered=yes\n${grubScript}`,
  );
  const nameless = grubOf({ content: { grubScript }, selector: { uuid }, rawQuery: `uuid=${uuid}` });
  expect(nameless).not.toContain("menuentry");
});

it("is a text of its own for each machine", () => {
  const expressions: readonly Expression[] = [{ key: "mac", operator: "Exists", values: [] }];
  const texts = ["aa", "bb"].map((end) => grubOf({ selector: {}, expressions, rawQuery: `mac=52-54-00-a1-9c-${end}` }));
  expect(texts[0]).toContain('= "52:54:00:a1:9c:aa" ]');
  expect(texts[1]).toContain('= "52:54:00:a1:9c:bb" ]');
});

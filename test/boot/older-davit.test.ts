/**
 * What an older davit reads of documents with permits, or with encrypted texts. Its decoders know `failed` of a Profile
 * and `refused` of a Group, and neither `gated`, `exact` nor `encrypted`. It ignores the paths of Machines.
 */

import { describe, expect, it } from "vitest";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { decodeProfile } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { gateWorld, grant, machineDocument, machineTombstone, plan } from "./gate-world.ts";
import { type Documents, log, refusal } from "./open-index.ts";

/** The document without the members that an older davit does not know. */
function asOlder([path, text]: Documents[number]): Documents[number] {
  const { gated: _, exact: __, encrypted: ___, ...rest } = JSON.parse(text);
  return [path, JSON.stringify(rest)];
}

function olderRefusal(documents: Documents): string | undefined {
  const index = new BootIndex({ log });
  index.replaced(documents.map(asOlder));
  index.open();
  return refusal(index, "mac=52-54-00-a1-9c-ae");
}

const install: Partial<ProfileContent> = { effect: "Install", install: plan };
const web = profileDocument("lab/web");
const node = (spec: Partial<GroupSpec> = {}) => groupDocument("lab/node", { matchAll: true, ...spec });

describe("an older davit", () => {
  it.each<[name: string, documents: Documents, reason: string | undefined]>([
    ["a Profile with a plan wait", [profileDocument("lab/web", install), node({ install: grant() })], "failed"],
    ["a Group with approval wait", [web, node({ approval: "Required" })], "refused"],
    [
      "a Group with approval and expressions wait",
      [
        web,
        node({ approval: "Required", matchAll: false, expressions: [{ key: "mac", operator: "Exists", values: [] }] }),
      ],
      "refused",
    ],
    ["a Profile without a plan boot, beside Machines", [web, node(), machineDocument("lab/m")], undefined],
    ["a Group that only grants boot what boots", [web, node({ install: grant() })], undefined],
  ])("has the machines of %s", (_, documents, reason) => {
    expect(olderRefusal([...documents, syncedDocument()])).toBe(reason);
  });

  it("reads a Profile with a plan as failed, and this davit reads the truth", () => {
    const [path, text] = profileDocument("lab/web", install);
    expect(JSON.parse(text)).toMatchObject({ failed: true, gated: { failed: false } });
    const { index } = gateWorld([[path, text], node(), syncedDocument()]);
    expect(refusal(index, "mac=52-54-00-a1-9c-ae")).toBe("noPermit");
    const failed = [path, JSON.stringify({ ...JSON.parse(text), gated: { failed: true } })] as const;
    expect(refusal(gateWorld([failed, node(), syncedDocument()]).index, "")).toBe("failed");
  });

  it("reads a Profile with an encrypted text as failed, without the name of the text, and so does one with permits", () => {
    const sha256 = `encrypted-1-0123abcd-${"0".repeat(64)}`;
    const generic = { kind: "secret", name: "s", key: "k", sha256, raw: true } as const;
    const sealed = { ...generic, duringInstall: true } as const;
    const installs = [{ generic, ignition: sealed }, { ignition: sealed }].map((templates) => ({
      ...install,
      templates,
    }));
    for (const content of [{ templates: { generic } }, ...installs]) {
      const [path, text] = profileDocument("lab/web", content);
      const { encrypted, ...older } = JSON.parse(text);
      expect(JSON.stringify(older)).not.toContain("encrypted-");
      // A davit that knows permits undoes `gated`.
      expect(older.gated).toBeUndefined();
      expect(olderRefusal([[path, text], node(), syncedDocument()])).toBe("failed");
      expect(decodeProfile(text)?.content).toEqual({ displayName: "web", ...content });
      expect(decodeProfile(text)?.failed).toBeUndefined();
    }
  });

  it("reads a Group with approval as refused", () => {
    const [, text] = node({ approval: "Required" });
    expect(JSON.parse(text)).toMatchObject({ refused: true, exact: { expressions: [], refused: false } });
  });

  it("ignores Machines and their tombstones", () => {
    expect(machineDocument("lab/m")[0]).toBe("/davit/machines/lab/m");
    expect(machineTombstone("lab/m", { identities: [] })[0]).toBe("/davit/tombstones/machine/lab/m");
  });
});

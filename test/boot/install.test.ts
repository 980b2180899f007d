import { describe, expect, it } from "vitest";
import { groupDocument, outdated, profileDocument, syncedDocument } from "./feed-documents.ts";
import { type Documents, openIndex, refusal, selected } from "./open-index.ts";

describe("a Profile that installs", () => {
  const install = profileDocument("lab/web", { effect: "Install" });
  const node = groupDocument("lab/node", { selector: { serial: "1" } });

  it("is given while its objects are as their newest versions say", () => {
    expect(selected(openIndex([install, node, syncedDocument()]), "serial=1")).toBe("lab/node lab/web");
  });

  it.each<[name: string, documents: Documents]>([
    ["its own", [outdated(install), node, syncedDocument()]],
    ["its Group's", [install, outdated(node), syncedDocument()]],
  ])("has machines wait once the newest version is not %s served one", (_, documents) => {
    expect(refusal(openIndex(documents), "serial=1")).toBe("doubtful");
  });

  it("has machines wait while no sync was complete, however well the Group names them", () => {
    expect(refusal(openIndex([install, node, syncedDocument({ complete: false })]), "serial=1")).toBe("withheld");
  });

  it("alone has them wait: last good content that boots is given", () => {
    const boot = profileDocument("lab/web", { effect: "Boot" });
    for (const profile of [boot, profileDocument("lab/web")]) {
      const index = openIndex([outdated(profile), outdated(node), syncedDocument()]);
      expect(selected(index, "serial=1")).toBe("lab/node lab/web");
    }
  });
});

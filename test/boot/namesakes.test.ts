/** A machine whose identity labels are named by different Groups: it is not certain which of them it is. */

import { describe, expect, it } from "vitest";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { type Documents, openIndex, refusal, selected } from "./open-index.ts";

const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";
const mac = "52:54:00:00:00:01";
const both = `uuid=${uuid}&mac=${mac}`;
const install = profileDocument("lab/wipe", { effect: "Install" });
const disk = profileDocument("lab/disk", { effect: "Boot" });
const byUuid = groupDocument("lab/uuid", { selector: { uuid }, profile: "wipe" });
const byMac = groupDocument("lab/mac", { selector: { mac }, profile: "disk" });

function indexOf(...documents: Documents) {
  return openIndex([install, disk, ...documents, syncedDocument()]);
}

/** Of a tenant, which claimed its machines at this index. */
function claimed([path, text]: Documents[number], claimedAt: number): Documents[number] {
  return [path, JSON.stringify({ ...JSON.parse(text), tenant: true, claimedAt })];
}

describe("an Install by one identity label", () => {
  it("waits while another Group names the machine by another label", () => {
    const index = indexOf(byUuid, byMac);
    expect(refusal(index, both)).toBe("doubtful");
    expect(selected(index, `uuid=${uuid}`)).toBe("lab/uuid lab/wipe");
    expect(selected(index, `uuid=${uuid}&mac=52:54:00:00:00:02`)).toBe("lab/uuid lab/wipe");
    expect(selected(index, `mac=${mac}`)).toBe("lab/mac lab/disk");
  });

  it.each<[name: string, group: Documents[number]]>([
    ["with more labels", groupDocument("lab/uuid", { selector: { uuid, zone: "a" }, profile: "wipe" })],
    [
      "by a list",
      groupDocument("lab/uuid", {
        selector: { zone: "a" },
        expressions: [{ key: "serial", operator: "In", values: ["0", "1"] }],
        profile: "wipe",
      }),
    ],
  ])("waits, too, when it names the machine %s", (_, group) => {
    const other = groupDocument("lab/host", { selector: { hostname: "node" }, profile: "disk" });
    expect(refusal(indexOf(group, other), `${both}&zone=a&serial=1&hostname=node`)).toBe("doubtful");
  });

  it("waits when the other Group asks for a list, for more labels, or is held", () => {
    const others = [
      { expressions: [{ key: "mac", operator: "In", values: [mac, "52:54:00:00:00:09"] } as const], profile: "disk" },
      { selector: { mac, zone: "a" }, profile: "disk" },
      { selector: { mac }, profile: "wipe", hold: true },
      { selector: { mac }, profile: "wipe", metadata: { disk: "/dev/sdb" } },
      { selector: { mac }, profile: "wipe", args: ["coreos.inst.install_dev=/dev/sdb"] },
    ];
    const winner = groupDocument("lab/uuid", { selector: { uuid, role: "b" }, profile: "wipe" });
    for (const other of others) {
      expect(refusal(indexOf(winner, groupDocument("lab/mac", other)), `${both}&zone=a&role=b`)).toBe("doubtful");
    }
  });

  it("of a tenant waits for another Group of its namespace, and for none of another tenant", () => {
    const other = groupDocument("other/mac", { selector: { mac }, profile: "disk" });
    expect(refusal(indexOf(claimed(byUuid, 1), claimed(byMac, 1)), both)).toBe("doubtful");
    expect(selected(indexOf(claimed(byUuid, 1), claimed(other, 2)), both)).toBe("lab/uuid lab/wipe");
    expect(selected(indexOf(byUuid, claimed(other, 2)), both)).toBe("lab/uuid lab/wipe");
  });

  it.each<[name: string, documents: Documents]>([
    ["the other gives the same", [byUuid, groupDocument("lab/mac", { selector: { mac }, profile: "wipe" })]],
    [
      "a priority says who wins",
      [groupDocument("lab/uuid", { selector: { uuid }, profile: "wipe", priority: 1 }), byMac],
    ],
    ["it names the machine by both", [groupDocument("lab/uuid", { selector: { uuid, mac }, profile: "wipe" }), byMac]],
    [
      "the other names a pattern",
      [
        byUuid,
        groupDocument("lab/mac", {
          expressions: [{ key: "mac", operator: "Prefix", values: ["52:54"] }],
          profile: "disk",
        }),
      ],
    ],
  ])("is given where %s", (_, documents) => {
    expect(selected(indexOf(...documents), both)).toBe("lab/uuid lab/wipe");
  });
});

it("what boots is given by whichever Group wins", () => {
  const index = indexOf(groupDocument("lab/uuid", { selector: { uuid }, profile: "disk" }), byMac);
  expect(selected(index, both)).toBe("lab/uuid lab/disk");
});

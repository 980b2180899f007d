import { describe, expect, it } from "vitest";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import {
  decodeGroup,
  encodeDocument,
  type GroupDocument,
  groupPath,
  profilePath,
  profileTombstonePath,
  syncedPath,
  tombstonePath,
} from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { BootRefusal } from "../../src/model/refusals.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { type Documents, log, openIndex, refusal, selected } from "./open-index.ts";

const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";

const machineDocuments: Documents = [
  profileDocument("lab/web"),
  groupDocument("lab/node", { selector: { mac: "52:54:00:00:00:01" } }),
  syncedDocument(),
];

function decodedGroup(spec: Partial<GroupSpec>): GroupDocument {
  const document = decodeGroup(groupDocument("lab/own", spec)[1]);
  if (document === undefined) throw new Error("Not a Group");
  return document;
}

describe("select", () => {
  it("gives the group and its Profile", () => {
    expect(selected(openIndex(machineDocuments), "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
  });

  it("is not ready before anything is known", () => {
    const index = new BootIndex({ log });
    index.open();
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("notReady");
  });

  it("is not ready before the first sync is finished", () => {
    const index = openIndex(machineDocuments.slice(0, 2));
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("notReady");
    expect(index.isReady).toBe(false);
    index.changed([{ path: syncedDocument()[0], text: syncedDocument()[1] }]);
    expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
    expect(index.isReady).toBe(true);
  });

  it("is not ready before it is opened", () => {
    const index = new BootIndex({ log });
    index.replaced(machineDocuments);
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("notReady");
    expect(index.isReady).toBe(false);
  });

  it.each<[name: string, documents: Documents, query: string, reason: BootRefusal]>([
    ["no group matches", machineDocuments, "mac=52-54-00-00-00-02", "noMatch"],
    ["the request has no labels", machineDocuments, "", "noMatch"],
    ["the mac is invalid", machineDocuments, "mac=52-54-00-00-00", "unreadable"],
    ["there are two macs", machineDocuments, "mac=52-54-00-00-00-01&mac=52-54-00-00-00-02", "ambiguous"],
    [
      "the Profile does not exist, though a less specific group has one",
      [
        ...machineDocuments,
        groupDocument("lab/own", { selector: { serial: "1" }, profile: "gone" }),
        groupDocument("lab/all", { matchAll: true }),
      ],
      "serial=1",
      "noProfile",
    ],
    [
      "the Profile exists in another namespace only",
      [profileDocument("other/web"), groupDocument("lab/g", { selector: { serial: "1" } }), syncedDocument()],
      "serial=1",
      "noProfile",
    ],
    [
      "the group is held",
      [...machineDocuments, groupDocument("lab/own", { selector: { serial: "1" }, hold: true })],
      "serial=1",
      "held",
    ],
    [
      "the group was refused",
      [...machineDocuments, groupDocument("lab/own", { selector: { serial: "1" } }, true)],
      "serial=1",
      "refused",
    ],
    [
      "groups of several namespaces tie",
      [
        ...machineDocuments,
        [groupPath("lab", "own"), encodeDocument({ ...decodedGroup({ selector: { serial: "1" } }), tied: true })],
      ],
      "serial=1",
      "tied",
    ],
    [
      "the group is no catch-all but its selector is empty",
      [...machineDocuments, groupDocument("lab/emptied", {})],
      "serial=1",
      "noMatch",
    ],
  ])("refuses when %s", (_name, documents, query, reason) => {
    expect(refusal(openIndex(documents), query)).toBe(reason);
  });

  it("gives the catch-all to whoever has no group of its own", () => {
    const index = openIndex([...machineDocuments, groupDocument("lab/all", { matchAll: true })]);
    expect(selected(index, "mac=52-54-00-00-00-02")).toBe("lab/all lab/web");
    expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
  });

  it("names group and Profile in its error", () => {
    const index = openIndex([groupDocument("lab/g", { selector: { serial: "1" } }), syncedDocument()]);
    expect(() => index.select(labelsFromQuery("serial=1"))).toThrow(
      expect.objectContaining({ reason: "noProfile", group: "lab/g", profile: "lab/web" }),
    );
  });
});

describe("while part of the source was never readable", () => {
  const index = openIndex([
    profileDocument("lab/web"),
    ...["serial", "hostname"].map((label) => groupDocument(`lab/${label}`, { selector: { [label]: "1" } })),
    groupDocument("lab/uuid", { selector: { uuid } }),
    groupDocument("lab/mac", { selector: { mac: "52:54:00:00:00:01", role: "web" } }),
    groupDocument("lab/role", { selector: { role: "web" }, priority: 1 }),
    groupDocument("lab/all", { matchAll: true }),
    syncedDocument({ complete: false }),
  ]);

  it.each([`uuid=${uuid}`, "serial=1", "hostname=1"])("a group that names the machine is answered for %s", (query) => {
    expect(refusal(index, query)).toBeUndefined();
  });

  it.each([
    ["a group of many machines wins", "role=web&mac=52-54-00-00-00-01"],
    ["only the catch-all matches", "mac=52-54-00-00-00-09"],
  ])("the answer is withheld when %s", (_name, query) => {
    expect(refusal(index, query)).toBe("withheld");
  });

  it("the answer is withheld when nothing matches, since the unreadable part may hold the machine's group", () => {
    const bare = openIndex([...machineDocuments.slice(0, 2), syncedDocument({ complete: false })]);
    expect(refusal(bare, "serial=9")).toBe("withheld");
    expect(refusal(bare, "mac=52-54-00-00-00-01")).toBeUndefined();
  });
});

describe("changes", () => {
  const [groupAt, groupText] = groupDocument("lab/node", { selector: { mac: "52:54:00:00:00:01" } });

  it("take effect together", () => {
    const index = openIndex(machineDocuments);
    const [newPath, newText] = groupDocument("lab/new", { selector: { serial: "1" }, profile: "new" });
    const [profileAt, profileText] = profileDocument("lab/new");
    index.changed([
      { path: newPath, text: newText },
      { path: profileAt, text: profileText },
      { path: groupAt, text: undefined },
    ]);
    expect(selected(index, "serial=1")).toBe("lab/new lab/new");
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("noMatch");
    expect(index.groupCount).toBe(1);
  });

  it("of a selector move the group", () => {
    const index = openIndex(machineDocuments);
    const [path, text] = groupDocument("lab/node", { selector: { serial: "7" } });
    index.changed([{ path, text }]);
    expect(selected(index, "serial=7")).toBe("lab/node lab/web");
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("noMatch");
  });

  it("that delete a Profile lead to noProfile", () => {
    const index = openIndex(machineDocuments);
    index.changed([{ path: profileDocument("lab/web")[0], text: undefined }]);
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("noProfile");
  });

  it("that delete the sync mark make the index not ready", () => {
    const index = openIndex(machineDocuments);
    index.changed([{ path: syncedPath, text: undefined }]);
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("notReady");
  });

  it.each(["{", '{"spec":{}}', "", '{"spec":{"selector":{},"profile":"p","matchAll":false}}'])(
    "to the unreadable text %j leave the last readable group",
    (text) => {
      const index = openIndex(machineDocuments);
      index.changed([{ path: groupAt, text }]);
      expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
      index.replaced(machineDocuments.map(([path, good]) => [path, path === groupAt ? text : good]));
      expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
      index.changed([{ path: groupAt, text: groupText }]);
      expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
    },
  );

  it("to other paths are passed over", () => {
    const index = openIndex(machineDocuments);
    index.changed([
      { path: "/davit/else/mac/x", text: "{}" },
      { path: "/elsewhere", text: undefined },
    ]);
    expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
  });

  it("that replace everything forget what is not in it", () => {
    const index = openIndex(machineDocuments);
    index.replaced([syncedDocument()]);
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("noMatch");
    expect(index.groupCount).toBe(0);
  });
});

describe("a tombstone", () => {
  const mac = "52:54:00:00:00:02";
  const query = `mac=52-54-00-00-00-02&uuid=${uuid.toUpperCase()}&role=web`;
  const atMac: Documents[number] = [tombstonePath("mac", mac), "{}"];
  const atUuid: Documents[number] = [tombstonePath("uuid", uuid), "{}"];
  const documents: Documents = [
    ...machineDocuments,
    groupDocument("lab/all", { matchAll: true }),
    groupDocument("lab/role", { selector: { role: "web" }, priority: 5 }),
  ];

  it.each<[name: string, tombstones: Documents, query: string]>([
    ["another label matches", [atMac], query],
    ["only a catch-all matches", [atMac], "mac=52-54-00-00-00-02"],
    ["its uuid was selected", [atUuid], `uuid=${uuid}`],
  ])("makes its machine wait where %s", (_name, tombstones, asked) => {
    expect(refusal(openIndex([...documents, ...tombstones]), asked)).toBe("bereft");
  });

  it("makes its machine wait where no group matches: nobody sends it to its next boot device", () => {
    expect(refusal(openIndex([...machineDocuments, atMac]), query)).toBe("bereft");
  });

  it.each<[name: string, selector: Record<string, string>, tombstones: Documents, answer: string | undefined]>([
    ["by the same label", { mac, role: "web" }, [atMac], undefined],
    ["by both labels", { mac, uuid }, [atMac, atUuid], undefined],
    ["by one label of two", { mac, role: "web" }, [atMac, atUuid], "bereft"],
  ])("asks of the group that wins to select the machine %s", (_name, selector, tombstones, answer) => {
    const own = groupDocument("lab/own", { selector, priority: 9 });
    expect(refusal(openIndex([...documents, own, ...tombstones]), query)).toBe(answer);
  });

  it("makes a machine wait whose own group loses against a general one", () => {
    const own = groupDocument("lab/own", { selector: { mac } });
    expect(refusal(openIndex([...documents, own, atMac]), query)).toBe("bereft");
  });

  const told = (...labels: readonly object[]): Documents[number] => [atMac[0], JSON.stringify({ labels })];

  it.each<[name: string, gone: object[], selector: Record<string, string>, answer: string | undefined]>([
    ["that had its mac alone, to one with more", [{ mac }], { mac, role: "web" }, undefined],
    ["to one with the same labels", [{ mac, role: "web" }], { mac, role: "web" }, undefined],
    ["to one with a label less", [{ mac, role: "web" }], { mac }, "bereft"],
    ["to one with another label", [{ mac, role: "web" }], { mac, uuid }, "bereft"],
    ["that was never its own, to any", [{ mac, role: "db" }], { mac }, undefined],
    ["to one that selects by a label less than one of several", [{ mac }, { mac, role: "web" }], { mac }, "bereft"],
    ["to one that selects by all of several", [{ mac }, { mac, role: "web" }], { mac, role: "web" }, undefined],
    [
      "of several of which none was its own, to any",
      [
        { mac, os: "a" },
        { mac, role: "db" },
      ],
      { mac },
      undefined,
    ],
  ])("hands a machine from a group %s", (_name, gone, selector, answer) => {
    const own = groupDocument("lab/own", { selector, priority: 9 });
    expect(refusal(openIndex([...documents, own, told(...gone)]), query)).toBe(answer);
  });

  it("makes no machine wait that its group's selector did not match", () => {
    const index = openIndex([...documents, told({ mac, os: "installed" })]);
    expect(selected(index, query)).toBe("lab/role lab/web");
    expect(refusal(index, `${query}&os=installed`)).toBe("bereft");
  });

  it("counts by its label alone where it cannot be read", () => {
    expect(refusal(openIndex([...documents, [atMac[0], "no JSON"]]), query)).toBe("bereft");
  });

  it("is what it was written last", () => {
    const index = openIndex([...documents, told({ mac, os: "installed" })]);
    index.changed([{ path: atMac[0], text: told({ mac, os: "installed" }, { mac })[1] }]);
    expect(refusal(index, query)).toBe("bereft");
  });

  it("is nothing to other machines, or once it has ended", () => {
    const index = openIndex([...documents, atMac]);
    expect(selected(index, "mac=52-54-00-00-00-01")).toBe("lab/node lab/web");
    expect(selected(index, "mac=52-54-00-00-00-03")).toBe("lab/all lab/web");
    index.changed([{ path: atMac[0], text: undefined }]);
    expect(selected(index, query)).toBe("lab/role lab/web");
  });

  it("takes effect in the step that removes the group", () => {
    const index = openIndex(documents);
    index.changed([
      { path: groupPath("lab", "node"), text: undefined },
      { path: tombstonePath("mac", "52:54:00:00:00:01"), text: "{}" },
    ]);
    expect(refusal(index, "mac=52-54-00-00-00-01")).toBe("bereft");
  });
});

describe("a Profile that was removed a moment ago", () => {
  const query = "mac=52-54-00-00-00-01";
  const removal = [
    { path: profilePath("lab", "web"), text: undefined },
    { path: profileTombstonePath("lab", "web"), text: "{}" },
  ];

  it("has its machines wait, for the metadata of their Group as well", () => {
    const index = openIndex(machineDocuments);
    const group = index.selectGroup(labelsFromQuery(query));
    index.changed(removal);
    expect(refusal(index, query)).toBe("vanished");
    expect(() => index.profileOf(group)).toThrow(expect.objectContaining({ reason: "vanished" }));
  });

  it("is one that does not exist, once its tombstone has ended", () => {
    const index = openIndex(machineDocuments);
    index.changed(removal);
    index.changed([{ path: profileTombstonePath("lab", "web"), text: undefined }]);
    expect(refusal(index, query)).toBe("noProfile");
    expect(index.profileOf(index.selectGroup(labelsFromQuery(query)))).toBeUndefined();
  });

  it("is given again as soon as it is back", () => {
    const index = openIndex([...machineDocuments.slice(1), [profileTombstonePath("lab", "web"), "{}"]]);
    expect(refusal(index, query)).toBe("vanished");
    index.changed([{ path: profilePath("lab", "web"), text: profileDocument("lab/web")[1] }]);
    expect(selected(index, query)).toBe("lab/node lab/web");
  });

  it("is nothing to other Groups", () => {
    const other = groupDocument("lab/other", { selector: { serial: "1" }, profile: "none" });
    const index = openIndex([...machineDocuments, other]);
    index.changed(removal);
    expect(refusal(index, "serial=1")).toBe("noProfile");
  });
});

it("a group's path is logged when its document is unreadable, its text is not", () => {
  const lines: string[] = [];
  const watched = new BootIndex({
    log: createLog({ level: "info", format: "json", destination: { write: (line) => void lines.push(line) } }),
  });
  watched.changed([{ path: groupPath("lab", "node"), text: "hunter2" }]);
  expect(lines.join("")).toContain("/davit/groups/lab/node");
  expect(lines.join("")).not.toContain("hunter2");
});

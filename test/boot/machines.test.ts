import { describe, expect, it } from "vitest";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { configsOver, gateWorld, mac, machineDocument, machineTombstone, TestLedger, uuid } from "./gate-world.ts";
import { type Documents, log, openIndex, refusal, selected } from "./open-index.ts";

const asMac = `mac=${mac.replaceAll(":", "-")}`;
const other = "mac=52-54-00-00-00-02";
const changed = ([path, text]: Documents[number]) => ({ path, text });
const base: Documents = [
  profileDocument("lab/web", { effect: "Boot", boot: { kind: "local", local: "exit" } }),
  groupDocument("lab/all", { matchAll: true }),
  groupDocument("lab/rack", { selector: { rack: "7" } }),
  syncedDocument(),
];

describe("the labels of a machine", () => {
  it("are those of its Machine before those of the request, and these before what it reported", () => {
    const ledger = new TestLedger();
    const index = new BootIndex({ log, ledger });
    index.replaced(base);
    index.open();
    expect(selected(index, asMac)).toBe("lab/all lab/web");
    ledger.reported.set("rack", "7");
    expect(selected(index, asMac)).toBe("lab/rack lab/web");
    expect(selected(index, `${asMac}&rack=8`)).toBe("lab/all lab/web");
    index.changed([changed(machineDocument("lab/m", { labels: { rack: "7" } }))]);
    expect(selected(index, `${asMac}&rack=8`)).toBe("lab/rack lab/web");
  });

  it("never get the name of a machine from a Machine or from a report", () => {
    const ledger = new TestLedger();
    const index = new BootIndex({ log, ledger });
    const named = groupDocument("lab/named", { selector: { serial: "s1" } });
    index.replaced([...base, named, machineDocument("lab/m", { labels: { serial: "s1" } })]);
    index.open();
    ledger.reported.set("serial", "s1").set("davit.dev", "x");
    expect(selected(index, asMac)).toBe("lab/all lab/web");
  });

  it("keep their flaws", () => {
    const index = openIndex([...base, machineDocument("lab/m", { labels: { rack: "7" } })]);
    expect(refusal(index, `${asMac}&serial=a&serial=b`)).toBe("ambiguous");
  });

  it("are those of the request in its configs", () => {
    const text = "{{#each request.query}}{{@key}}={{this}} {{/each}}";
    const { configs } = gateWorld([
      profileDocument("lab/web", { templates: { generic: { kind: "text", text, raw: false } } }),
      groupDocument("lab/rack", { selector: { rack: "7" } }),
      machineDocument("lab/m", { labels: { rack: "7" } }),
      syncedDocument(),
    ]);
    const request = { labels: labelsFromQuery("mac=52-54-00-a1-9c-ae&a=b"), rawQuery: "a=b", userAgent: "" };
    expect(configs.render("generic", request).rendered.body).toBe(`a=b mac=${mac} `);
    expect(configs.render("metadata", request).rendered.body).not.toContain("REQUEST_QUERY_RACK");
  });
});

describe("a machine whose identity is not clear", () => {
  const a = machineDocument("lab/a", { identities: [`uuid/${uuid}`, `mac/${mac}`] });
  const b = machineDocument("lab/b", { identities: ["mac/52:54:00:00:00:02"] });

  it.each<[name: string, documents: Documents, query: string, reason: string | undefined]>([
    ["has all identities of its Machine", [a, b], `uuid=${uuid}&${asMac}`, undefined],
    ["sends only one of them", [a, b], asMac, undefined],
    ["has the uuid of one and the mac of another", [a, b], `uuid=${uuid}&${other}`, "ambiguous"],
    ["has a known uuid and a new mac", [a], `uuid=${uuid}&mac=52-54-00-00-00-09`, "ambiguous"],
    ["has a known mac and a new uuid", [a], `uuid=${uuid.replace("4c4c", "4c4d")}&${asMac}`, "ambiguous"],
    ["has a first uuid beside its mac", [b], `uuid=${uuid}&${other}`, undefined],
    [
      "is of two Machines",
      [b, machineDocument("lab/c", { identities: ["mac/52:54:00:00:00:02"] })],
      other,
      "ambiguous",
    ],
    [
      "is of two Machines, one of them held",
      [b, machineDocument("lab/c", { identities: ["mac/52:54:00:00:00:02"], hold: true })],
      other,
      "held",
    ],
    ["has a mac that cannot be read, and Machines have macs", [b], "mac=zz", "unreadable"],
    ["has a mac that cannot be read, and a known uuid", [a], `uuid=${uuid}&mac=zz`, undefined],
  ])("waits, or not: it %s", (_, documents, query, reason) => {
    expect(refusal(openIndex([...base, ...documents]), query)).toBe(reason);
  });
});

describe("a hold and an approval", () => {
  it("hold a machine whatever Group it gets, also without one", () => {
    const held = machineDocument("lab/m", { hold: true });
    expect(refusal(openIndex([...base, held]), asMac)).toBe("held");
    expect(refusal(openIndex([syncedDocument(), held]), asMac)).toBe("held");
    expect(refusal(openIndex([syncedDocument(), held]), other)).toBe("noMatch");
    expect(refusal(openIndex([...base, machineDocument("lab/m", { hold: true }, { refused: true })]), asMac)).toBe(
      "held",
    );
  });

  it("are asked of metadata, too", () => {
    const index = openIndex([...base, machineDocument("lab/m", { hold: true })]);
    expect(() => index.selectGroup(labelsFromQuery(asMac))).toThrow(expect.objectContaining({ reason: "held" }));
    const guarded = groupDocument("lab/all", { matchAll: true, approval: "Required" });
    const closed = openIndex([...base, guarded]);
    expect(() => closed.selectGroup(labelsFromQuery(asMac))).toThrow(expect.objectContaining({ reason: "unapproved" }));
  });

  it.each<[name: string, machine: Documents, reason: string | undefined]>([
    ["no Machine", [], "unapproved"],
    ["one that is not approved", [machineDocument("lab/m")], "unapproved"],
    ["an approved one", [machineDocument("lab/m", { approved: true })], undefined],
    [
      "an approved one that is refused",
      [machineDocument("lab/m", { approved: true }, { refused: true })],
      "unapproved",
    ],
    [
      "an approved one of a tenant elsewhere",
      [machineDocument("web/m", { approved: true }, { tenant: true })],
      "unapproved",
    ],
    ["an approved one of its own tenant", [machineDocument("lab/m", { approved: true }, { tenant: true })], undefined],
  ])("a Group with approval gives a machine with %s what is right", (_, machine, reason) => {
    const guarded = groupDocument("lab/all", { matchAll: true, approval: "Required" });
    expect(refusal(openIndex([...base, guarded, ...machine]), asMac)).toBe(reason);
  });
});

describe("the Machine of a tenant", () => {
  const tenant = { tenant: true } as const;

  it("moves no machine, and holds none, unless a Group of its namespace has it", () => {
    const strange = machineDocument("web/m", { labels: { rack: "7" }, hold: true, metadata: { a: 1 } }, tenant);
    const index = openIndex([...base, strange]);
    expect(selected(index, asMac)).toBe("lab/all lab/web");
    expect(index.selectGroup(labelsFromQuery(asMac)).metadata).toEqual({});
    const own = openIndex([...base, machineDocument("lab/m", { labels: { rack: "7" }, metadata: { a: 1 } }, tenant)]);
    expect(selected(own, asMac)).toBe("lab/all lab/web");
    expect(own.selectGroup(labelsFromQuery(asMac)).metadata).toEqual({ a: 1 });
    expect(refusal(openIndex([...base, machineDocument("lab/m", { hold: true }, tenant)]), asMac)).toBe("held");
  });

  it("beside the admin's Machine makes its own namespace's machines wait, and no others", () => {
    const admins = machineDocument("infra/m", { approved: true });
    const two = openIndex([...base, admins, machineDocument("lab/m", {}, tenant)]);
    expect(refusal(two, asMac)).toBe("ambiguous");
    expect(refusal(openIndex([...base, admins, machineDocument("web/m", {}, tenant)]), asMac)).toBeUndefined();
  });
});

describe("a Machine that was removed, changed or refused", () => {
  const install: Documents = [
    profileDocument("lab/web", { effect: "Install" }),
    groupDocument("lab/all", { matchAll: true }),
    profileDocument("lab/disk", { effect: "Boot" }),
    groupDocument("lab/rack", { selector: { rack: "7" }, profile: "disk" }),
    syncedDocument(),
  ];
  const machine = machineDocument("lab/m", { labels: { rack: "7" } });

  it("leaves no moment in which its machine installs", () => {
    const index = openIndex([...install, machine]);
    expect(selected(index, asMac)).toBe("lab/rack lab/disk");
    const stone = machineTombstone("lab/m", { identities: [`mac/${mac}`] });
    index.changed([{ path: machine[0], text: undefined }, changed(stone)]);
    expect(refusal(index, asMac)).toBe("doubtful");
    expect(refusal(index, `${asMac}&rack=7`)).toBeUndefined();
    expect(refusal(index, other)).toBeUndefined();
    index.changed([{ path: stone[0], text: undefined }]);
    expect(selected(index, asMac)).toBe("lab/all lab/web");
  });

  it("holds back no machine of another tenant", () => {
    const stone = machineTombstone("web/m", { identities: [`mac/${mac}`], tenant: true });
    expect(refusal(openIndex([...install, stone]), asMac)).toBeUndefined();
    const own = machineTombstone("lab/m", { identities: [`mac/${mac}`], tenant: true });
    expect(refusal(openIndex([...install, own]), asMac)).toBe("doubtful");
  });

  it("has every install wait while its document or tombstone is of a later davit", () => {
    for (const [path] of [machine, machineTombstone("lab/m", { identities: [] })]) {
      const index = openIndex([...install, [path, '{"v2":true}']]);
      expect([refusal(index, other), index.doubt]).toEqual(["doubtful", "unreadable"]);
    }
  });

  it("keeps its last readable version, also in a new copy", () => {
    const index = openIndex([...install, machine]);
    index.changed([{ path: machine[0], text: "{}" }]);
    expect(selected(index, asMac)).toBe("lab/rack lab/disk");
    index.replaced([...install, [machine[0], "{}"]]);
    expect(selected(index, asMac)).toBe("lab/rack lab/disk");
  });

  it("installs nothing while its newest version is refused", () => {
    const refused = machineDocument("lab/m", {}, { refused: true });
    expect(refusal(openIndex([...install, refused]), asMac)).toBe("doubtful");
  });
});

describe("the metadata of a Machine", () => {
  const boot = { kind: "kernel", kernel: "/k", initrd: [], efiInitrd: false } as const;
  const documents: Documents = [
    profileDocument("lab/web", {
      boot: { ...boot, args: ["ip={{ip}}", "n={{machine.name}}", "r={{machine.labels.rack}}"] },
    }),
    groupDocument("lab/all", { matchAll: true, metadata: { ip: "none", dns: "d" } }),
    machineDocument("lab/m", { metadata: { ip: "10.0.7.12" }, labels: { rack: "7" } }),
    machineDocument("lab/n", {
      identities: ["mac/52:54:00:00:00:02"],
      metadata: { ip: "10.0.7.13" },
      labels: { rack: "8" },
    }),
    syncedDocument(),
  ];
  const render = (index: BootIndex, query: string, name: "ipxe" | "metadata") =>
    configsOver(index).render(name, { labels: labelsFromQuery(query), rawQuery: "", userAgent: "" }).rendered.body;

  it("replaces that of the Group, one machine beside the other", () => {
    const index = openIndex(documents);
    for (const _ of [1, 2]) {
      expect(render(index, asMac, "ipxe")).toContain("kernel /k ip=10.0.7.12 n=m r=7\n");
      expect(render(index, other, "ipxe")).toContain("kernel /k ip=10.0.7.13 n=n r=8\n");
    }
    expect(render(index, asMac, "metadata")).toMatch(/^DNS=d\nIP=10\.0\.7\.12\n/);
  });

  it("follows a change of the Machine, of the Group and of the Profile", () => {
    const index = openIndex(documents);
    const configs = configsOver(index);
    const now = () =>
      configs.render("ipxe", { labels: labelsFromQuery(asMac), rawQuery: "", userAgent: "" }).rendered.body;
    expect(now()).toContain("ip=10.0.7.12");
    index.changed([changed(machineDocument("lab/m", { metadata: { ip: "10.0.7.14" }, labels: { rack: "9" } }))]);
    expect(now()).toContain("ip=10.0.7.14 n=m r=9\n");
    index.changed([changed(groupDocument("lab/all", { matchAll: true, args: ["last"] }))]);
    expect(now()).toContain("ip=10.0.7.14 n=m r=9 last\n");
    index.changed([changed(profileDocument("lab/web", { boot: { ...boot, args: ["x"] } }))]);
    expect(now()).toContain("kernel /k x last\n");
  });

  it("named machine hides what templates know of the Machine: no answer changes because a Machine appears", () => {
    const text = "{{machine}}";
    const own: Documents = [
      profileDocument("lab/web", { templates: { generic: { kind: "text", text, raw: false } } }),
      groupDocument("lab/all", { matchAll: true, metadata: { machine: "mine" } }),
      syncedDocument(),
    ];
    for (const index of [openIndex(own), openIndex([...own, machineDocument("lab/m")])]) {
      const request = { labels: labelsFromQuery(asMac), rawQuery: "", userAgent: "" };
      expect(configsOver(index).render("generic", request).rendered.body).toBe("mine");
    }
  });
});

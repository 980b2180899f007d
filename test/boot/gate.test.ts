import { describe, expect, it } from "vitest";
import type { BootConfigs, ConfigName } from "../../src/boot/boot-configs.ts";
import { SlowWork } from "../../src/boot/making/slow-work.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { tombstonePath } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import type { InstallPlan } from "../../src/model/permits/permit.ts";
import { TooLongHere } from "../../src/render/template/limits.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { groupDocument, outdated, profileDocument, syncedDocument } from "./feed-documents.ts";
import {
  answerOf,
  configsOver,
  entry,
  gateWorld,
  grant,
  ledgerId,
  mac,
  machineDocument,
  nowMs,
  plan,
} from "./gate-world.ts";
import { type Documents, refusal } from "./open-index.ts";

const asMac = "mac=52-54-00-a1-9c-ae";
const kernel = "kernel /installer";
const sanboot = "sanboot --no-describe --drive 0x80 || exit";
const report = `http://192.0.2.1:80/report/${"t".repeat(32)}`;
const changed = ([path, text]: Documents[number]) => ({ path, text });

const boot = { kind: "kernel", kernel: "/installer", initrd: [], args: [], efiInitrd: false } as const;
const content: Partial<ProfileContent> = {
  effect: "Install",
  install: plan,
  boot,
  templates: {
    generic: { kind: "text", text: "{{davit.report}}", raw: false },
    cloudConfig: { kind: "text", text: "#cloud-config\n", raw: true },
  },
};
const profile = profileDocument("lab/web", content);
const group = (spec: Partial<GroupSpec> = {}) =>
  groupDocument("lab/node", { selector: { mac }, install: grant(), ...spec });
const synced = syncedDocument();
describe("a machine with an open permit", () => {
  it("gets the installer once the desk has logged the claim, and its configs with the URL for its reports", async () => {
    const { configs, desk } = gateWorld([profile, group(), synced]);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^noPermit: the machine has not claimed/);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    expect(await answerOf(configs, asMac, "generic")).toBe(report);
    expect(await answerOf(configs, asMac, "cloud")).toBe("#cloud-config\n");
    expect(
      desk.asked.map(({ purpose, mayClaim, group: id, profile: of, rawQuery }) => [
        purpose,
        mayClaim,
        id,
        of,
        rawQuery,
      ]),
    ).toEqual([
      ["config", true, "lab/node", "lab/web", asMac],
      ["script", true, "lab/node", "lab/web", asMac],
      ["script", true, "lab/node", "lab/web", asMac],
      ["config", true, "lab/node", "lab/web", asMac],
      ["config", true, "lab/node", "lab/web", asMac],
    ]);
    expect(desk.asked[1]).toMatchObject({
      identities: [`mac/${mac}`],
      grants: [{ key: "group/lab/node", grant: grant() }],
    });
  });

  it("gets it by GRUB, too", async () => {
    const { configs } = gateWorld([profile, group(), synced]);
    expect(await answerOf(configs, asMac, "grub")).toContain("/installer");
  });

  it("spends none by HEAD or a signature, and then gets what was claimed before", async () => {
    const { configs, ledger } = gateWorld([profile, group(), synced]);
    expect(await answerOf(configs, asMac, "ipxe", { mayClaim: false })).toMatch(/^noPermit/);
    expect(ledger.entries).toEqual([]);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    expect(await answerOf(configs, asMac, "ipxe", { mayClaim: false })).toBe(kernel);
  });

  it("spends none unless the request says that it may", async () => {
    const { configs, desk } = gateWorld([profile, group(), synced]);
    const request = { labels: labelsFromQuery(asMac), rawQuery: asMac, userAgent: "", address: () => "192.0.2.7" };
    await expect(configs.answer("ipxe", request)).rejects.toThrow(expect.objectContaining({ reason: "noPermit" }));
    expect(desk.asked).toMatchObject([{ mayClaim: false, address: "192.0.2.7" }]);
  });

  it("asks with the identities of its Machine, and with the Machine's grant first", async () => {
    const machine = machineDocument("lab/m", { identities: ["uuid/u", `mac/${mac}`], install: grant(3) });
    const { configs, desk } = gateWorld([profile, group(), machine, synced]);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    expect(desk.asked).toMatchObject([
      { listed: ["uuid/u", `mac/${mac}`], grants: [{ key: "machine/lab/m" }, { key: "group/lab/node" }] },
    ]);
  });

  it.each<[name: string, part: Partial<ProfileContent>, query: "ipxe" | "ignition", reason: RegExp]>([
    ["a script that fails", { boot: { kind: "script", script: "{{absent}}" } }, "ipxe", /^broken/],
    ["a Profile without a script", { boot: undefined as never }, "ipxe", /^noPart/],
    ["a config that the Profile does not have", {}, "ignition", /^noPart/],
  ])("spends none on %s", async (_, part, name, reason) => {
    const { boot: own, ...rest } = { ...content, ...part };
    const { configs, desk } = gateWorld([
      profileDocument("lab/web", { ...rest, ...(own && { boot: own }) }),
      group(),
      synced,
    ]);
    expect(await answerOf(configs, asMac, name)).toMatch(reason);
    expect(desk.asked).toEqual([]);
  });
});

describe("a machine whose permit is closed", () => {
  it("boots its disk after the window of its claim, and needs no desk for it", async () => {
    const { configs, ledger, desk } = gateWorld([profile, group(), synced]);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    ledger.nowMs += 60_000;
    desk.isLate = true;
    expect(await answerOf(configs, asMac)).toBe(sanboot);
    expect(await answerOf(configs, asMac, "grub")).not.toContain("/installer");
    expect(await answerOf(configs, asMac, "generic")).toBe("late");
    desk.isLate = false;
    expect(await answerOf(configs, asMac, "generic")).toBe(report);
    ledger.entries = [entry({ state: "Installed", changedAtMs: ledger.nowMs })];
    expect(await answerOf(configs, asMac)).toBe(sanboot);
    expect(await answerOf(configs, asMac, "generic")).toBe("noPermit: the machine's install is over");
  });

  it("is noted by the desk, which records machines of an adopted Group, unless it must not", async () => {
    const { configs, ledger, desk } = gateWorld([profile, group(), synced]);
    ledger.entries = [entry({ state: "Installed" })];
    expect(await answerOf(configs, asMac, "ipxe", { mayClaim: false })).toBe(sanboot);
    expect(desk.asked).toEqual([]);
    desk.meanwhile = () => {
      throw new Error("the desk fails");
    };
    expect(await answerOf(configs, asMac)).toBe(sanboot);
    expect(desk.asked).toMatchObject([{ purpose: "script", mayClaim: true }]);
  });

  it.each<[part: Partial<InstallPlan>, answer: string]>([
    [{ then: "notFound" }, "noPart"],
    [{ disk: { bios: 0x81 } }, `iseq \${platform} efi || ${sanboot.replace("0x80", "0x81")}`],
  ])("boots as the plan says: %j", async (part, answer) => {
    const none = profileDocument("lab/web", { ...content, install: { ...plan, ...part } });
    const { configs, ledger } = gateWorld([none, group(), synced]);
    ledger.entries = [entry({ state: "Installed" })];
    expect(await answerOf(configs, asMac)).toBe(answer);
  });

  it("boots its disk while the script of the others stays cached", async () => {
    const two = groupDocument("lab/node", { matchAll: true, install: grant() });
    const { configs, ledger, index } = gateWorld([profile, two, synced]);
    expect(await answerOf(configs, "mac=52-54-00-00-00-02")).toBe(kernel);
    const kept = index.groups.get("lab/node")?.script;
    expect(kept).toBeDefined();
    ledger.entries.push(entry({ state: "Installed", id: "b" }));
    expect(await answerOf(configs, asMac)).toBe(sanboot);
    expect(index.groups.get("lab/node")?.script).toBe(kept);
  });

  it.each<[name: string, documents: Documents]>([
    ["the Profile is of an older version", [outdated(profile), group(), synced]],
    ["the Group is of an older version", [profile, outdated(group()), synced]],
    ["half of the source is unreadable", [profile, group(), syncedDocument({ half: true })]],
    ["a Machine is refused", [profile, group(), machineDocument("lab/m", {}, { refused: true }), synced]],
    ["objects are changing", [profile, group(), syncedDocument({ changing: true })]],
  ])("boots its disk also while %s, and installs nothing then", async (_, documents) => {
    const { configs, ledger, desk } = gateWorld(documents);
    expect(await answerOf(configs, asMac)).toMatch(/^(doubtful|changing)/);
    expect(desk.asked).toEqual([]);
    ledger.entries = [entry({ state: "Installed" })];
    expect(await answerOf(configs, asMac)).toBe(sanboot);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^(doubtful|changing)/);
  });

  it("boots its disk with a stale copy", async () => {
    const { configs, ledger } = gateWorld(
      [profile, group(), synced],
      {},
      {
        freshness: { staleness: "stale", ageSeconds: 99 },
      },
    );
    expect(await answerOf(configs, asMac)).toMatch(/^doubtful/);
    ledger.entries = [entry({ state: "Unconfirmed" })];
    expect(await answerOf(configs, asMac)).toBe(sanboot);
  });

  it.each<[name: string, documents: Documents, reason: string]>([
    ["its Group is held", [profile, group({ hold: true }), synced], "held"],
    ["its Machine is held", [profile, group(), machineDocument("lab/m", { hold: true }), synced], "held"],
    ["it is not approved", [profile, group({ approval: "Required" }), synced], "unapproved"],
    [
      "its own Group was removed a moment ago",
      [
        profile,
        groupDocument("lab/all", { matchAll: true, install: grant() }),
        [tombstonePath("mac", mac), "{}"],
        synced,
      ],
      "bereft",
    ],
  ])("does not boot its disk while %s", async (_, documents, reason) => {
    const { configs, ledger } = gateWorld(documents);
    ledger.entries = [entry({ state: "Installed" })];
    expect(await answerOf(configs, asMac)).toBe(reason);
    expect(await answerOf(configs, asMac, "generic")).toBe(reason);
  });
});

describe("a machine without a permit", () => {
  it.each<[name: string, spec: Partial<GroupSpec>, problem: RegExp]>([
    ["no grant", { install: undefined as never }, /no spec.install/],
    ["a grant of another ledger", { install: grant(1, { ledger: "00000000" }) }, /names another ledger/],
    ["a grant that is over", { install: grant(1, { untilMs: nowMs }) }, /is over/],
  ])("waits: %s", async (_, { install, ...spec }, problem) => {
    const { configs } = gateWorld([
      profile,
      groupDocument("lab/node", { selector: { mac }, ...spec, ...(install && { install }) }),
      synced,
    ]);
    expect(await answerOf(configs, asMac)).toMatch(problem);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^noPermit/);
    expect(await answerOf(configs, asMac, "metadata")).toContain("REQUEST_RAW_QUERY");
  });

  it("waits while no ledger is known, and while the desk is late", async () => {
    const { configs, ledger, desk } = gateWorld([profile, group(), synced]);
    ledger.id = undefined;
    expect(await answerOf(configs, asMac)).toBe("noPermit: davit knows no ledger yet");
    ledger.id = ledgerId;
    desk.isLate = true;
    expect(await answerOf(configs, asMac)).toBe("late");
    expect(await answerOf(configs, asMac, "generic")).toBe("late");
  });

  it("gets nothing of a Profile with a plan where davit has no desk", async () => {
    const { index, ledger } = gateWorld([profile, group(), synced]);
    const configs = configsOver(index);
    expect(await answerOf(configs, asMac)).toBe("noPermit: this davit asks no ledger for permits");
    expect(refusal(index, asMac)).toBe("noPermit");
    ledger.entries = [entry()];
    expect(await answerOf(configs, asMac)).toMatch(/^noPermit/);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^noPermit/);
  });

  it("gets nothing by a call that cannot ask the desk", () => {
    const { configs } = gateWorld([profile, group(), synced]);
    const request = { labels: labelsFromQuery(asMac), rawQuery: asMac, userAgent: "", mayClaim: true };
    for (const name of ["ipxe", "grub", "generic"] as const)
      expect(() => configs.render(name, request)).toThrow(expect.objectContaining({ reason: "noPermit" }));
  });
});

describe("a change while the desk decides", () => {
  const disk = profileDocument("lab/disk", { effect: "Boot", boot: { kind: "local", local: "exit" } });

  it.each<[name: string, change: Documents, answer: string]>([
    ["another Profile that boots", [disk, group({ profile: "disk" })], "exit"],
    ["another Profile that installs", [profileDocument("lab/other", content), group({ profile: "other" })], "late"],
    ["a hold", [group({ hold: true })], "held"],
    ["the hold of a Machine", [machineDocument("lab/m", { hold: true })], "held"],
    ["a grant of another generation", [group({ install: grant(2) })], "late"],
    ["a grant of another ledger", [group({ install: grant(1, { ledger: "00000000" }) })], "late"],
    ["a Profile of an older version", [outdated(profile)], "doubtful"],
    ["a Group that waits for approval", [group({ approval: "Required" })], "unapproved"],
    ["other metadata", [group({ metadata: { a: "b" } })], kernel],
  ])("%s is part of the answer", async (_, change, answer) => {
    const { configs, desk, index } = gateWorld([profile, group(), synced]);
    desk.meanwhile = () => index.changed(change.map(changed));
    expect((await answerOf(configs, asMac)).split(":")[0]).toBe(answer);
  });

  it("is part of a config, too", async () => {
    const { configs, desk, index } = gateWorld([profile, group(), synced]);
    expect(await answerOf(configs, asMac)).toBe(kernel);
    desk.meanwhile = () => index.changed([changed(group({ hold: true }))]);
    expect(await answerOf(configs, asMac, "generic")).toBe("held");
  });
});

describe("a machine whose Profile demands HTTPS, and which asks by HTTP", () => {
  const secured = profileDocument("lab/web", { ...content, requireTls: true });
  const kernelByTls = profileDocument("lab/web", { boot, requireTls: true });
  const byHttp = (configs: BootConfigs, name: ConfigName = "ipxe") =>
    answerOf(configs, asMac, name, { transport: "http" });

  it("gets its scripts, and no config", async () => {
    const { configs } = gateWorld([secured, group(), synced], { tlsAuthority: "192.0.2.1:443" });
    expect(await byHttp(configs)).toBe(kernel);
    expect(await byHttp(configs, "generic")).toBe("needsTls");
  });

  it("boots its disk also where davit does not listen for HTTPS, and else waits there", async () => {
    const { configs, ledger, desk } = gateWorld([secured, group({ requireTls: true }), synced]);
    expect(await byHttp(configs)).toBe("noTls");
    expect(desk.asked).toEqual([]);
    ledger.entries = [entry({ state: "Installed" })];
    expect(await byHttp(configs)).toBe(sanboot);
  });

  it("waits there if the Profile demands it by now, also if the desk has sent the machine to its disk", async () => {
    const world = gateWorld([profile, group(), synced]);
    const ask = async () => {
      world.index.changed([changed(kernelByTls)]);
      return { kind: "disk" } as const;
    };
    expect(await byHttp(configsOver(world.index, { permits: { ask } }))).toBe("noTls");
  });
});

describe("the URL for reports", () => {
  it("is never of another machine", async () => {
    const two = groupDocument("lab/node", { matchAll: true, install: grant() });
    const { index, ledger } = gateWorld([profile, two, synced]);
    const entries = [entry({ id: "a" }), entry({ id: "b", identities: ["mac/52:54:00:00:00:02"] })];
    ledger.entries = entries;
    const permits = {
      ask: ({ identities }: { readonly identities: readonly string[] }) => {
        const [of] = ledger.entriesOf(identities);
        return { kind: "granted", entry: of ?? entry(), reportToken: (of?.id ?? "").repeat(32) } as const;
      },
    };
    const configs = configsOver(index, { permits });
    for (const _ of [1, 2]) {
      expect(await answerOf(configs, asMac, "generic")).toBe(`http://192.0.2.1:80/report/${"a".repeat(32)}`);
      expect(await answerOf(configs, "mac=52-54-00-00-00-02", "generic")).toMatch(/report\/b{32}$/);
    }
  });

  it("is never shared by slow configs", async () => {
    const two = groupDocument("lab/node", { matchAll: true, install: grant() });
    const { index, ledger } = gateWorld([profile, two, synced]);
    ledger.entries = [entry({ id: "a" }), entry({ id: "b", identities: ["mac/52:54:00:00:00:02"] })];
    const ran: unknown[] = [];
    const slowWork = new SlowWork({
      clock: new FakeClock(),
      thread: {
        run: async (job) => {
          ran.push(job);
          const body = "reportUrl" in job ? (job.reportUrl ?? "") : "";
          return { isOfRequest: true, made: { rendered: { body, contentType: "text/plain" } } };
        },
      },
    });
    const slow: Pick<SlowWork, "make"> = {
      make: (job, maker, subject, client) => {
        const late = Object.assign(Object.create(maker), {
          make: () => {
            throw new TooLongHere();
          },
          learn: () => undefined,
        });
        return slowWork.make(job, late, subject, client);
      },
    };
    const permits = {
      ask: ({ identities }: { readonly identities: readonly string[] }) => {
        const [of] = ledger.entriesOf(identities);
        return { kind: "granted", entry: of ?? entry(), reportToken: (of?.id ?? "").repeat(32) } as const;
      },
    };
    const configs = configsOver(index, { permits, slowWork: slow });
    const [a, b] = await Promise.all([
      answerOf(configs, asMac, "generic"),
      answerOf(configs, "mac=52-54-00-00-00-02", "generic"),
    ]);
    expect([a, b]).toEqual([expect.stringMatching(/a{32}$/), expect.stringMatching(/b{32}$/)]);
    expect(ran).toHaveLength(2);
  });

  it("is not defined where nothing installs by a permit", async () => {
    const plain = profileDocument("lab/web", { templates: content.templates ?? {} });
    const { configs } = gateWorld([plain, group(), synced]);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^broken: .*davit.report/);
  });
});

describe("a Profile with a plan that boots from the disk by now", () => {
  const local = profileDocument("lab/web", { ...content, boot: { kind: "local", local: "exit" } });

  it("gives its script without a permit, and its configs only with one", async () => {
    const { configs, ledger, desk } = gateWorld([local, group(), synced]);
    expect(await answerOf(configs, asMac)).toBe("exit");
    expect(desk.asked).toEqual([]);
    expect(await answerOf(configs, asMac, "generic")).toMatch(/^noPermit/);
    ledger.entries = [entry({ state: "Installing" })];
    expect(await answerOf(configs, asMac, "generic")).toBe(report);
  });
});

import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type GroupChange, tombstoneWrites } from "../../src/controller/tombstones/tombstones.ts";
import { identityLabels } from "../../src/model/labels/labels.ts";
import { type GroupSpec, type GroupState, toGroup } from "../../src/model/objects/group.ts";
import { outcomeText } from "../../src/model/selection/contest.ts";
import { groupSpec } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const atMac = `/davit/tombstones/mac/${mac}`;
const sha256 = (text: string) => hash("sha256", text, "hex");
const none: readonly [string, string][] = [];

function spec(selector: Record<string, string>): GroupSpec {
  return groupSpec({ selector });
}

function passing(before: GroupSpec | undefined, after: GroupSpec | undefined, id = "lab/node"): GroupChange {
  return { id, before, after };
}

function writes(passings: readonly GroupChange[], stored: readonly (readonly [string, string])[] = none) {
  const texts = new Map(stored);
  return tombstoneWrites(passings, { textAt: (path) => texts.get(path), ttlSeconds: 60, sha256, isTaken: () => false });
}

const grant = { generation: 1, ledger: "l", untilMs: 1, scope: "NeverInstalled" } as const;

describe("the tombstone of a machine that a Group newly names", () => {
  const gone = (changes: Partial<GroupSpec> = {}) => passing({ ...spec({ mac }), ...changes }, undefined);
  const named = (changes: Partial<GroupSpec> = {}, id = "lab/other") =>
    passing(undefined, { ...spec({ mac, role: "web" }), ...changes }, id);
  /** What is stored of the removed Group afterwards, and what the step of the other Group writes. */
  const following = (change: GroupChange, removed = gone(), hasGrant = false) => {
    const stored = writes([removed]).map(({ path, text = "" }) => [path, text] as const);
    const texts = new Map(stored);
    const options = { textAt: (path: string) => texts.get(path), ttlSeconds: 60, sha256, isTaken: () => false };
    return tombstoneWrites([change], { ...options, hasGrant: () => hasGrant }).map(({ text }) => text);
  };

  it("goes with the grant of the Group, or of the machine's Machine", () => {
    expect(following(named({ install: grant }))).toEqual([undefined]);
    expect(following(named(), gone(), true)).toEqual([undefined]);
  });

  it("goes when a Group that names it gets another grant", () => {
    const [before, install] = [spec({ mac, role: "web" }), { ...grant, generation: 2 }];
    expect(following(passing({ ...before, install: grant }, { ...before, install }, "lab/other"))).toEqual([undefined]);
  });

  it("is not written when its Group goes in the same step", () => {
    expect(writes([gone(), named({ install: grant })])).toEqual([]);
  });

  it("stays without a grant, or if its Group had a higher priority or was in another namespace", () => {
    expect(following(named())).toEqual([]);
    expect(following(named({ install: grant }), gone({ priority: 1 }))).toEqual([]);
    expect(following(named({ install: grant }, "racks/other"))).toEqual([]);
  });

  it("stays for a Group that named it before, and had its grant before", () => {
    const other = { ...spec({ mac, role: "web" }), install: grant };
    expect(following(passing(other, { ...other, metadata: { a: 1 } }, "lab/other"))).toEqual([]);
  });
});

/** What a Group gives, as its tombstone has it. */
function outcome(group: GroupSpec = spec({ mac }), namespace = "lab", state: GroupState = {}): string {
  return sha256(outcomeText(toGroup(namespace, "any", group, state)));
}

const rank = { namespace: "lab", priority: 0, outcome: outcome() };
/** As versions before the labels wrote it. */
const old = (group: string, selector: string) => JSON.stringify({ group, selector });
const left = (group: string, selector: string, labels: object) =>
  JSON.stringify({ group, selector, labels: [labels], ranks: [rank] });
const several = (...labels: readonly object[]) => [
  { path: atMac, text: JSON.stringify({ labels, ranks: labels.map(() => rank) }), ttlSeconds: 60, namespace: "lab" },
];

describe("a tombstone", () => {
  it("is left by a Group that goes, for its uuid and its mac", () => {
    expect(writes([passing(spec({ uuid: "u-1", mac, role: "web" }), undefined)])).toEqual(
      ["/davit/tombstones/uuid/u-1", atMac].map((path) => ({
        path,
        text: left("lab/node", `mac=${mac},role=web,uuid=u-1`, { uuid: "u-1", mac, role: "web" }),
        ttlSeconds: 60,
        namespace: "lab",
      })),
    );
  });

  it.each(identityLabels)("is left by a Group that selects by %s", (label) => {
    const path = `/davit/tombstones/${label}/x`;
    const text = left("lab/node", `${label}=x`, { [label]: "x" });
    expect(writes([passing(spec({ [label]: "x" }), undefined)])).toEqual([
      { path, text, ttlSeconds: 60, namespace: "lab" },
    ]);
  });

  it.each<[name: string, before: GroupSpec | undefined, after: GroupSpec | undefined]>([
    ["a Group that comes", undefined, spec({ mac })],
    ["a Group whose selector stays", spec({ mac }), { ...spec({ mac }), priority: 5, hold: true, profile: "other" }],
    ["a selector whose labels are written in another order", spec({ mac, role: "a" }), spec({ role: "a", mac })],
  ])("is not left by %s", (_name, before, after) => {
    expect(writes([passing(before, after)])).toEqual([]);
  });

  it.each<[name: string, after: GroupSpec]>([
    ["another mac", spec({ mac: "52:54:00:00:00:02" })],
    ["no mac any more", spec({ role: "web" })],
    ["a narrower selector", spec({ mac, role: "web" })],
    ["a catch-all", groupSpec({ selector: {}, matchAll: true })],
  ])("is left by a Group that changes to %s", (_name, after) => {
    expect(writes([passing(spec({ mac }), after)])).toEqual([
      { path: atMac, text: left("lab/node", `mac=${mac}`, { mac }), ttlSeconds: 60, namespace: "lab" },
    ]);
  });

  it("is left by a Group whose new labels read like the old ones", () => {
    const [before, after] = [spec({ mac, a: "1,b=2" }), spec({ mac, a: "1", b: "2" })];
    expect(writes([passing(before, after)]).map(({ path }) => path)).toEqual([atMac]);
  });

  it.each<[name: string, text: string]>([
    ["it", left("lab/node", `mac=${mac}`, { mac })],
    ["an older version", old("lab/node", `mac=${mac}`)],
  ])("is taken away by its Group when it comes back as it was, as %s tells of it", (_name, text) => {
    expect(writes([passing(undefined, spec({ mac }))], [[atMac, text]])).toEqual([
      { path: atMac, text: undefined, namespace: "lab" },
    ]);
  });

  it.each<[name: string, text: string]>([
    ["another Group", left("lab/other", `mac=${mac}`, { mac })],
    ["the same Group with another selector", left("lab/node", `mac=${mac},role=web`, { mac, role: "web" })],
    ["several", JSON.stringify({ labels: [{ mac }, { mac, role: "web" }] })],
    ["several, by an older version", "{}"],
    ["nobody knows whom", "no JSON"],
  ])("stays for its time where it is of %s", (_name, text) => {
    expect(writes([passing(undefined, spec({ mac }))], [[atMac, text]])).toEqual([]);
  });

  const web = passing(spec({ mac, role: "web" }), undefined, "lab/web");
  const database = passing(spec({ mac, role: "db" }), undefined, "lab/db");

  it("is nobody's where several leave it, in one step or two, and tells of all their selectors", () => {
    const both = several({ mac, role: "db" }, { mac, role: "web" });
    expect(writes([database, web])).toEqual(both);
    expect(writes([web], [[atMac, left("lab/db", `mac=${mac},role=db`, { mac, role: "db" })]])).toEqual(both);
  });

  it("tells of a selector once, however many Groups had it, and of the last that went at the end", () => {
    const other = passing(database.before, undefined, "lab/other");
    expect(writes([database, web, other])).toEqual(several({ mac, role: "web" }, { mac, role: "db" }));
  });

  it.each<[name: string, text: string]>([
    ["one Group", old("lab/db", `mac=${mac},role=db`)],
    ["several", "{}"],
    ["nobody knows whom", "no JSON"],
  ])("stands for the label alone, too, where an older version left it for %s", (_name, text) => {
    const [written] = writes([web], [[atMac, text]]);
    expect(JSON.parse(written?.text ?? "")).toEqual({ labels: [{ mac }, { mac, role: "web" }], ranks: [null, rank] });
  });

  it("tells of 16 selectors at most: those that went first become the label alone", () => {
    const passings = Array.from({ length: 40 }, (_, at) =>
      passing(spec({ mac, role: `${at}` }), undefined, `lab/${at}`),
    );
    const last = Array.from({ length: 15 }, (_, at) => ({ mac, role: `${25 + at}` }));
    const [merged] = several({ mac }, ...last);
    const text = merged?.text.replace(`,"outcome":"${outcome()}"`, "");
    expect(writes(passings)).toEqual([{ ...merged, text }]);
    expect(writes(passings.slice(0, 16))).toEqual(
      several(...Array.from({ length: 16 }, (_, at) => ({ mac, role: `${at}` }))),
    );
  });

  it("is left by a Group that goes in the step in which another one comes for the same machine", () => {
    expect(writes([passing(undefined, spec({ mac }), "lab/new"), passing(spec({ mac }), undefined)])).toHaveLength(1);
  });

  it("tells what the Group ranked by besides, and of several each", () => {
    const important = { ...spec({ mac }), priority: 7 };
    const [first, second] = [passing(important, undefined, "infra/node"), passing(spec({ mac }), undefined)];
    const [written] = writes([first, second]);
    const ranks = [{ namespace: "infra", priority: 7, outcome: outcome(spec({ mac }), "infra") }, rank];
    expect(JSON.parse(written?.text ?? "")).toEqual({ labels: [{ mac }, { mac }], ranks });
  });

  it("has the highest priority of those that became the label alone", () => {
    const passings = Array.from({ length: 20 }, (_, at) =>
      passing({ ...spec({ mac, role: `${at}` }), priority: at === 2 ? 9 : 0 }, undefined, `lab/${at}`),
    );
    const [written] = writes(passings);
    expect(JSON.parse(written?.text ?? "").ranks[0]).toEqual({ namespace: "lab", priority: 9 });
  });

  it("becomes the label alone within a namespace, and leaves those of others as they are", () => {
    const other = passing(spec({ mac, os: "x" }), undefined, "team-b/node");
    const passings = Array.from({ length: 40 }, (_, at) =>
      passing(spec({ mac, role: `${at}` }), undefined, `lab/${at}`),
    );
    const [written] = writes([other, ...passings]);
    const { labels, ranks } = JSON.parse(written?.text ?? "");
    expect(labels).toHaveLength(17);
    expect(labels[0]).toEqual({ mac, os: "x" });
    expect(ranks[0]).toEqual({ namespace: "team-b", priority: 0, outcome: outcome(spec({ mac }), "team-b") });
  });

  it("is of each namespace its own, and of the admin's where it was, with an admin namespace", () => {
    const passings = ["infra", "team-a", "team-b"].map((namespace) =>
      passing(spec({ mac }), undefined, `${namespace}/node`),
    );
    const options = { textAt: () => undefined, ttlSeconds: 60, sha256, isTaken: () => false, adminNamespace: "infra" };
    const stones = tombstoneWrites(passings, options);
    const ofTenants = ["team-a", "team-b"].map((tenant) => `/davit/tombstones/tenant/${tenant}/mac/${mac}`);
    expect(stones.map(({ path }) => path)).toEqual([atMac, ...ofTenants]);
    const texts = new Map(stones.map(({ path, text = "" }) => [path, text]));
    const back = { ...options, textAt: (path: string) => texts.get(path) };
    expect(tombstoneWrites([passing(undefined, spec({ mac }), "team-b/node")], back)).toEqual([
      { path: ofTenants[1], text: undefined, namespace: "team-b" },
    ]);
  });

  it("is not left by a Group whose machines all have another one that outranks it", () => {
    const options = { textAt: () => undefined, ttlSeconds: 60, sha256 };
    const gone = passing(spec({ mac, role: "web" }), undefined);
    const asked: string[] = [];
    const isTaken = ({ id, selectorText }: { readonly id: string; readonly selectorText: string }) => {
      asked.push(`${id} ${selectorText}`);
      return true;
    };
    expect(tombstoneWrites([gone], { ...options, isTaken })).toEqual([]);
    expect(asked).toEqual([`lab/node mac=${mac},role=web`]);
  });
});

describe("what a Group gave, as its tombstone tells,", () => {
  it.each<[name: string, state: GroupState, isAnother: boolean]>([
    ["is another one of a refused version", { refused: true }, true],
    ["is another one of a version before the newest", { outdated: true }, true],
    ["is the same while it ties", { tied: true }, false],
    ["is the same while an unreadable Group may come first", { doubted: true }, false],
    ["is the same while its namespace is not heard", { unheard: true }, false],
    ["is the same while nothing defines it", { leaving: true }, false],
  ])("%s", (_name, state, isAnother) => {
    const [written] = writes([{ ...passing(spec({ mac }), undefined), state }]);
    const [told] = JSON.parse(written?.text ?? "").ranks;
    expect(told.outcome !== outcome()).toBe(isAnother);
    if (isAnother) expect(told.outcome).toBe(outcome(spec({ mac }), "lab", state));
  });
});

describe("a Group that names no machine", () => {
  const pattern = (values: readonly string[]) => ({ key: "serial", operator: "Prefix" as const, values });
  const broad: readonly (readonly [name: string, spec: GroupSpec])[] = [
    ["a role", spec({ role: "web" })],
    ["a pattern", groupSpec({ selector: {}, expressions: [pattern(["SN-"])] })],
    ["everything", groupSpec({ selector: {}, matchAll: true })],
  ];

  it.each(broad)("leaves one tombstone by its whole selector, %s", (_name, before) => {
    const [written, ...more] = writes([passing(before, undefined)]);
    expect(more).toEqual([]);
    expect(written?.path).toMatch(/^\/davit\/tombstones\/selector\/[0-9a-f]{64}$/);
    const { selector, expressions } = before;
    expect(JSON.parse(written?.text ?? "")).toMatchObject({
      group: "lab/node",
      labels: [selector],
      ...(expressions && { expressions: [expressions] }),
      ranks: [rank],
    });
  });

  it.each(broad)("takes it away when it comes back as it was, %s", (_name, before) => {
    const [stone] = writes([passing(before, undefined)]);
    const stored = [[stone?.path ?? "", stone?.text ?? ""]] as const;
    expect(writes([passing(undefined, before)], stored)).toEqual([
      { path: stone?.path, text: undefined, namespace: "lab" },
    ]);
  });

  it("leaves one when its selector changes in any way, and none when nothing but the order does", () => {
    const before = groupSpec({ selector: { a: "1", b: "2" } });
    const after = groupSpec({ selector: { b: "2", a: "1" } });
    expect(writes([passing(before, after)])).toEqual([]);
    expect(writes([passing(before, groupSpec({ selector: { a: "1", b: "2", c: "3" } }))])).toHaveLength(1);
    expect(writes([passing(before, { ...before, selector: { ...before.selector, mac } })])).toHaveLength(1);
  });
});

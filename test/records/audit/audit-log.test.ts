/** What a line of the audit log says of an edit: who, which Groups, how many machines, and what becomes of a grant. */

import { expect, it } from "vitest";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../../src/model/json.ts";
import { encodeDocument, groupPath, profilePath } from "../../../src/model/objects/documents.ts";
import { type GroupSpec, toGroup } from "../../../src/model/objects/group.ts";
import type { Effect } from "../../../src/model/objects/profile.ts";
import type { ObjectWriter } from "../../../src/model/objects/source.ts";
import type { InstallGrant, LedgerView } from "../../../src/model/permits/permit.ts";
import { AuditLog, type AuditLogOptions } from "../../../src/records/audit/audit-log.ts";
import type { KnownMachine } from "../../../src/records/audit/reach.ts";

const atMs = Date.UTC(2026, 0, 1);
const ledger: LedgerView = {
  id: "0a0b0c0d",
  nowMs: atMs,
  isFull: false,
  endedGeneration: () => 0,
  adoptedUntilMs: () => 0,
  entriesOf: () => [],
};
const writer: ObjectWriter = { generation: 2, resourceVersion: "71", manager: "kubectl", operation: "Apply" };

function groupSpec(more: Partial<GroupSpec> = {}): GroupSpec {
  return {
    profile: "web",
    selector: { role: "web" },
    matchAll: false,
    priority: 0,
    hold: false,
    metadata: {},
    ...more,
  };
}

function groupText(generation: number, more: Partial<GroupSpec> = {}): string {
  return encodeDocument({ origin: "cluster", uid: "u", generation, spec: groupSpec(more) });
}

function profileText(generation: number, effect: Effect, text = "a"): string {
  const templates = { generic: { kind: "text", raw: false, text } } as const;
  const boot = { kind: "script", script: "#!ipxe" } as const;
  const content = { displayName: "web", effect, boot, templates };
  return encodeDocument({
    origin: "cluster",
    uid: "u",
    generation,
    revision: `${generation} ${effect} ${text}`,
    content,
  });
}

/** An audit log over some machines and Groups. */
function start({
  machines = [],
  more = {},
}: {
  machines?: readonly KnownMachine[];
  more?: Partial<AuditLogOptions>;
} = {}) {
  const lines: JsonObject[] = [];
  const texts = new Map<string, string>([[profilePath("lab", "web"), profileText(1, "Boot")]]);
  const audit = new AuditLog({
    clock: { nowMs: () => atMs, sleep: () => Promise.resolve() },
    write: (line) => void lines.push(parseJsonObject(line) ?? {}),
    groups: () => new Map([["lab/web", toGroup("lab", "web", groupSpec())]]),
    machines: () => Promise.resolve(machines),
    groupOf: () => undefined,
    ledger: () => ledger,
    failed: (error) => expect.unreachable(String(error)),
    dropped: () => expect.unreachable(),
    ...more,
  });
  const edit = async (path: string, before: string | undefined, after: string | undefined) => {
    if (after !== undefined) texts.set(path, after);
    audit.edited([{ path, before, after, writer }], (at) => texts.get(at));
    await audit.stop();
    return lines.splice(0);
  };
  return { audit, edit, lines };
}

const webGroup = groupPath("lab", "web");
const machine = (number: number, group?: string): KnownMachine => ({
  labels: new Map([["mac", `52:54:00:00:00:0${number}`]]),
  group,
});

it("names who made a new version, and nobody where the same version gives another document", async () => {
  const { edit } = start();
  expect(await edit(webGroup, groupText(1), groupText(2, { hold: true }))).toMatchObject([
    { generation: 2, manager: "kubectl", operation: "Apply", resourceVersion: "71", changed: ["hold"] },
  ]);
  // A hold counts before the rest of its version does.
  expect(await edit(webGroup, groupText(1), groupText(1, { hold: true }))).toMatchObject([
    { generation: 2, manager: "kubectl", resourceVersion: "71", changed: ["hold"] },
  ]);
  const path = profilePath("lab", "web");
  const [line] = await edit(path, profileText(2, "Boot", "a"), profileText(2, "Boot", "b"));
  expect(line).toMatchObject({ newVersion: false, changed: ["generic"], groups: ["lab/web"] });
  expect(line).not.toHaveProperty("manager");
  // What was written meanwhile is another version.
  expect((await edit(webGroup, groupText(2), groupText(3, { hold: true })))[0]).not.toHaveProperty("manager");
});

it("has no line for an edit that changes nothing for machines, and one for an object that is gone", async () => {
  const { edit } = start();
  expect(await edit(webGroup, groupText(1), groupText(2))).toEqual([]);
  const [line] = await edit(webGroup, groupText(1), undefined);
  expect(line).toMatchObject({ action: "removed", serving: { before: "served" }, effect: { before: "Boot" } });
  expect(line).not.toHaveProperty("manager");
});

it("counts each machine once, by its labels, or by its last Group while the selector asks for another label", async () => {
  // One machine got the Group by its role, which no history records.
  const machines = [machine(1), machine(2), machine(2), machine(3, "lab/web")];
  const { edit } = start({ machines });
  const wide = { selector: {}, expressions: [{ key: "mac", operator: "Prefix", values: ["52:54:00"] }] } as const;
  expect((await edit(webGroup, groupText(1), groupText(2, wide)))[0]?.machines).toEqual({ before: 1, after: 3 });
  expect((await edit(webGroup, groupText(2), groupText(3, { hold: true })))[0]?.machines).toEqual({
    before: 1,
    after: 1,
  });
  const path = profilePath("lab", "web");
  const [line] = await edit(path, profileText(1, "Boot"), profileText(2, "Install"));
  expect(line).toMatchObject({ machines: { before: 1, after: 1 }, effect: { before: "Boot", after: "Install" } });
});

it("says what the Profile did at each step, also if another step comes before the line is made", async () => {
  const { audit, lines, edit } = start();
  const path = profilePath("lab", "web");
  const effects = ["Boot", "Install", "Boot"] as const;
  const texts = effects.map((effect, at) => profileText(at + 1, effect));
  const now = new Map([[path, texts[2]]]);
  const step = (...edits: readonly (readonly [string, string | undefined, string | undefined])[]) =>
    audit.edited(
      edits.map(([at, before, after]) => ({ path: at, before, after, writer: undefined })),
      (at) => now.get(at),
    );
  step([path, texts[0], texts[1]], [webGroup, undefined, groupText(1)]);
  step([webGroup, groupText(1), groupText(2, { hold: true })]);
  step([webGroup, groupText(2, { hold: true }), groupText(3)], [path, texts[1], texts[2]]);
  await audit.stop();
  expect(lines.filter(({ kind }) => kind === "Group").map(({ effect }) => effect)).toEqual([
    { after: "Install" },
    { before: "Install", after: "Install" },
    { before: "Install", after: "Boot" },
  ]);
  lines.splice(0);
  expect((await edit(webGroup, groupText(3), undefined))[0]?.effect).toEqual({ before: "Boot" });
});

it("leaves the count out where machines cannot be counted", async () => {
  const { edit } = start({ more: { machines: () => Promise.resolve(undefined) } });
  expect((await edit(webGroup, undefined, groupText(1)))[0]).not.toHaveProperty("machines");
});

it("stops in the middle of a count, and has the line without it", async () => {
  function* endless() {
    for (let number = 0; ; number++) yield { labels: new Map([["serial", `s${number}`]]), group: undefined };
  }
  const { edit } = start({ more: { machines: () => Promise.resolve(endless()) } });
  const [line] = await edit(webGroup, undefined, groupText(1));
  expect(line).toMatchObject({ name: "web", groupCount: 1 });
  expect(line).not.toHaveProperty("machines");
});

it("closes each grant that it opened, and says why one is asleep", async () => {
  const { edit } = start();
  const grant = (generation: number, more: Partial<InstallGrant> = {}): Partial<GroupSpec> => ({
    install: { generation, ledger: "0a0b0c0d", untilMs: atMs + 60_000, scope: "All", ...more },
  });
  const permits = async (before: Partial<GroupSpec>, after: Partial<GroupSpec>) => {
    const lines = await edit(webGroup, groupText(1, before), groupText(2, after));
    const said = lines.filter(({ event }) => event === "permit");
    return said.map(({ action, generation, why = "" }) => `${action} ${generation} ${why}`.trim());
  };
  expect(await permits({}, grant(1))).toEqual(["opened 1"]);
  expect(await permits(grant(1), grant(1, { untilMs: atMs + 90_000 }))).toEqual(["changed 1"]);
  expect(await permits(grant(1), grant(2))).toEqual(["closed 1 replaced", "opened 2"]);
  expect(await permits(grant(1), grant(1, { ledger: "ffffffff" }))).toEqual(["closed 1 otherLedger"]);
  expect(await permits(grant(1), {})).toEqual(["closed 1 withdrawn"]);
  expect(await permits({}, grant(1, { ledger: "ffffffff" }))).toEqual(["asleep 1 otherLedger"]);
  expect(await permits(grant(1, { ledger: "ffffffff" }), {})).toEqual([]);
});

it("goes on after an edit on which it fails, and counts what it could not write", async () => {
  const failed: number[] = [];
  const machines = {
    [Symbol.iterator]: () => {
      throw new Error("a bug");
    },
  };
  let isBroken = true;
  const { edit } = start({
    more: {
      machines: () => Promise.resolve(isBroken ? machines : []),
      failed: (_error, count) => void failed.push(count),
    },
  });
  expect(await edit(webGroup, groupText(1), groupText(2, { hold: true }))).toEqual([]);
  isBroken = false;
  expect(await edit(webGroup, groupText(2, { hold: true }), groupText(3))).toMatchObject([{ changed: ["hold"] }]);
  expect(failed).toEqual([1]);
});

it("keeps so much text of edits that wait, and has a line with the number of the others", async () => {
  const dropped: number[] = [];
  const text = groupText(1);
  const limits = { maxWaitingLength: 2 * text.length, dropped: (count: number) => void dropped.push(count) };
  const { audit, edit, lines } = start({ more: limits });
  const edits = ["a", "b", "c", "d", "e"].map((name) => ({
    path: groupPath("lab", name),
    before: undefined,
    after: text,
    writer: undefined,
  }));
  audit.edited(edits.slice(0, 4), () => undefined);
  audit.edited(edits.slice(4), () => undefined);
  await audit.stop();
  expect(dropped).toEqual([2, 1]);
  const [first, second, last, ...others] = lines.splice(0);
  expect([first?.name, second?.name, last, others]).toMatchObject(["a", "b", { event: "lost", lines: 3 }, []]);
  expect(await edit(groupPath("lab", "f"), undefined, text)).toMatchObject([{ name: "f" }]);
});

it("escapes what would move a cursor", () => {
  const written: string[] = [];
  const { audit } = start({ more: { write: (line) => void written.push(line) } });
  audit.acted({ action: "approve", via: "console", by: "al\u202eice\u009b\n", done: { machine: "lab/n" } });
  expect(written.join("")).toMatch(/^[\x20-\x7e]+$/);
  expect(isJsonObject(JSON.parse(written.join("")))).toBe(true);
});

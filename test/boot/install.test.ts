import { beforeEach, describe, expect, it } from "vitest";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { selectorPlace, tombstonePath } from "../../src/model/objects/documents.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { groupDocument, outdated, profileDocument, syncedDocument } from "./feed-documents.ts";
import { type Documents, log, openIndex, refusal, selected } from "./open-index.ts";

const changed = ([path, text]: readonly [path: string, text: string]) => ({ path, text });

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

  it("has machines wait while part of the source cannot be read, be it their own Group's or not", () => {
    const index = openIndex([install, node, syncedDocument({ half: true })]);
    expect(refusal(index, "serial=1")).toBe("doubtful");
    index.changed([changed(syncedDocument())]);
    expect(refusal(index, "serial=1")).toBeUndefined();
  });

  it("has machines wait while objects are changing, whichever they are", () => {
    const index = openIndex([install, node, syncedDocument({ changing: true })]);
    expect([refusal(index, "serial=1"), index.doubt]).toEqual(["changing", "changing"]);
    index.changed([changed(syncedDocument())]);
    expect(refusal(index, "serial=1")).toBeUndefined();
  });

  it("has machines wait while a document is there that only a later davit can read", () => {
    const index = openIndex([install, node, syncedDocument()]);
    const [path] = groupDocument("lab/other", { selector: { serial: "2" } });
    index.changed([{ path, text: "{}" }]);
    expect([refusal(index, "serial=1"), index.doubt]).toEqual(["doubtful", "unreadable"]);
    index.changed([{ path, text: undefined }]);
    expect(refusal(index, "serial=1")).toBeUndefined();
    index.replaced([install, node, syncedDocument(), [path, "{}"]]);
    expect(refusal(index, "serial=1")).toBe("doubtful");
    index.changed([changed(groupDocument("lab/other", { selector: { serial: "2" } }))]);
    expect(refusal(index, "serial=1")).toBeUndefined();
  });

  it("has machines wait while the tombstone of a selector is there that only a later davit can read", () => {
    const index = openIndex([install, node, syncedDocument()]);
    const path = tombstonePath(selectorPlace, "0".repeat(64));
    index.changed([{ path, text: '{"version":2}' }]);
    expect([refusal(index, "serial=1"), index.doubt]).toEqual(["doubtful", "unreadable"]);
    index.changed([{ path, text: undefined }]);
    expect(refusal(index, "serial=1")).toBeUndefined();
  });

  it("has machines wait by what is known of its freshness, after a hold and beside what boots", () => {
    let staleness: "stale" | undefined;
    const freshness = {
      get staleness() {
        return staleness;
      },
      ageSeconds: 93.4,
    };
    const index = new BootIndex({ log, freshness });
    const held = groupDocument("lab/held", { selector: { serial: "2" }, hold: true });
    const other = groupDocument("lab/other", { selector: { serial: "3" }, profile: "disk" });
    index.replaced([install, profileDocument("lab/disk", { effect: "Boot" }), node, held, other, syncedDocument()]);
    index.open();
    expect(selected(index, "serial=1")).toBe("lab/node lab/web");
    staleness = "stale";
    expect(refusal(index, "serial=1")).toBe("doubtful");
    expect(refusal(index, "serial=2")).toBe("held");
    expect(selected(index, "serial=3")).toBe("lab/other lab/disk");
    expect(index.profileOf(index.selectGroup(labelsFromQuery("serial=1")))?.content.metadata).toBeUndefined();
  });

  it("alone has them wait: last good content that boots is given", () => {
    const boot = profileDocument("lab/web", { effect: "Boot" });
    for (const profile of [boot, profileDocument("lab/web")]) {
      const index = openIndex([outdated(profile), outdated(node), syncedDocument()]);
      expect(selected(index, "serial=1")).toBe("lab/node lab/web");
    }
  });
});

describe("a Profile that installed, and boots from the disk by now", () => {
  const done = profileDocument("lab/web", {
    effect: "Install",
    boot: { kind: "local", local: "exit" },
    templates: { ignition: { kind: "text", text: "{}", raw: true } },
  });
  const node = groupDocument("lab/node", { selector: { serial: "1" } });

  /** Of the Ignition config, which an installer that still runs may ask for. */
  function refusalOfConfig(documents: Documents): string | undefined {
    const index = openIndex(documents);
    const labels = labelsFromQuery("serial=1");
    const machine = index.select(labels);
    try {
      expect(index.template(machine, "ignition", labels)).toMatchObject({ text: "{}" });
      return undefined;
    } catch (error) {
      return error instanceof BootError ? error.reason : `${error}`;
    }
  }

  it.each<[name: string, documents: Documents, reason: string | undefined]>([
    ["certain", [done, node, syncedDocument()], undefined],
    ["of an older version", [outdated(done), node, syncedDocument()], "doubtful"],
    ["of an older version of the Group", [done, outdated(node), syncedDocument()], "doubtful"],
    ["of half a view", [done, node, syncedDocument({ half: true })], "doubtful"],
    ["of objects that are not changing", [done, node, syncedDocument({ changing: true })], "changing"],
  ])("gives its boot in doubt, and its configs only if they are %s", (_, documents, reason) => {
    expect(selected(openIndex(documents), "serial=1")).toBe("lab/node lab/web");
    expect(refusalOfConfig(documents)).toBe(reason);
  });
});

describe("a catch-all that installs", () => {
  const documents = [profileDocument("lab/web", { effect: "Install" }), groupDocument("lab/all", { matchAll: true })];
  const named = groupDocument("lab/node", { selector: { serial: "1" } });
  const broad = groupDocument("lab/broad", { expressions: [{ key: "serial", operator: "Exists", values: [] }] });
  const settledMs = 10_000;
  let clock: FakeClock;
  let index: BootIndex;

  beforeEach(() => {
    clock = new FakeClock();
    index = new BootIndex({ log, clock });
    index.open();
    index.replaced([...documents, named, broad]);
  });

  /** What machines get by name, by what any value meets, and by nothing. */
  const answers = () => ["serial=1", "serial=2", "mac=52-54-00-00-00-01"].map((query) => refusal(index, query));
  const toOneAlone = [undefined, "doubtful", "doubtful"];
  const toAll = [undefined, undefined, undefined];

  function sync(complete: boolean): void {
    const [path, text] = syncedDocument({ complete });
    index.changed([{ path, text }]);
  }

  it("takes nobody for ten seconds after the first complete sync", async () => {
    sync(true);
    expect(answers()).toEqual(toOneAlone);
    await clock.advance(settledMs - 1);
    expect(answers()).toEqual(toOneAlone);
    await clock.advance(1);
    expect(answers()).toEqual(toAll);
    sync(true);
    expect(answers()).toEqual(toAll);
  });

  it("takes nobody for as long after the first complete list of a run, whatever the store held before", async () => {
    sync(true);
    await clock.advance(settledMs);
    index.listed();
    expect(answers()).toEqual(toOneAlone);
    await clock.advance(settledMs);
    expect(answers()).toEqual(toAll);
  });

  it("takes nobody for as long once an incomplete sync becomes complete, by a change or by a new copy", async () => {
    sync(false);
    await clock.advance(settledMs);
    sync(true);
    expect(answers()).toEqual(toOneAlone);
    await clock.advance(settledMs);
    index.replaced([...documents, named, broad, syncedDocument()]);
    expect(answers()).toEqual(toAll);
  });

  it("takes nobody for as long after another complete sync, as of a new store", async () => {
    sync(true);
    await clock.advance(settledMs);
    index.replaced([...documents, named, broad, syncedDocument({ revision: "of another store" })]);
    expect(answers()).toEqual(toOneAlone);
    await clock.advance(settledMs);
    expect(answers()).toEqual(toAll);
  });

  it("boots its machines at once where it only boots", () => {
    index.replaced([profileDocument("lab/web", { effect: "Boot" }), ...documents.slice(1), named, broad]);
    sync(true);
    expect(answers()).toEqual(toAll);
  });
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Controller } from "../../src/controller/controller.ts";
import { createMetrics, type Metrics } from "../../src/lib/metrics/metrics.ts";
import { decodeSynced } from "../../src/model/objects/documents.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";
import { Statuses, sha256, trials } from "./around.ts";
import { FakeSource } from "./fake-source.ts";
import { configMapObject, groupObject, profileObject } from "./objects.ts";

const profile: ObjectName = { kind: "Profile", namespace: "default", name: "web" };
const group: ObjectName = { kind: "Group", namespace: "default", name: "node1" };
const configMap: ObjectName = { kind: "ConfigMap", namespace: "default", name: "templates" };

describe("the controller", () => {
  let disk: FaultFiles;
  let clock: FakeClock;
  let source: FakeSource;
  let statuses: Statuses;
  let store: Store;
  let controller: Controller;
  let synced: Promise<void>;
  let adminNamespace: string | undefined;
  let metrics: Metrics;
  /** Every step that the store took, as lists of paths. */
  let steps: string[][];

  beforeEach(async () => {
    disk = memoryFiles();
    clock = new FakeClock();
    source = new FakeSource();
    adminNamespace = undefined;
    await start();
  });

  afterEach(stop);

  async function start(): Promise<void> {
    statuses = new Statuses();
    steps = [];
    metrics = createMetrics("test");
    store = await openStore(disk, { clock, agelessRoot: "/davit/tombstones" });
    let synchronised = () => {};
    synced = new Promise((resolve) => {
      synchronised = resolve;
    });
    controller = new Controller({
      source,
      store,
      statusSink: statuses,
      trials,
      clock,
      log: silentLog,
      metrics,
      sha256,
      secretTexts: clearTexts(sha256),
      checkTemplate: (text) =>
        text.includes("broken") ? { reason: "syntax", message: "No", line: 1, column: 1 } : undefined,
      random: () => 0.5,
      tombstoneTtlSeconds: 60,
      adminNamespace,
      onSynced: synchronised,
    });
    await controller.start();
    store.follow("/davit", {
      replaced: () => {},
      changed: (changes) => steps.push(changes.map(({ path }) => path)),
    });
  }

  async function stop(): Promise<void> {
    await controller.stop();
    await store.stop();
  }

  function texts(): ReadonlyMap<string, string> {
    let files = new Map<string, string>();
    store.follow("/davit", {
      replaced: (entries) => {
        files = new Map(entries);
      },
      changed: () => {},
    })();
    return files;
  }

  const paths = () => [...texts().keys()].filter((path) => /groups|profiles|_secrets/.test(path)).toSorted();
  const tombstones = () => [...texts()].filter(([path]) => path.startsWith("/davit/tombstones/"));
  const mark = () => decodeSynced(texts().get("/davit/synced") ?? "");
  const webAndNode = ["/davit/groups/default/node1", "/davit/profiles/default/web"];

  /** Lets what the controller has begun run to its next wait on the clock. No time passes. */
  const settled = () => clock.advance(0);

  /** The store took so many steps since its start, and no more. */
  async function stepsTaken(count: number): Promise<void> {
    await settled();
    expect(steps).toHaveLength(count);
  }

  async function queueDepth(): Promise<number> {
    controller.measure();
    return Number(/^workqueue_depth\{name="objects"\} (\d+)$/m.exec(await metrics.text())?.[1]);
  }

  async function firstSync(): Promise<void> {
    source.put(profileObject(), groupObject());
    source.tellListed();
    await synced;
    await settled();
  }

  /** A run that knew everything, then one that does not see `name`, with a whole or half view; both synced. */
  async function syncAndRestartWithout(name: ObjectName, view: "whole" | "half"): Promise<void> {
    await firstSync();
    await stop();
    source.drop(name);
    source.complete = view === "whole";
    await start();
    source.tellListed();
    await synced;
  }

  it("writes the first list as one step, and the mark after it", async () => {
    await firstSync();
    expect(steps.map((step) => step.toSorted())).toEqual([webAndNode, ["/davit/synced"]]);
    expect(mark()).toMatchObject({ source: "fake", complete: true, at: "2026-01-01T00:00:00.000Z" });
    expect(statuses.ready("Profile/web")).toBe("Ready");
    expect(statuses.ready("Group/node1")).toBe("Ready");
  });

  it("writes nothing before the first list", async () => {
    source.put(profileObject());
    source.tellChanged(profile);
    await clock.advance(1_000);
    expect(steps).toEqual([]);
  });

  it("writes what changes together as one step", async () => {
    await firstSync();
    source.put(profileObject({ displayName: "Web" }), groupObject({ priority: 5 }));
    source.tellChanged(profile, group);
    await stepsTaken(3);
    expect(steps[2]?.toSorted()).toEqual(webAndNode);
  });

  it.each(["ignition", "generic/user-data"])(
    "looks at a Profile again when its ConfigMap changes (%s)",
    async (part) => {
      const template = { kind: "configMap", name: "templates", key: "ign", raw: false } as const;
      source.put(profileObject({ templates: { [part]: template } }), configMapObject({ ign: "one" }));
      source.tellListed();
      await synced;
      source.put(configMapObject({ ign: "two" }));
      source.tellChanged(configMap);
      await stepsTaken(3);
      expect(texts().get("/davit/profiles/default/web")).toContain('"two"');
    },
  );

  it("looks at a Group again when its Profile comes or goes", async () => {
    source.put(groupObject());
    source.tellListed();
    await synced;
    await settled();
    expect(statuses.ready("Group/node1")).toBe("ProfileNotFound");
    source.put(profileObject()).tellChanged(profile);
    await stepsTaken(3);
    expect(statuses.ready("Group/node1")).toBe("Ready");
    source.drop(profile).tellChanged(profile);
    await stepsTaken(4);
    expect(statuses.ready("Group/node1")).toBe("ProfileNotFound");
  });

  it("removes what is gone, and only while the whole source can be read", async () => {
    await firstSync();
    source.complete = false;
    source.drop(group).tellChanged(group);
    source.put(profileObject({ displayName: "new" })).tellChanged(profile);
    await stepsTaken(3);
    expect(paths()).toEqual(webAndNode);
    source.complete = true;
    source.tellChanged(group);
    await stepsTaken(4);
    expect(paths()).toEqual(["/davit/profiles/default/web"]);
    expect(statuses.ready("Group/node1")).toBeUndefined();
  });

  it("tells a Group that its Profile is there while it is out of view", async () => {
    await syncAndRestartWithout(profile, "half");
    await settled();
    expect(statuses.ready("Group/node1")).toBe("Ready");
  });

  it("removes after a restart what went meanwhile", async () => {
    await syncAndRestartWithout(group, "whole");
    expect(paths()).toEqual(["/davit/profiles/default/web"]);
  });

  it("removes nothing after a restart on a half view", async () => {
    await syncAndRestartWithout(group, "half");
    expect(paths()).toEqual(webAndNode);
    expect(mark()?.complete).toBe(true);
  });

  it("removes what was out of view since before the start, once the whole source can be read", async () => {
    await syncAndRestartWithout(group, "half");
    source.complete = true;
    source.tellListed();
    await settled();
    expect(paths()).toEqual(["/davit/profiles/default/web"]);
  });

  it("removes what went while the view was half, once it is whole again", async () => {
    await firstSync();
    source.complete = false;
    source.drop(group).tellChanged(group);
    source.tellListed();
    await clock.advance(1_000);
    expect(paths()).toEqual(webAndNode);
    source.complete = true;
    source.tellListed();
    await settled();
    expect(paths()).toEqual(["/davit/profiles/default/web"]);
  });

  it("does not believe a first list that is empty, until a second one confirms it", async () => {
    await firstSync();
    await stop();
    source.drop(group, profile);
    await start();
    source.tellListed();
    await clock.advance(1_000);
    expect(paths()).toEqual(webAndNode);
    source.tellListed();
    await synced;
    expect(paths()).toEqual([]);
  });

  it("is synced at once by an empty list over an empty store", async () => {
    source.tellListed();
    await synced;
    expect(mark()?.complete).toBe(true);
  });

  it("marks a first sync of a half view as incomplete, until one is whole", async () => {
    source.complete = false;
    await firstSync();
    expect(mark()?.complete).toBe(false);
    source.complete = true;
    source.tellListed();
    await stepsTaken(3);
    expect(mark()?.complete).toBe(true);
  });

  it("writes nothing when a restart finds everything as it was, and tells each status once", async () => {
    await firstSync();
    await stop();
    await start();
    source.tellListed();
    await synced;
    expect(steps).toEqual([]);
    source.tellChanged(profile, group);
    await settled();
    expect(statuses.writes).toBe(2);
    await clock.advance(1_000);
    expect(statuses.writes).toBe(2);
  });

  it("keeps last good content over a restart", async () => {
    source.put(profileObject({ templates: { generic: { kind: "inline", text: "good", raw: false } } }));
    source.tellListed();
    await synced;
    await stop();
    source.put(profileObject({ templates: { generic: { kind: "inline", text: "broken", raw: false } } }));
    await start();
    source.tellListed();
    await synced;
    expect(texts().get("/davit/profiles/default/web")).toContain('"good"');
    expect(statuses.ready("Profile/web")).toBe("InvalidTemplate");
  });

  const stone = [
    "/davit/tombstones/mac/52:54:00:a1:9c:ae",
    expect.stringContaining('{"group":"default/node1","selector":"mac=52:54:00:a1:9c:ae","labels":[{"mac":"52:'),
  ];

  it("leaves a tombstone in the step that removes a Group, which ends by itself", async () => {
    await firstSync();
    source.drop(group).tellChanged(group);
    await stepsTaken(3);
    expect(steps[2]).toEqual([stone[0], "/davit/groups/default/node1"]);
    expect(tombstones()).toEqual([stone]);
    await clock.advance(59_999);
    expect(tombstones()).toEqual([stone]);
    await clock.advance(1);
    expect(tombstones()).toEqual([]);
    await stepsTaken(4);
    expect(steps.slice(3)).toEqual([[stone[0]]]);
  });

  it("leaves a tombstone for a Group that went while it was down, which a restart keeps at its age", async () => {
    await syncAndRestartWithout(group, "whole");
    expect(tombstones()).toEqual([stone]);
    await stop();
    clock.stepWallClock(3_600_000);
    await start();
    await clock.advance(59_000);
    expect(tombstones()).toEqual([stone]);
    await clock.advance(1_000);
    expect(tombstones()).toEqual([]);
  });

  it("takes the tombstone away in the step that brings the Group back", async () => {
    await firstSync();
    source.drop(group).tellChanged(group);
    await stepsTaken(3);
    source.put(groupObject()).tellChanged(group);
    await stepsTaken(4);
    expect(steps[3]?.toSorted()).toEqual(["/davit/groups/default/node1", stone[0]]);
    expect(tombstones()).toEqual([]);
  });

  it("brings a Group back though its tombstone ends at that very moment", async () => {
    await firstSync();
    source.drop(group).tellChanged(group);
    await stepsTaken(3);
    disk.capacityBytes = 0;
    await clock.advance(60_000);
    source.put(groupObject()).tellChanged(group);
    await settled();
    expect(statuses.ready("Group/node1")).toBe("StoreUnavailable");
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    await clock.advance(5);
    await stepsTaken(5);
    expect(steps.slice(3)).toEqual([[stone[0]], ["/davit/groups/default/node1"]]);
    await settled();
    expect(statuses.ready("Group/node1")).toBe("Ready");
  });

  it("takes 1,000 updates of one object: the queue stays bounded, and the last one wins", async () => {
    await firstSync();
    for (let at = 1; at <= 1_000; at++) {
      source.put(profileObject({ displayName: `version ${at}` })).tellChanged(profile);
      if (at % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (at % 100 === 0) expect(await queueDepth()).toBeLessThanOrEqual(1);
    }
    await settled();
    expect(texts().get("/davit/profiles/default/web")).toContain('"version 1000"');
    expect(steps.length).toBeLessThan(1_000);
  });

  it("repairs what was changed from outside, within eleven minutes", async () => {
    await firstSync();
    await store.submit({ kind: "set", path: storePath("/davit/groups/default/node1"), value: "{}" });
    await store.submit({ kind: "delete", path: storePath("/davit/profiles/default/web") });
    const writesBefore = statuses.writes;
    await clock.advance(600_000);
    await stepsTaken(5);
    expect(steps[4]?.toSorted()).toEqual(webAndNode);
    await settled();
    expect(statuses.writes).toBe(writesBefore + 2);
    await clock.advance(600_000);
    expect(steps).toHaveLength(5);
  });

  it("counts reconciles by the names of other controllers", async () => {
    await firstSync();
    const lines = (await metrics.text()).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        'controller_runtime_reconcile_total{controller="profile",result="success"} 1',
        'controller_runtime_reconcile_total{controller="group",result="error"} 0',
        'controller_runtime_reconcile_errors_total{controller="group"} 0',
        'controller_runtime_terminal_reconcile_errors_total{controller="profile"} 0',
        'controller_runtime_reconcile_time_seconds_count{controller="group"} 1',
        'controller_runtime_active_workers{controller="group"} 0',
        'controller_runtime_max_concurrent_reconciles{controller="group"} 1',
      ]),
    );
  });

  it("tries again while the disk is full, and says so in the status", async () => {
    await firstSync();
    disk.capacityBytes = 0;
    source.put(profileObject({ displayName: "new" })).tellChanged(profile);
    await settled();
    expect(statuses.ready("Profile/web")).toBe("StoreUnavailable");
    disk.capacityBytes = Number.POSITIVE_INFINITY;
    await clock.advance(60_000);
    await stepsTaken(3);
    expect(statuses.ready("Profile/web")).toBe("Ready");
    expect(texts().get("/davit/profiles/default/web")).toContain('"new"');
  });
});

import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BootError } from "../../src/boot/boot-error.ts";
import { BootIndex } from "../../src/boot/boot-index.ts";
import { Documents } from "../../src/controller/documents.ts";
import { Planner } from "../../src/controller/planner.ts";
import { syncedPath, tombstoneLabels, tombstonesRoot } from "../../src/model/documents.ts";
import type { Group } from "../../src/model/group.ts";
import { matches, toGroup } from "../../src/model/group.ts";
import type { Labels } from "../../src/model/labels.ts";
import type { ObjectName } from "../../src/model/source.ts";
import { storePath } from "../../src/store/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";
import { FakeSource } from "./fake-source.ts";
import { groupObject, profileObject } from "./objects.ts";

/** What the tombstones are for, told as one sentence, and tried with any sequence of changes. */

const ttlSeconds = 60;
const ttlMs = ttlSeconds * 1_000;
const names = ["a", "b", "c", "d"] as const;

/** One of a few, so that they meet. */
const selectors = fc.record(
  {
    uuid: fc.constantFrom("u1", "u2"),
    serial: fc.constantFrom("s1", "s2"),
    role: fc.constantFrom("x", "y"),
  },
  { requiredKeys: [] },
);
const machines: readonly Labels[] = ["u1", "u2", undefined].flatMap((uuid) =>
  ["s1", "s2", undefined].flatMap((serial) =>
    ["x", "y", undefined].map((role) => {
      const labels = Object.entries({ uuid, serial, role });
      return new Map(labels.flatMap(([label, value]) => (value === undefined ? [] : [[label, value] as const])));
    }),
  ),
);

type Action =
  | { readonly kind: "put"; readonly name: string; readonly selector: object; readonly priority: number }
  | { readonly kind: "drop"; readonly name: string }
  | { readonly kind: "dropAll" | "step" | "stepAll" | "restart" }
  | { readonly kind: "wait"; readonly ms: number };

const actions: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant("put" as const),
    name: fc.constantFrom(...names),
    selector: selectors,
    priority: fc.constantFrom(0, 0, 0, 10),
  }),
  fc.record({ kind: fc.constant("drop" as const), name: fc.constantFrom(...names) }),
  fc.record({ kind: fc.constantFrom("dropAll" as const, "restart" as const, "stepAll" as const) }),
  fc.record({ kind: fc.constant("step" as const) }),
  fc.record({ kind: fc.constant("step" as const) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1_000, 29_999, 30_001, ttlMs) }),
);

/** A davit without its shell: source, planner, store and boot index, and what it owes to whom. */
class Bench {
  readonly clock = new FakeClock();
  readonly #files = memoryFiles();
  readonly #source = new FakeSource().put(profileObject());
  readonly #changed = new Set<string>();
  #store: Store | undefined;
  #documents: Documents | undefined;
  #index = new BootIndex({ log: silentLog });
  /** Groups as the last step left them, by name. */
  #groups = new Map<string, Group>();
  /** When a group went, by its name and selector. */
  readonly #gone = new Map<string, { readonly group: Group; atMs: number }>();
  /** Every group that ever went, back again or not. */
  readonly #everGone: Group[] = [];

  async start(): Promise<void> {
    this.#store = await openStore(this.#files, { clock: this.clock, agelessRoot: tombstonesRoot });
    await this.#store.submit({ kind: "set", path: storePath(syncedPath), value: '{"complete":true}' });
    this.#documents = new Documents(this.#store);
    this.#documents.start();
    this.#index = new BootIndex({ log: silentLog });
    this.#store.follow("/davit", this.#index);
    this.#index.open();
    await this.#step(["profile", ...names]);
  }

  async stop(): Promise<void> {
    await this.#store?.stop();
  }

  async run(action: Action): Promise<void> {
    switch (action.kind) {
      case "put":
        return this.#put(action.name, action.selector, action.priority);
      case "drop":
        return this.#drop(action.name);
      case "dropAll":
        for (const name of names) this.#drop(name);
        return;
      case "wait":
        return await this.clock.advance(action.ms);
      case "step":
        return await this.#step([...this.#changed].slice(0, 1));
      case "stepAll":
        return await this.#step([...this.#changed]);
      case "restart":
        return await this.#restart();
    }
  }

  /** Tombstones do not age while davit is down, however long that is. */
  async #restart(): Promise<void> {
    const waiting = [...this.#gone.values()].filter(({ atMs }) => this.clock.nowMs() - atMs < ttlMs);
    await this.stop();
    await this.clock.advance(ttlMs);
    for (const gone of waiting) gone.atMs = this.clock.nowMs();
    await this.start();
  }

  #put(name: string, selector: object, priority: number): void {
    const matchAll = Object.keys(selector).length === 0;
    this.#source.put(groupObject({ selector: { ...selector }, matchAll, priority: matchAll ? 0 : priority }, name));
    this.#changed.add(name);
  }

  #drop(name: string): void {
    this.#source.drop(groupName(name));
    this.#changed.add(name);
  }

  async #step(changed: readonly string[]): Promise<void> {
    const { documents, planner } = this.#planner();
    const objects = changed.map((name): ObjectName => (name === "profile" ? profile : groupName(name)));
    await documents.write(planner.plan(objects).writes);
    for (const name of changed) this.#changed.delete(name);
    this.#noteWhatWent();
  }

  #planner() {
    if (this.#documents === undefined) throw new Error("Not started");
    const documents = this.#documents;
    const sha256 = (text: string) => hash("sha256", text, "hex");
    const checkTemplate = () => undefined;
    const log = { error: () => undefined };
    const options = { source: this.#source, documents, log, sha256, checkTemplate, tombstoneTtlSeconds: ttlSeconds };
    return { documents, planner: new Planner(options) };
  }

  #noteWhatWent(): void {
    const now = new Map<string, Group>();
    for (const name of names) {
      const document = this.#documents?.group("default", name);
      if (document !== undefined) now.set(name, toGroup("default", name, document.spec));
    }
    for (const [name, group] of this.#groups) {
      const isThere = now.get(name)?.selectorText === group.selectorText;
      if (isThere || !namesHardware(group)) continue;
      this.#gone.set(`${name} ${group.selectorText}`, { group, atMs: this.clock.nowMs() });
      this.#everGone.push(group);
    }
    for (const [name, { selectorText }] of now) this.#gone.delete(`${name} ${selectorText}`);
    this.#groups = now;
  }

  /** Every machine that a group named which went less than a ttl ago waits, or gets one that is as specific. */
  check(): void {
    for (const labels of machines) {
      const answer = this.#answer(labels);
      if (answer === "bereft") expect(this.#mayWait(labels)).toBe(true);
      else expect(Object.keys(answer?.selector ?? {})).toEqual(expect.arrayContaining([...this.#namesOf(labels)]));
    }
  }

  /** The labels by which groups that went lately selected this machine. */
  #namesOf(labels: Labels): readonly string[] {
    return [...this.#gone.values()]
      .filter(({ group, atMs }) => this.clock.nowMs() - atMs < ttlMs && matches(group, labels))
      .flatMap(({ group }) => Object.keys(group.selector));
  }

  /** True when a group that named this machine went, and one with its uuid or mac lately, which keeps the tombstone. */
  #mayWait(labels: Labels): boolean {
    if (!this.#everGone.some((group) => matches(group, labels))) return false;
    return tombstoneLabels.some((label) =>
      [...this.#gone.values()].some(({ group, atMs }) => {
        const isLate = this.clock.nowMs() - atMs < ttlMs;
        return isLate && labels.has(label) && group.selector[label] === labels.get(label);
      }),
    );
  }

  #answer(labels: Labels): Group | "bereft" | undefined {
    try {
      return this.#index.selectGroup(labels);
    } catch (error) {
      if (!(error instanceof BootError)) throw error;
      return error.reason === "bereft" ? "bereft" : undefined;
    }
  }
}

const profile: ObjectName = { kind: "Profile", namespace: "default", name: "web" };

function groupName(name: string): ObjectName {
  return { kind: "Group", namespace: "default", name };
}

function namesHardware({ selector }: Group): boolean {
  return tombstoneLabels.some((label) => Object.hasOwn(selector, label));
}

describe("a machine that was named by an identity label", () => {
  it("gets no group that does not name it by as many labels, as long as a tombstone stays, whatever changes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(actions, { minLength: 3, maxLength: 20 }), async (sequence) => {
        const bench = new Bench();
        await bench.start();
        try {
          for (const action of sequence) {
            await bench.run(action);
            bench.check();
          }
        } finally {
          await bench.stop();
        }
      }),
      { numRuns: 150 },
    );
  });
});

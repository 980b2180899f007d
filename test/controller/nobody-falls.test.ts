import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { Documents } from "../../src/controller/core/documents.ts";
import { Planner } from "../../src/controller/planner.ts";
import { identityLabels, type Labels } from "../../src/model/labels/labels.ts";
import { syncedPath, tombstonesRoot } from "../../src/model/objects/documents.ts";
import { compareCounts, compareGroups, type Group, matches, toGroup } from "../../src/model/objects/group.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import type { GroupObject, ObjectName } from "../../src/model/objects/source.ts";
import { mayHaveBarred, outranks } from "../../src/model/selection/contest.ts";
import { isAsSpecific, namesMachine, namesValueOf } from "../../src/model/selection/specificity.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";
import { FakeSource } from "./fake-source.ts";
import { type Action, machines, names, type Put, profiles, rareSequences, sequences, ttlMs } from "./group-changes.ts";
import { groupObject, profileObject } from "./objects.ts";

/** What the tombstones are for, told as a few sentences, and tried with any sequence of changes. */

/** A Group that was removed, or got another selector. */
interface Leave {
  readonly group: Group;
  atMs: number;
  /** Machines that had the Group, that no higher-ranked Group takes, and that the Group does not list again. */
  readonly machines: Set<Labels>;
}

type Answer = Group | "bereft" | "tied" | "doubtful" | undefined;

/** A davit without its shell: source, planner, store and boot index, and what it owes to whom. */
class Bench {
  readonly clock = new FakeClock();
  readonly #files = memoryFiles();
  readonly #source = new FakeSource().put(profileObject({}, "web"), profileObject({ effect: "Install" }, "wipe"));
  readonly #changed = new Set<string>();
  #store: Store | undefined;
  #documents: Documents | undefined;
  #index = new BootIndex({ log: silentLog });
  /** Groups as the last step left them, by name. */
  #groups = new Map<string, Group>();
  readonly #leaves: Leave[] = [];
  readonly #faults: string[] = [];
  #created = 0;

  async start(): Promise<void> {
    this.#store = await openStore(this.#files, { clock: this.clock, agelessRoot: tombstonesRoot });
    await this.#store.submit({ kind: "set", path: storePath(syncedPath), value: '{"complete":true}' });
    this.#documents = new Documents(this.#store);
    this.#documents.start();
    this.#index = new BootIndex({ log: silentLog });
    this.#store.follow("/davit", this.#index);
    this.#index.open();
    await this.#step([...profiles, ...names]);
  }

  async stop(): Promise<void> {
    await this.#store?.stop();
  }

  async run(action: Action): Promise<void> {
    switch (action.kind) {
      case "put":
        return this.#put(action);
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
    const waiting = this.#leaves.filter((leave) => this.#isYoung(leave));
    await this.stop();
    await this.clock.advance(ttlMs);
    for (const leave of waiting) leave.atMs = this.clock.nowMs();
    await this.start();
  }

  #put({ name, selector, expressions: list, priority, profile }: Put): void {
    const matchAll = Object.keys(selector).length === 0 && list === undefined;
    const spec = { selector, ...(list && { expressions: list }), matchAll, priority: matchAll ? 0 : priority, profile };
    this.#source.put({ ...groupObject(spec, name), ...this.#versionOf(name) });
    this.#changed.add(name);
  }

  /** As an API server has it: a new uid for each object, a new generation for each change of it. */
  #versionOf(name: string): Pick<GroupObject, "uid" | "generation"> {
    const before = this.#source.get("Group", "default", name);
    if (before !== undefined) return { uid: before.uid, generation: before.generation + 1 };
    this.#created += 1;
    return { uid: `uid-${this.#created}`, generation: 1 };
  }

  #drop(name: string): void {
    this.#source.drop(groupName(name));
    this.#changed.add(name);
  }

  async #step(changed: readonly string[]): Promise<void> {
    const { documents, planner } = this.#planner();
    const objects = changed.map((name) => (isProfile(name) ? profileName(name) : groupName(name)));
    const before = machines.map((labels) => this.#seen(labels));
    await documents.write(planner.plan(objects).writes);
    for (const name of changed) this.#changed.delete(name);
    this.#noteWhatWent();
    for (const [at, labels] of machines.entries()) this.#checkStaying(labels, before[at], this.#seen(labels));
  }

  /** Whoever may change a Group takes no answer away from a machine that has another Group, before and after. */
  #checkStaying(labels: Labels, before: Seen | undefined, after: Seen): void {
    if (before?.winner === undefined || typeof before.answer === "string") return;
    if (before.winner.id !== after.winner?.id || !isSame(before.winner, after.winner)) return;
    if (after.answer !== "bereft") return;
    // Of a list its tombstones do not know enough to compare the texts of selectors.
    if (this.#leaves.some(({ group }) => isEven(group, after.winner))) return;
    this.#faults.push(`${textOf(labels)} waits, though ${after.winner.id} stays`);
  }

  #seen(labels: Labels): Seen {
    return { winner: winnerOf(this.#groups.values(), labels), answer: this.#answer(labels) };
  }

  #planner() {
    if (this.#documents === undefined) throw new Error("Not started");
    const documents = this.#documents;
    const sha256 = (text: string) => hash("sha256", text, "hex");
    const checkTemplate = () => undefined;
    const log = { error: () => undefined };
    const pure = { sha256, secretTexts: clearTexts(sha256), checkTemplate };
    const planner = new Planner({ source: this.#source, documents, log, ...pure, tombstoneTtlSeconds: ttlMs / 1_000 });
    planner.begin();
    return { documents, planner };
  }

  #noteWhatWent(): void {
    const now = new Map<string, Group>();
    for (const name of names) {
      const document = this.#documents?.group("default", name);
      if (document !== undefined) now.set(name, toGroup("default", name, document.spec));
    }
    for (const [name, group] of this.#groups) {
      if (now.get(name)?.selectorText !== group.selectorText) this.#leaves.push(this.#leave(group, now));
    }
    for (const { group, machines: missed } of this.#leaves) {
      const own = now.get(nameOf(group));
      for (const labels of missed) if (isListed(own, group, labels)) missed.delete(labels);
    }
    this.#groups = now;
  }

  #leave(group: Group, now: ReadonlyMap<string, Group>): Leave {
    const had = machines.filter((labels) => winnerOf(this.#groups.values(), labels)?.id === group.id);
    const others = [...now.values()].filter((other) => outranks(other, group, new Map()));
    const missed = had.filter((labels) => !others.some((other) => takesAllOf(other, group, labels)));
    return { group, atMs: this.clock.nowMs(), machines: new Set(missed) };
  }

  #isYoung({ atMs }: Leave): boolean {
    return this.clock.nowMs() - atMs < ttlMs;
  }

  /**
   * Returns the faults since the last call. Each machine must get the right answer or wait. It may wait only for a
   * Group that it had less than a ttl ago.
   */
  faults(): readonly string[] {
    for (const labels of machines) {
      const fault = this.#faultOf(labels);
      if (fault !== undefined) this.#faults.push(`${textOf(labels)} ${fault}`);
    }
    return this.#faults.splice(0);
  }

  #faultOf(labels: Labels): string | undefined {
    const { answer, winner } = this.#seen(labels);
    if (answer === "tied") return undefined;
    if (answer === "bereft") return this.#mayWait(labels, winner) ? undefined : "waits for nothing";
    if (typeof answer !== "string" && answer?.id !== winner?.id) return `gets ${answer?.id}, not ${winner?.id}`;
    const gone = this.#owing(labels).find(({ group }) => isLess(winner, group));
    return gone && `gets ${winner?.id}, and had ${gone.group.id}`;
  }

  /** Of groups that this machine had a moment ago. */
  #owing(labels: Labels): readonly Leave[] {
    return this.#leaves.filter((leave) => this.#isYoung(leave) && leave.machines.has(labels));
  }

  /** True when a group went that selected this machine, and one lately whose tombstone is at the same place. */
  #mayWait(labels: Labels, winner: Group | undefined): boolean {
    return this.#leaves
      .filter(({ group }) => matches(group, labels) && isLess(winner, group))
      .some(({ group }) =>
        this.#leaves.some((other) => this.#isYoung(other) && sharePlace(group, other.group, labels)),
      );
  }

  #answer(labels: Labels): Answer {
    try {
      return this.#index.select(labels).group;
    } catch (error) {
      if (!(error instanceof BootError)) throw error;
      const { reason } = error;
      if (reason === "bereft" || reason === "tied" || reason === "doubtful") return reason;
      if (reason !== "noMatch") throw error;
      return undefined;
    }
  }
}

interface Seen {
  /** Who comes first of all that there are. */
  readonly winner: Group | undefined;
  readonly answer: Answer;
}

/** True when a machine that had a group a moment ago must not have this one, or none, instead. */
function isLess(winner: Group | undefined, gone: Group): boolean {
  const isNamed = namesMachine(gone);
  if (winner === undefined) return isNamed;
  const isInstall = winner.profileId === "default/wipe";
  if (isInstall && gone.profileId !== winner.profileId && mayHaveBarred(gone, winner, new Map())) return true;
  if (!outranks(gone, winner, new Map())) return false;
  if (isInstall) return true;
  return isNamed && (winner.priority < gone.priority || !isAsSpecific(winner, gone));
}

/** True for an Install that has as many labels and expressions as a Group with expressions. */
function isEven(gone: Group, winner: Group | undefined): boolean {
  if (winner?.profileId !== "default/wipe" || gone.expressions.length === 0) return false;
  return compareCounts(gone, winner) === 0;
}

/**
 * True if a Group, as it is now, selects a machine by the labels of its former version. Its Profile and its priority
 * may be different: the object itself says so, and no other version returns.
 */
function isListed(now: Group | undefined, before: Group, labels: Labels): boolean {
  return now !== undefined && matches(now, labels) && isAsExact(now, before);
}

function textOf(labels: Labels): string {
  return [...labels].map(([label, value]) => `${label}=${value}`).join(",") || "no labels";
}

function nameOf({ id }: Group): string {
  return id.slice(id.indexOf("/") + 1);
}

function winnerOf(groups: Iterable<Group>, labels: Labels): Group | undefined {
  return [...groups].filter((group) => matches(group, labels)).toSorted(compareGroups)[0];
}

/** True when a group selects each machine that another one selected, of those with the names of this one. */
function takesAllOf(other: Group, group: Group, labels: Labels): boolean {
  const named = identityLabels.filter((label) => namesValueOf(group, label));
  const alike = machines.filter((each) => named.every((label) => each.get(label) === labels.get(label)));
  return alike.every((each) => !matches(group, each) || matches(other, each));
}

/** True for selectors that differ in no more than the lists of their values. */
function isAsExact(group: Group, other: Group): boolean {
  return isAsSpecific(group, other) && isAsSpecific(other, group);
}

function sharePlace(group: Group, other: Group, labels: Labels): boolean {
  if (!namesMachine(group)) return group.selectorText === other.selectorText;
  return identityLabels.some((label) => {
    const value = labels.get(label);
    if (value === undefined || !namesValueOf(group, label)) return false;
    return namesValueOf(other, label) && matchesOn(other, label, value);
  });
}

function matchesOn({ selector, expressions: list }: Group, label: string, value: string): boolean {
  if (Object.hasOwn(selector, label)) return selector[label] === value;
  return list.every(({ key, accepts }) => key !== label || accepts(value));
}

function isSame(a: Group, b: Group | undefined): boolean {
  return a.selectorText === b?.selectorText && a.priority === b.priority && a.profileId === b.profileId;
}

function isProfile(name: string): boolean {
  return profiles.some((profile) => profile === name);
}

function profileName(name: string): ObjectName {
  return { kind: "Profile", namespace: "default", name };
}

function groupName(name: string): ObjectName {
  return { kind: "Group", namespace: "default", name };
}

describe("a machine whose Group is removed", () => {
  it("gets none that ranks behind it while a tombstone stays, and waits for nothing else, whatever changes", async () => {
    await fc.assert(
      fc.asyncProperty(sequences, async (sequence) => {
        const bench = new Bench();
        await bench.start();
        try {
          for (const action of sequence) {
            await bench.run(action);
            expect(bench.faults()).toEqual([]);
          }
        } finally {
          await bench.stop();
        }
      }),
      { numRuns: 300, examples: rareSequences.map((sequence) => [[...sequence]]) },
    );
  });
});

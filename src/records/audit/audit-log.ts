/**
 * The audit log: a line of JSON for each change of what machines get, for each permit, and for what operators do
 * through davit (docs/operate/audit.md has every field). A line has names, numbers and times, and never a value of a
 * template, of metadata or of an argument.
 *
 * The controller and the ledger only report what has changed. davit makes the lines in the background, in slices,
 * because counting machines takes time. A restart repeats no line: an edit is a difference from what the store holds.
 */

import { type Clock, toRfc3339 } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { asciiJson } from "../../lib/text/visible.ts";
import type { ActionAudit, DocumentEdit, EditAudit, OperatorAction } from "../../model/objects/audit.ts";
import type { Group } from "../../model/objects/group.ts";
import type { Effect } from "../../model/objects/profile.ts";
import { grantRefusal, type LedgerEntry, type LedgerView, type NamedGrant } from "../../model/permits/permit.ts";
import { both, effectIn, factsOf, type ObjectFacts, profilePathOf, type Sides, servingOf } from "./object-facts.ts";
import { type Decisive, distinct, type KnownMachine, type Reach, reachOf } from "./reach.ts";

export interface AuditLogOptions {
  readonly clock: Pick<Clock, "nowMs" | "sleep">;
  /** Takes a line without its newline; never waits. */
  readonly write: (line: string) => void;
  /** Every Group, by its `namespace/name`. */
  readonly groups: () => ReadonlyMap<string, Group>;
  /** Every machine that davit knows, perhaps more than once; undefined if they cannot be counted now. */
  readonly machines: () => Promise<Iterable<KnownMachine> | undefined>;
  /** Returns the Group that a machine with these identities gets now, `namespace/name`. */
  readonly groupOf: (identities: readonly string[]) => string | undefined;
  readonly ledger: () => LedgerView | undefined;
  /** Called if a bug prevents lines: davit goes on. @param count how many lines, at least. */
  readonly failed: (error: unknown, count: number) => void;
  /** Called for edits that come faster than their lines can be made. */
  readonly dropped: (count: number) => void;
  /** Limits the memory of edits that wait, in characters of their documents; for tests. */
  readonly maxWaitingLength?: number;
}

/** How long edits gather. So a thousand edits of single objects need only a few passes over all machines. */
const gatherMs = 200;
/** The most edits in one pass over all machines. */
const maxTogether = 4_096;
/** The rest after each slice of a millisecond, so that answers to machines come first. */
const restMs = 2;
/** The most Groups that a line names. */
const maxGroups = 20;

/** More than both versions of 100,000 objects of usual size. */
const maxWaitingLength = 256 * 1024 * 1024;
/** How much text of documents is parsed in one slice, which takes about a millisecond. */
const maxSliceLength = 64 * 1024;

/** Where the text of a stored document is. */
type TextAt = (path: string) => string | undefined;

interface TimedEdit extends DocumentEdit {
  readonly atMs: number;
  /** The edits of one step have the same number, and those of a later step a higher one. */
  readonly step: number;
  readonly textAt: TextAt;
}

interface Audited {
  readonly edit: TimedEdit;
  readonly facts: ObjectFacts;
  readonly groups: Decisive;
}

export class AuditLog implements EditAudit, ActionAudit {
  readonly #options: AuditLogOptions;
  readonly #stopping = new AbortController();
  #waiting: TimedEdit[] = [];
  #waitingLength = 0;
  #step = 0;
  /** The edits without a line yet, by path. */
  readonly #pending = new Map<string, TimedEdit[]>();
  #dropped = 0;
  #working: Promise<void> | undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  /** See `EditAudit`. */
  edited(edits: readonly DocumentEdit[], textAt: TextAt): void {
    const { clock, dropped, maxWaitingLength: maxLength = maxWaitingLength } = this.#options;
    const step = { atMs: clock.nowMs(), step: ++this.#step, textAt };
    let count = 0;
    for (const edit of edits) {
      if (this.#waitingLength + lengthOf(edit) > maxLength) count++;
      else {
        const timed = { ...edit, ...step };
        this.#waiting.push(timed);
        const known = this.#pending.get(edit.path);
        if (known === undefined) this.#pending.set(edit.path, [timed]);
        else known.push(timed);
        this.#waitingLength += lengthOf(edit);
      }
    }
    this.#dropped += count;
    if (count > 0) dropped(count);
    this.#working ??= this.#work();
  }

  /** See `ActionAudit`. */
  acted({ action, via, by, done }: OperatorAction): void {
    this.#write(this.#options.clock.nowMs(), { event: "action", action, via, by, ...done });
  }

  /** Takes an entry of the ledger whose state has just changed. */
  entryChanged({ state, id, identities, grant, group, profile, claimedFrom, reported }: LedgerEntry): void {
    // Without a grant, an operator has adopted or forgotten the machine. That opened nothing.
    if (state === "Installing" || grant === undefined) return;
    const action = state === "Claimed" ? "claimed" : "closed";
    const why = action === "claimed" ? undefined : state.toLowerCase();
    this.#write(this.#options.clock.nowMs(), {
      event: "permit",
      action,
      why,
      grant: grant.key,
      generation: grant.generation,
      machine: identities,
      entry: id,
      group,
      profile,
      address: action === "claimed" ? claimedFrom : undefined,
      reported: action === "claimed" ? undefined : reported?.state,
    });
  }

  /** Takes a grant that has ended by its `until`. @param key as in `NamedGrant`. */
  grantEnded(key: string, generation: number): void {
    this.#write(this.#options.clock.nowMs(), {
      event: "permit",
      action: "closed",
      why: "ended",
      grant: key,
      generation,
    });
  }

  /** Returns a line that reports lines which were dropped, because they could not be written. */
  lostLine(count: number): string {
    return this.#line(this.#options.clock.nowMs(), { event: "lost", lines: count });
  }

  /** Makes the lines of what waits, and ends. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
    await this.#makeLines();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#waiting.length > 0 && !signal.aborted) {
      await this.#options.clock.sleep(gatherMs, signal);
      await this.#makeLines();
    }
    this.#working = undefined;
  }

  async #makeLines(): Promise<void> {
    while (this.#waiting.length > 0) {
      const edits = this.#waiting.splice(0, maxTogether);
      for (const edit of edits) this.#waitingLength -= lengthOf(edit);
      try {
        const machines = await this.#options.machines();
        for (const _ of this.#linesOf(edits, machines && distinct(machines))) await this.#rest();
      } catch (error) {
        this.#options.failed(error, edits.length);
      }
      this.#done(edits);
    }
    if (this.#dropped === 0) return;
    this.#options.write(this.lostLine(this.#dropped));
    this.#dropped = 0;
  }

  #done(edits: readonly TimedEdit[]): void {
    for (const { path } of edits) {
      const known = this.#pending.get(path);
      known?.shift();
      if (known?.length === 0) this.#pending.delete(path);
    }
  }

  async #rest(): Promise<void> {
    const { signal } = this.#stopping;
    await (signal.aborted ? nextTurn() : this.#options.clock.sleep(restMs, signal));
  }

  *#linesOf(edits: readonly TimedEdit[], machines: Iterable<KnownMachine> | undefined): Generator<undefined, void> {
    const slices = new Slices(maxSliceLength);
    const ofProfiles = new OfProfiles(this.#options.groups);
    const audited: Audited[] = [];
    for (const edit of edits) {
      const facts = factsOf(edit.path, edit);
      if (facts !== undefined) audited.push({ edit, facts, groups: decisiveOf(facts, ofProfiles) });
      if (slices.isOver(lengthOf(edit))) yield;
    }
    const reaches = machines && (yield* this.#count(audited, machines));
    const effectsOf = effectsBy(this.#pending);
    for (const [at, each] of audited.entries()) {
      this.#writeObject(each, reaches?.[at], effectsOf);
      if (slices.isOver(lengthOf(each.edit))) yield;
    }
  }

  /** @returns undefined if davit stops meanwhile: a count may take longer than a stop. */
  *#count(audited: readonly Audited[], machines: Iterable<KnownMachine>) {
    const { signal } = this.#stopping;
    const work = reachOf(
      audited.map(({ groups }) => groups),
      machines,
    );
    for (;;) {
      const slice = work.next();
      if (slice.done === true) return slice.value;
      if (signal.aborted) return undefined;
      yield;
    }
  }

  #writeObject(
    { edit, facts, groups }: Audited,
    reach: Reach | undefined,
    effectsOf: ReturnType<typeof effectsBy>,
  ): void {
    const { object, action, generation, isRefusedTwin, changed, group, identities, grant } = facts;
    const { names, count } = this.#groupsHit(identities, groups);
    this.#write(edit.atMs, {
      event: "object",
      action,
      ...object,
      generation,
      ...writerOf(edit, facts),
      refusedVersion: isRefusedTwin ? true : undefined,
      changed: action === "updated" ? changed : undefined,
      profile: (group?.after ?? group?.before)?.profileId,
      groups: names,
      groupCount: count,
      machines: identities === undefined ? reach : machinesOf(edit),
      serving: group && both(group, servingOf),
      effect: facts.effect ?? (group && effectsOf(group, edit)),
    });
    const ledger = this.#options.ledger();
    if (grant === undefined || ledger === undefined) return;
    for (const { action: done, named, why } of grantChanges(grant, ledger)) {
      this.#writePermit(edit.atMs, done, named, why);
    }
  }

  #groupsHit(identities: readonly string[] | undefined, { before = [], after = [] }: Decisive) {
    if (identities !== undefined) {
      const own = this.#options.groupOf(identities);
      return own === undefined ? { names: [], count: 0 } : { names: [own], count: 1 };
    }
    // Both sides of a Profile are the same list, and those of a Group are the same Group.
    const groups = after.length === 0 ? before : after;
    return { names: groups.slice(0, maxGroups).map(({ id }) => id), count: groups.length };
  }

  #writePermit(atMs: number, action: string, { key, grant }: NamedGrant, why: string | undefined): void {
    const { generation, scope, untilMs } = grant;
    const until = untilMs === undefined ? undefined : toRfc3339(untilMs);
    this.#write(atMs, { event: "permit", action, why, grant: key, generation, until, scope });
  }

  #write(atMs: number, fields: object): void {
    try {
      this.#options.write(this.#line(atMs, fields));
    } catch (error) {
      this.#options.failed(error, 1);
    }
  }

  #line(atMs: number, fields: object): string {
    return asciiJson({ audit: 1, time: toRfc3339(atMs), ...fields });
  }
}

/** The Groups of each Profile. To find them takes milliseconds, so only an edit of a Profile does so. */
class OfProfiles {
  readonly #groups: AuditLogOptions["groups"];
  #known: ReadonlyMap<string, readonly Group[]> | undefined;

  constructor(groups: AuditLogOptions["groups"]) {
    this.#groups = groups;
  }

  get(profileId: string): readonly Group[] | undefined {
    this.#known ??= Map.groupBy(this.#groups().values(), (group) => group.profileId);
    return this.#known.get(profileId);
  }
}

function lengthOf({ before = "", after = "" }: DocumentEdit): number {
  return before.length + after.length;
}

/**
 * Returns who made the change. The writer of an object did not make it if the same version gives another document, such
 * as after a change of a ConfigMap. Files have no versions, so their digest is all there is.
 */
function writerOf({ writer }: DocumentEdit, { action, isNewVersion, generation, changed }: ObjectFacts): object {
  if (action === "removed") return {};
  const isOfThis = writer?.generation === generation && (isNewVersion || writer.file !== undefined);
  // Before the first list is complete, only a new version's hold takes effect (`earlyHolds`). The rest gets no line.
  const isHold = changed.join() === "hold" && writer !== undefined && writer.generation > generation;
  return isOfThis || isHold ? writer : { newVersion: isNewVersion ? undefined : false };
}

/** The Groups that decide about an object's machines. */
function decisiveOf({ object, group }: ObjectFacts, ofProfiles: OfProfiles): Decisive {
  if (group !== undefined) return both(group, (each) => [each]);
  const groups = object.kind === "Profile" ? ofProfiles.get(`${object.namespace}/${object.name}`) : undefined;
  return { before: groups, after: groups };
}

/** A Machine is one machine, whether it has asked or not. */
function machinesOf({ before, after }: DocumentEdit): Reach {
  return { before: before === undefined ? 0 : 1, after: after === undefined ? 0 : 1 };
}

/**
 * Returns a function that returns the effect of a Group's Profile before and after the step of an edit.
 * @param pending the edits without a line yet, by path: they have what a Profile was before later steps.
 */
function effectsBy(pending: ReadonlyMap<string, readonly TimedEdit[]>) {
  // Thousands of Groups may have one Profile.
  const known = new Map<string, Effect | undefined>();
  const effectOf = (text: string | undefined) => {
    if (text === undefined) return undefined;
    if (!known.has(text)) known.set(text, effectIn(text));
    return known.get(text);
  };
  return ({ before, after }: Sides<Group>, { step, textAt }: TimedEdit): Sides<Effect> => {
    const textBefore = (path: string, first: number) => {
      const later = pending.get(path)?.find((edit) => edit.step >= first);
      return later === undefined ? textAt(path) : later.before;
    };
    return {
      before: before && effectOf(textBefore(profilePathOf(before), step)),
      after: after && effectOf(textBefore(profilePathOf(after), step + 1)),
    };
  };
}

interface GrantChange {
  readonly action: "opened" | "changed" | "asleep" | "closed";
  readonly named: NamedGrant;
  readonly why?: string | undefined;
}

/** Returns the lines for a grant that an object got, changed or lost. Each opened grant also gets closed. */
function grantChanges({ before, after }: Sides<NamedGrant>, ledger: LedgerView): readonly GrantChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (before === undefined || grantRefusal(before, ledger) !== undefined) return comes(after, ledger);
  if (after === undefined) return [{ action: "closed", named: before, why: "withdrawn" }];
  if (before.grant.generation !== after.grant.generation) {
    return [{ action: "closed", named: before, why: "replaced" }, ...comes(after, ledger)];
  }
  const why = grantRefusal(after, ledger);
  return [{ action: why === undefined ? "changed" : "closed", named: after, why }];
}

function comes(named: NamedGrant | undefined, ledger: LedgerView): readonly GrantChange[] {
  if (named === undefined) return [];
  const why = grantRefusal(named, ledger);
  return [{ action: why === undefined ? "opened" : "asleep", named, why }];
}

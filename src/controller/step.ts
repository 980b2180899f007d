/** A step: its plan, and what the planner collects while it plans the step. */

import type { DocumentChange } from "../model/feed.ts";
import type { GroupDocument } from "../model/objects/documents.ts";
import type { ProfileContent } from "../model/objects/profile.ts";
import type { ObjectName, ObjectStatus } from "../model/objects/source.ts";
import type { DocumentWrite } from "./core/documents.ts";
import { byKey } from "./core/names.ts";
import type { GroupDraft } from "./reconcile/draft-group.ts";
import type { Findings } from "./status/conditions.ts";
import type { GroupChange, TombstoneWrite } from "./tombstones/tombstones.ts";

/** The result for one name. */
export interface Planned {
  readonly name: ObjectName;
  /** Undefined for an object that is gone. */
  readonly status: ObjectStatus | undefined;
  /** True when the step removes the documents of an object that is gone. */
  readonly isRemoved: boolean;
  /** The findings that the status sums up; undefined if davit did not check the object's spec. */
  readonly reported?: Findings | undefined;
}

/** What to write in one step, in this order, and what to do afterwards. */
export interface Step {
  readonly planned: readonly Planned[];
  readonly writes: readonly DocumentWrite[];
  /** The namespace of each tombstone's object, for the tombstones that the step writes or removes. */
  readonly moved: readonly string[];
  /** Other objects to look at again. */
  readonly alsoLookAt: readonly ObjectName[];
  /** Profiles whose Groups changed: only their `groupCount` may change. */
  readonly recount: readonly ObjectName[];
}

/** The facts about a Group that do not depend on other Groups. */
export interface GroupPlan {
  readonly id: ObjectName;
  readonly stored: GroupDocument | undefined;
  /** Undefined if the Group is gone or not in view now, or if davit failed on it. */
  readonly draft: GroupDraft | undefined;
  /** The document that the store should have. */
  readonly document: GroupDocument | undefined;
  readonly twin: GroupDocument | undefined;
  /** The status of a Group on which davit failed. */
  readonly failed?: ObjectStatus;
}

/** A step while it is planned. */
export interface Draft {
  readonly planned: Planned[];
  readonly changes: DocumentChange[];
  /** Tombstones of Profiles and Machines. */
  readonly tombstones: TombstoneWrite[];
  readonly groupChanges: GroupChange[];
  /** The new contents of this step's Profiles, by their keys. */
  readonly contents: Map<string, ProfileContent>;
  /** By key, like the two maps below. */
  readonly names: Map<string, ObjectName>;
  readonly alsoLookAt: Map<string, ObjectName>;
  readonly recount: Map<string, ObjectName>;
}

/** Begins to plan a step for these names. */
export function newDraft(names: Iterable<ObjectName>): Draft {
  return {
    planned: [],
    changes: [],
    tombstones: [],
    groupChanges: [],
    contents: new Map(),
    names: byKey(names),
    alsoLookAt: new Map(),
    recount: new Map(),
  };
}

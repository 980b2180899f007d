/** How long the controller waits. */

// Only people read `groupCount`, so it may be late while 5,000 Groups arrive one by one.
export const recountDelayMs = 1_000;

// A healthy source delivers its first list sooner, and then no early holds are needed.
export const earlyHoldsDelayMs = 2_000;

// Nobody but davit should write below /davit or to statuses. The resync repairs what somebody wrote there anyway.
export const resyncMs = 10 * 60_000;
/** Spreads the resyncs of many instances, so that they do not ask one API server at the same time. */
export const resyncJitter = 0.1;

// Several checks within a tombstone's lifetime, so that one check may be late.
export const vigilsPerTtl = 3;

// How long the condition `Permitted` may show a grant that has ended.
export const permitsMs = 2_000;

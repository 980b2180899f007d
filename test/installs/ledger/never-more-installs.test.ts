/**
 * The first promise of the ledger: whatever is lost, restored, set back, sent or crashes, no machine is served more
 * installs than the objects grant.
 */

import { randomInt } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Act, type AskAct, InstallWorld, names } from "./install-world.ts";

const all = 2 ** names.length - 1;
/** What machines with two names send most of the time, and anything. */
const sentNames = fc.oneof(
  fc.constantFrom(0b00011, 0b00101, 0b00001, 0b00010, 0b11000),
  fc.integer({ min: 0, max: all }),
);

const ask: fc.Arbitrary<AskAct> = fc.record({
  names: sentNames,
  listed: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: all }) },
  ),
  purpose: fc.constantFrom("script", "script", "script", "config"),
  mayClaim: fc.oneof({ weight: 5, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  address: fc.integer({ min: 1, max: 3 }),
});

const plan = fc.record({ crashAt: fc.integer({ min: 1, max: 60 }), garbles: fc.boolean() }, { requiredKeys: [] });

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      act: fc.constant("ask"),
      asks: fc.array(ask, { minLength: 1, maxLength: 4 }),
      crashesMeanwhile: fc.constant(false),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant("ask"),
      asks: fc.array(ask, { minLength: 1, maxLength: 4 }),
      crashesMeanwhile: fc.constant(true),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant("report"),
      token: fc.nat(20),
      state: fc.constantFrom("installing", "progress", "installed", "failed", "booted"),
      forges: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      act: fc.constant("grant"),
      object: fc.nat(1),
      raises: fc.boolean(),
      hours: fc.constantFrom(1, 24, 167),
      all: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("revert"), to: fc.nat(20) }) },
  {
    weight: 4,
    arbitrary: fc.record({ act: fc.constant("wait"), ms: fc.constantFrom(100, 1_000, 20_000, 61_000, 601_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      act: fc.constant("step"),
      ms: fc.constantFrom(-86_400_000, -3_600_000, -30_000, 3_600_000, 86_400_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("crash"), plan }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("stop") }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("lose") }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("copy") }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("restore"), copy: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("forget"), machine: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("adopt"), hours: fc.constantFrom(0, 1) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("markFails"), fails: fc.boolean() }) },
);

/** Attacks whose parts must follow each other: chance alone finds them too rarely. */
const claimOf = (purpose: AskAct["purpose"]): Act => ({
  act: "ask",
  asks: [{ names: 3, listed: 0, purpose, mayClaim: true, address: 1 }],
  crashesMeanwhile: false,
});
const permit: Act = { act: "grant", object: 0, raises: true, hours: 24, all: true };
const longer: Act = { act: "grant", object: 0, raises: false, hours: 24, all: true };
const attacks: readonly (readonly Act[])[] = [
  // An older copy of the directory, from before the claim and from before the config.
  [permit, { act: "copy" }, claimOf("script"), { act: "restore", copy: 0 }, claimOf("script")],
  [permit, claimOf("script"), { act: "copy" }, claimOf("config"), { act: "restore", copy: 0 }, claimOf("script")],
  // The clock goes back while no davit runs.
  [
    permit,
    claimOf("script"),
    { act: "stop" },
    { act: "wait", ms: 61_000 },
    { act: "step", ms: -86_400_000 },
    claimOf("script"),
  ],
  [
    permit,
    { act: "step", ms: 90_000_000 },
    claimOf("script"),
    { act: "stop" },
    { act: "step", ms: -86_400_000 },
    longer,
    claimOf("script"),
  ],
  // The ledger is lost, and the objects stay.
  [permit, claimOf("script"), { act: "lose" }, claimOf("script")],
  [permit, claimOf("script"), { act: "forget", machine: 0 }, claimOf("script")],
  [permit, claimOf("script"), claimOf("config"), { act: "crash", plan: {} }, claimOf("script")],
];
const acts = fc
  .array(
    fc.oneof({ weight: 6, arbitrary: act.map((one) => [one]) }, { weight: 1, arbitrary: fc.constantFrom(...attacks) }),
    {
      minLength: 5,
      maxLength: 40,
    },
  )
  .map((parts) => parts.flat());

// Another seed for each run would fail the work of others. With more runs, chance decides.
const runs = Number(process.env.DAVIT_TEST_RUNS ?? 80);
const seed = Number(process.env.DAVIT_TEST_SEED ?? (runs === 80 ? 1 : randomInt(1_000_000)));

it.each([true, false])(
  "no machine is served more installs than objects grant (with a mark outside the store: %s)",
  async (hasMark) => {
    const seen = { granted: 0, repeated: 0, disk: 0, refused: 0, late: 0, crashed: 0, ledgers: 0 };
    await fc.assert(
      fc.asyncProperty(acts, fc.nat(1_000_000), async (each, diskSeed) => {
        const world = new InstallWorld(diskSeed, hasMark);
        await world.perform(each);
        for (const key of ["granted", "repeated", "disk", "refused", "late", "crashed"] as const)
          seen[key] += world.seen[key];
        seen.ledgers += world.seen.ledgers.size;
        expect(world.broken).toBeUndefined();
      }),
      { numRuns: runs, seed, interruptAfterTimeLimit: 240_000 },
    );
    process.stdout.write(`seed ${seed}, ${runs} runs: ${JSON.stringify(seen)}\n`);
    // It tried what it is for.
    expect(Math.min(seen.granted, seen.repeated, seen.disk, seen.late, seen.crashed)).toBeGreaterThan(0);
  },
  300_000,
);

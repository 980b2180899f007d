/** Commands over few paths, so that they meet, and with any text. */

import fc from "fast-check";
import type {
  Command,
  ExpireCommand,
  ExtendCommand,
  SingleCommand,
  Submission,
} from "../../src/store/command/command.ts";
import { type StorePath, storePath } from "../../src/store/core/node.ts";

const anyPath: fc.Arbitrary<StorePath> = fc
  .array(fc.constantFrom("a", "b", "_h", "__proto__"), { maxLength: 3 })
  .map((names) => storePath(`/${names.join("/")}`));

const anyText = fc.oneof(fc.constantFrom("", "x", "y"), fc.string({ unit: "binary" }));

const anyExpected = fc.record(
  { value: fc.constantFrom("x", "y"), index: fc.bigInt({ min: 0n, max: 8n }) },
  { requiredKeys: [] },
);

const created = { path: anyPath, value: anyText, ttlSeconds: fc.constantFrom(0, 1, 3, 2 ** 40) };
const written = { ...created, refresh: fc.boolean() };

const anySingle: fc.Arbitrary<SingleCommand> = fc.oneof(
  fc.record({ kind: fc.constant("set"), dir: fc.boolean(), ...written }, { requiredKeys: ["kind", "path", "value"] }),
  fc.record(
    { kind: fc.constantFrom("create", "createInOrder"), dir: fc.boolean(), ...created },
    { requiredKeys: ["kind", "path", "value"] },
  ),
  fc.record({ kind: fc.constant("update"), ...written }, { requiredKeys: ["kind", "path", "value"] }),
  fc.record(
    { kind: fc.constant("compareAndSwap"), expected: anyExpected, ...written },
    { requiredKeys: ["kind", "expected", "path", "value"] },
  ),
  fc.record(
    { kind: fc.constant("delete"), path: anyPath, dir: fc.boolean(), recursive: fc.boolean() },
    { requiredKeys: ["kind", "path"] },
  ),
  fc.record({ kind: fc.constant("compareAndDelete"), path: anyPath, expected: anyExpected }),
);

// Fits what was set with a ttl at time 0.
const anyExpire: fc.Arbitrary<ExpireCommand> = fc.record({
  kind: fc.constant("expire"),
  path: anyPath,
  expiresAtMs: fc.constantFrom(0, 1_000, 3_000),
});

const anyExtend: fc.Arbitrary<ExtendCommand> = fc.record({
  kind: fc.constant("extend"),
  path: anyPath,
  modifiedIndex: fc.integer({ min: 1, max: 8 }),
  leftMs: fc.constantFrom(1_500, 3_000),
});

/** The commands that may be in one batch. An `extend` never is. */
export function singlesOf(command: Command): readonly (SingleCommand | ExpireCommand)[] {
  if (command.kind === "extend") return [];
  return command.kind === "batch" ? command.commands : [command];
}

function orBatch<Each>(each: fc.Arbitrary<Each>) {
  const batch = fc.record({ kind: fc.constant("batch"), commands: fc.array(each, { minLength: 1, maxLength: 4 }) });
  return fc.oneof({ arbitrary: each, weight: 5 }, { arbitrary: batch, weight: 1 });
}

/** What may be asked of the store. */
export const anySubmission: fc.Arbitrary<Submission> = orBatch(anySingle);

/** What the log may hold. */
export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: orBatch(fc.oneof({ arbitrary: anySingle, weight: 4 }, { arbitrary: anyExpire, weight: 1 })), weight: 9 },
  { arbitrary: anyExtend, weight: 1 },
);

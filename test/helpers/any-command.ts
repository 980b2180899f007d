/** Commands over few paths, so that they meet, and with any text. */

import fc from "fast-check";
import type { Command, SingleCommand } from "../../src/store/command.ts";
import { type StorePath, storePath } from "../../src/store/node.ts";

const anyPath: fc.Arbitrary<StorePath> = fc
  .array(fc.constantFrom("a", "b", "_h", "__proto__"), { maxLength: 3 })
  .map((names) => storePath(`/${names.join("/")}`));

const anyText = fc.oneof(fc.constantFrom("", "x", "y"), fc.string({ unit: "binary" }));

const anyExpected = fc.record(
  { value: fc.constantFrom("x", "y"), index: fc.bigInt({ min: 0n, max: 8n }) },
  { requiredKeys: [] },
);

const anySingle: fc.Arbitrary<SingleCommand> = fc.oneof(
  fc.record(
    { kind: fc.constantFrom("set", "create", "createInOrder"), path: anyPath, value: anyText, dir: fc.boolean() },
    { requiredKeys: ["kind", "path", "value"] },
  ),
  fc.record({ kind: fc.constant("update"), path: anyPath, value: anyText }),
  fc.record({ kind: fc.constant("compareAndSwap"), path: anyPath, value: anyText, expected: anyExpected }),
  fc.record(
    { kind: fc.constant("delete"), path: anyPath, dir: fc.boolean(), recursive: fc.boolean() },
    { requiredKeys: ["kind", "path"] },
  ),
  fc.record({ kind: fc.constant("compareAndDelete"), path: anyPath, expected: anyExpected }),
);

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: anySingle, weight: 5 },
  {
    arbitrary: fc.record({ kind: fc.constant("batch"), commands: fc.array(anySingle, { minLength: 1, maxLength: 4 }) }),
    weight: 1,
  },
);

/** A parsed template as plain data: the parser makes it and the evaluator walks it. */

import { unreachable } from "../../lib/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import type { TextPosition } from "../core/text-position.ts";
import type { HelperName } from "./template-helpers.ts";

/** The statements of a whole template, or of the inside of a block. */
export type Program = readonly Statement[];

type Statement =
  | { readonly kind: "text"; readonly text: string; readonly at: TextPosition }
  | { readonly kind: "print"; readonly expression: TemplateExpression; readonly at: TextPosition }
  | Block;

export const blockNames = ["if", "unless", "each", "with"] as const;

export interface Block {
  readonly kind: "block";
  readonly name: (typeof blockNames)[number];
  readonly argument: TemplateExpression;
  /** True if the block says `includeZero=true`, as `{{#if count includeZero=true}}` does. Zero then counts as true. */
  readonly includeZero: boolean;
  /** The names that the block gives: `value` and `key` in `{{#each disks as |value key|}}`. */
  readonly names: readonly string[];
  readonly body: Program;
  readonly otherwise: Program;
}

export type TemplateExpression =
  | { readonly kind: "literal"; readonly value: JsonValue }
  | {
      readonly kind: "call";
      readonly helper: HelperName;
      readonly args: readonly TemplateExpression[];
      readonly at: TextPosition;
    }
  | Path;

/** A reference to a variable, such as `disk.path`: where the path begins, and the names of members after that. */
export interface Path {
  readonly kind: "path";
  readonly from: PathStart;
  readonly members: readonly string[];
  readonly at: TextPosition;
}

/** Where a path begins. `depth` is the number of `../` in the path. */
export type PathStart =
  | { readonly kind: "context"; readonly depth: number }
  | { readonly kind: "local"; readonly name: string }
  | { readonly kind: "root" }
  | { readonly kind: "loop"; readonly name: LoopName; readonly depth: number };

export const loopNames = ["index", "key", "first", "last"] as const;
export type LoopName = (typeof loopNames)[number];

/** Returns a path as people write it, such as `disk.path`. */
export function nameOf({ from, members }: Path): string {
  const name = members.join(".");
  switch (from.kind) {
    case "root":
      return ["@root", ...members].join(".");
    case "local":
      return [from.name, ...members].join(".");
    case "loop":
      return [`${"../".repeat(from.depth)}@${from.name}`, ...members].join(".");
    case "context":
      return `${"../".repeat(from.depth)}${name || "this"}`;
    default:
      return unreachable(from);
  }
}

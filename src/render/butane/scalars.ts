/**
 * Reads the scalars of a Butane document as their fields want them: `0644` is an octal number in `mode`, and `yes` is
 * true in `enabled`. So the rule against ambiguous scalars (`yaml-rules.ts`) is not needed here.
 */

import { isNode, isScalar, type Scalar } from "yaml";

/** True for an empty value, which counts as absent. */
export function isNothing(node: unknown): boolean {
  if (!isScalar(node)) return !isNode(node);
  return isPlain(node) && /^(?:~|null|Null|NULL)?$/.test(textOfScalar(node));
}

/** Returns the text of a scalar as the author wrote it: `1.10` is not `1.1`. */
export function textOfScalar({ source, value }: Scalar): string {
  return source ?? String(value ?? "");
}

/** Returns a whole number, which may be octal, hexadecimal or binary; undefined for any other scalar. */
export function integerOf(scalar: Scalar): number | undefined {
  const [, sign, digits = ""] = integer.exec(isPlain(scalar) ? textOfScalar(scalar).replaceAll("_", "") : "") ?? [];
  if (digits === "") return undefined;
  const number = /^0[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : Number(digits);
  if (!Number.isSafeInteger(number)) return undefined;
  return sign === "-" ? -number : number;
}

const integer = /^([-+]?)(0|[1-9]\d*|0o?[0-7]+|0x[\da-f]+|0b[01]+)$/i;

/** Returns the value of a boolean; undefined for any other scalar. */
export function booleanOf(scalar: Scalar): boolean | undefined {
  const text = isPlain(scalar) ? textOfScalar(scalar) : "";
  if (yes.test(text)) return true;
  return no.test(text) ? false : undefined;
}

// YAML 1.1 has all of these (yaml.org/type/bool.html).
const yes = /^(?:true|True|TRUE|y|Y|yes|Yes|YES|on|On|ON)$/;
const no = /^(?:false|False|FALSE|n|N|no|No|NO|off|Off|OFF)$/;

/** False for a scalar in quotes, a block, and one with a tag: its author wants a text. */
function isPlain({ type, tag }: Scalar): boolean {
  return type === "PLAIN" && tag === undefined;
}

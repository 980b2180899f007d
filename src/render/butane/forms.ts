/** The forms of values that Ignition demands (coreos.github.io/ignition/specs), by the last fields of their paths. */

import type { JsonValue } from "../../model/json.ts";
import type { RenderReason } from "../core/render-error.ts";

interface ValueForm {
  readonly reason: RenderReason;
  /** @param minor of the version of Ignition's specification 3. */
  readonly allows: (value: JsonValue, minor: number) => boolean;
}

const guid = pattern("butaneGuid", /^(?:[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12})?$/i);
const absolute = pattern("butanePath", /^(?:\/|(?:\/(?!\.{1,2}(?:\/|$))[^/]+)+)?$/);
const web = pattern("butaneUrl", /^https?:/i);
const unitTypes = "service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope";
const raidLevels = "linear|stripe|mirror|raid[014-6]|raid10|[014-6]|10";

const forms: ReadonlyMap<string, ValueForm> = new Map<string, ValueForm>([
  ["units.name", pattern("butaneUnitName", new RegExp(`\\.(?:${unitTypes})$`))],
  ["dropins.name", pattern("butaneUnitName", /\.conf$/)],
  ["raid.level", pattern("butaneChoice", new RegExp(`^(?:${raidLevels})$`))],
  ["filesystems.format", { reason: "butaneChoice", allows: isFormat }],
  ["filesystems.path", absolute],
  ["partitions.guid", guid],
  ["partitions.typeGuid", guid],
  [
    "partitions.label",
    { reason: "butaneLabel", allows: (value) => isLabel(value, 36) && !String(value).includes(":") },
  ],
  ["luks.label", { reason: "butaneLabel", allows: (value) => isLabel(value, 47) }],
  ["luks.name", pattern("butaneLabel", /^[^/]*$/)],
  ["proxy.httpProxy", web],
  ["proxy.httpsProxy", web],
  ["tang.url", web],
  ["verification.hash", { reason: "butaneHash", allows: isHash }],
]);

/** Forms of a field wherever it is. */
const everywhere: ReadonlyMap<string, ValueForm> = new Map<string, ValueForm>([
  ["compression", pattern("butaneChoice", /^(?:gzip)?$/)],
  ["mode", { reason: "butaneMode", allows: (value) => Number(value) >= 0 && Number(value) <= 0o7777 }],
]);

/** Returns the reason to refuse a value; undefined if Ignition allows its form. */
export function faultOfForm(value: JsonValue, path: readonly string[], minor: number): RenderReason | undefined {
  const form = forms.get(path.slice(-2).join(".")) ?? everywhere.get(path.at(-1) ?? "");
  return form === undefined || form.allows(value, minor) ? undefined : form.reason;
}

/** Returns true for an absolute path without steps that lead nowhere, and for an empty text. */
export function isPath(value: JsonValue): boolean {
  return absolute.allows(value, 0);
}

function pattern(reason: RenderReason, form: RegExp): ValueForm {
  return { reason, allows: (value) => form.test(String(value)) };
}

function isFormat(value: JsonValue, minor: number): boolean {
  return /^(?:ext4|btrfs|xfs|vfat|swap)?$/.test(String(value)) || (value === "none" && minor >= 3);
}

function isLabel(value: JsonValue, maxBytes: number): boolean {
  return Buffer.byteLength(String(value)) <= maxBytes;
}

function isHash(value: JsonValue, minor: number): boolean {
  const [, bits, digits = ""] = /^sha(512|256)-([\da-f]*)$/i.exec(String(value)) ?? [];
  return digits.length * 4 === Number(bits) && (bits === "512" || minor >= 1);
}

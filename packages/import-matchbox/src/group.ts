/**
 * Converts a matchbox group to a Group. If davit refuses a label or the metadata, the Group is written without it and
 * with `hold: true`. Without a label, the Group may match more machines. `hold` makes all of its machines wait, so
 * that none of them boots something wrong.
 */

import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/model/json.ts";
import { normalizeMac } from "../../../src/model/labels/hardware-ids.ts";
import { apiVersion } from "../../../src/model/objects/source.ts";
import { isList } from "../../../src/render/core/values.ts";
import { chainOnlyLabels } from "../../../src/render/ipxe/ipxe.ts";
import type { Admit } from "./admit.ts";
import { type ImportFindings, shown } from "./findings.ts";
import { hasUrl } from "./handlebars-text.ts";
import { JsonFields, type JsonFile, UnusableFile } from "./json-fields.ts";
import { displayName, type ProfileContext } from "./profile.ts";

export interface ReadGroup {
  readonly file: JsonFile;
  readonly fields: JsonFields;
  /** The name of the group's profile; empty if the group names none. */
  readonly profile: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly metadata: JsonObject;
}

const fieldNames = ["id", "name", "profile", "selector", "metadata"];
const formerNames = { requirements: "before 0.3.0: name it selector" };

/** Reads a group. Returns undefined, and reports why, for a file that matchbox does not load either. */
export function readGroup(file: JsonFile, findings: ImportFindings): ReadGroup | undefined {
  try {
    const fields = JsonFields.of(file, findings, fieldNames, formerNames);
    fields.text("id");
    fields.text("name");
    const profile = fields.text("profile");
    const selector = fields.textObject("selector");
    for (const [label, value] of Object.entries(selector)) {
      if (label.toLowerCase() !== "mac" || isGoMac(value)) continue;
      fields.fail("is no MAC address, matchbox does not load the file: mend it", "selector", label);
    }
    return { file, fields, profile, selector, metadata: fields.object("metadata") };
  } catch (error) {
    if (!(error instanceof UnusableFile)) throw error;
    return undefined;
  }
}

/** True for a MAC address that Go can read. Unlike davit, Go needs separators. */
function isGoMac(text: string): boolean {
  return normalizeMac(text) !== undefined && /[:.-]/.test(text);
}

interface GroupNames {
  readonly name: string;
  /** The Profile's name. */
  readonly profile: string;
}

/** Returns the Group as a Kubernetes object. */
export function groupObject(group: ReadGroup, { name, profile }: GroupNames, context: ProfileContext): JsonObject {
  const { file, fields, metadata } = group;
  const { findings, admit } = context;
  if (fields.text("id") !== "" && `groups/${fields.text("id")}.json` !== file.path) {
    findings.warn(file.path, `is named by its file, not by its id ${shown(fields.text("id"))}`, fields.at("id"));
  }
  const spec = {
    ...displayName(fields, file.path, context),
    profileRef: { name: profile },
    ...selecting(group, context),
  };
  const problem = metadataProblem(metadata, admit);
  if (problem !== undefined) {
    findings.error(file.path, `the metadata are not taken: ${problem}`, fields.at("metadata"));
    return groupOf(name, { ...spec, hold: true });
  }
  warnOfMetadata(group, context);
  return groupOf(name, { ...spec, ...(Object.keys(metadata).length > 0 && { metadata }) });
}

function groupOf(name: string, spec: JsonObject): JsonObject {
  return { apiVersion, kind: "Group", metadata: { name }, spec };
}

// The CRD's limit.
const maxLabels = 16;

function selecting({ file, fields, selector }: ReadGroup, { findings, admit }: ProfileContext): JsonObject {
  const labels = Object.entries(selector);
  if (labels.length === 0) return { matchAll: true };
  const good = labels.filter(([label, value]) => {
    const problem = labelProblem(label, value, admit);
    if (problem !== undefined) {
      findings.error(file.path, `the label ${shown(label)} is not taken: ${problem}`, fields.at("selector", label));
    }
    if (chainOnlyLabels.has(label)) {
      const text = `machines send ${label} only after /chain.ipxe, not after /boot.ipxe: let DHCP name /chain.ipxe`;
      findings.warn(file.path, text, fields.at("selector", label));
    }
    if (label === "uuid" && value !== value.toLowerCase()) {
      const text = "davit compares uuid in any letter case, matchbox never matched this with what iPXE sends";
      findings.warn(file.path, text, fields.at("selector", label));
    }
    return problem === undefined;
  });
  if (good.length > maxLabels) {
    findings.error(file.path, `the selector is not taken: it has more than ${maxLabels} labels`, fields.at("selector"));
  }
  // If davit accepts none of the labels, the selector stays unchanged, and davit will refuse the Group. It will also
  // refuse a Group with too many labels.
  if (good.length === 0) return { selector: { matchLabels: selector } };
  const matchLabels = Object.fromEntries(good);
  return { selector: { matchLabels }, ...(good.length < labels.length && { hold: true }) };
}

function labelProblem(label: string, value: string, admit: Admit): string | undefined {
  if (value === "") {
    return "it has no value, by which matchbox means machines that do not send it: write one, or remove it";
  }
  const selector = { matchLabels: { [label]: value } };
  return admit(groupOf("sample", { profileRef: { name: "sample" }, selector }))[0]?.text;
}

// Less than davit's own limit, which includes the levels above the metadata.
const maxDepth = 90;

function metadataProblem(metadata: JsonObject, admit: Admit): string | undefined {
  if (isDeeperThan(maxDepth, metadata)) return `they are nested deeper than ${maxDepth} levels: write them flatter`;
  if (leavesIn(metadata).some((leaf) => typeof leaf === "number" && Math.abs(leaf) > Number.MAX_SAFE_INTEGER)) {
    return "they have a number beyond 2^53, which loses digits: quote it";
  }
  return admit(groupOf("sample", { profileRef: { name: "sample" }, matchAll: true, metadata }))[0]?.text;
}

function isDeeperThan(levels: number, value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((child) => isDeeperThan(levels - 1, child));
}

function warnOfMetadata({ file, fields, metadata }: ReadGroup, { findings, replaceUrl }: ProfileContext): void {
  if (Object.hasOwn(metadata, "davit")) {
    const text = 'the name "davit" is davit\'s own in templates: rename it';
    findings.warn(file.path, text, fields.at("metadata", "davit"));
  }
  if (replaceUrl === undefined) return;
  for (const [name, value] of Object.entries(metadata)) {
    if (!leavesIn(value).some((leaf) => typeof leaf === "string" && hasUrl(leaf, replaceUrl))) continue;
    const text = `${shown(name)} has the matchbox's URL, and metadata are no template: write davit's`;
    findings.warn(file.path, text, fields.at("metadata", name));
  }
}

/** Returns every value that is neither a list nor an object. */
function leavesIn(value: JsonValue): readonly JsonValue[] {
  if (isList(value)) return value.flatMap(leavesIn);
  return isJsonObject(value) ? Object.values(value).flatMap(leavesIn) : [value];
}

/**
 * What davit knows of a machine's newest request, and how followers hand it to their writer, over the store's listener:
 *
 *   POST /davit/v1/sightings   {"sightings": [...]}; the answer is {"taken": N}
 *
 * Sightings only show: no decision reads them. So a follower, or whoever has its credentials, can open nothing by them.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "./json.ts";

export const sightingsPath = "/davit/v1/sightings";

/** An answered request of a machine. */
export interface MachineSighting {
  /** Of the request, as `identitiesOf` returns them. A request without any is no sighting. */
  readonly identities: readonly string[];
  /** Unix milliseconds. */
  readonly atMs: number;
  readonly address?: string;
  /** `namespace/name`; absent if no Group took the machine. */
  readonly group?: string;
  readonly profile?: string;
  /** What the machine asked for, such as `ipxe`, `ignition` or `report`. */
  readonly stage: string;
  /** `served`, or why the machine did not get it, such as `unapproved`. */
  readonly result: string;
  readonly script?: SightedScript;
}

/** The last boot script that a machine got. */
export interface SightedScript {
  /** In 64 hexadecimal digits. */
  readonly sha256: string;
  /** When it was rendered, in Unix milliseconds. */
  readonly atMs: number;
}

/** Returns a sighting with the script that the machine got before it, unless it has one of its own. */
export function withScriptOf(sighting: MachineSighting, earlier: MachineSighting | undefined): MachineSighting {
  if (sighting.script !== undefined || earlier?.script === undefined) return sighting;
  return { ...sighting, script: earlier.script };
}

/** Returns a sighting with another script, if that was rendered later. Followers hand on their scripts late. */
export function withLaterScript(sighting: MachineSighting, script: SightedScript | undefined): MachineSighting {
  const { atMs = Number.NEGATIVE_INFINITY } = sighting.script ?? {};
  return script === undefined || script.atMs <= atMs ? sighting : { ...sighting, script };
}

/** False for a request with a uuid or mac if the Machine lists only others of this kind. */
export function mayBeSightingOf(
  { identities }: Pick<MachineSighting, "identities">,
  listed: readonly string[],
): boolean {
  const kinds = new Set(listed.map(kindOf));
  return identities.every((identity) => listed.includes(identity) || !kinds.has(kindOf(identity)));
}

function kindOf(identity: string): string {
  return identity.slice(0, identity.indexOf("/"));
}

/** The most sightings of one request to the writer. */
export const maxSightings = 256;
/** A sighting is older only if a clock is wrong. */
const maxAgeMs = 24 * 60 * 60_000;

/** Returns a body for `sightingsPath`. It has ages, because the clocks of two computers differ. @param nowMs Unix. */
export function encodeSightings(sightings: readonly MachineSighting[], nowMs: number): object {
  const agoMs = (atMs: number) => Math.max(0, nowMs - atMs);
  return {
    sightings: sightings.map(({ atMs, script, ...sighting }) => ({
      ...sighting,
      agoMs: agoMs(atMs),
      ...(script && { rendered: script.sha256, renderedAgoMs: agoMs(script.atMs) }),
    })),
  };
}

/**
 * Reads a body, and leaves out sightings that a status could not show. @param nowMs Unix milliseconds.
 * @returns undefined for any other text, and for too many sightings.
 */
export function decodeSightings(text: string, nowMs: number): readonly MachineSighting[] | undefined {
  const sightings = parseJsonObject(text)?.sightings;
  if (!Array.isArray(sightings) || sightings.length > maxSightings) return undefined;
  return sightings.flatMap((value) => (isJsonObject(value) ? (sightingIn(value, nowMs) ?? []) : []));
}

function sightingIn(
  { identities, agoMs, renderedAgoMs, ...texts }: JsonObject,
  nowMs: number,
): MachineSighting | undefined {
  const stage = textIn("stage", texts);
  const result = textIn("result", texts);
  if (!areIdentities(identities) || typeof agoMs !== "number" || stage === undefined || result === undefined) return;
  const more = (["address", "group", "profile"] as const).map((name) => [name, textIn(name, texts)]);
  const known = Object.fromEntries(more.filter(([, text]) => text !== undefined));
  const at = (ago: number) => nowMs - Math.min(Math.max(ago, 0), maxAgeMs);
  const sha256 = textIn("rendered", texts);
  const hasScript = sha256 !== undefined && typeof renderedAgoMs === "number";
  const script = hasScript ? { script: { sha256, atMs: at(renderedAgoMs) } } : {};
  return { identities, atMs: at(agoMs), stage, result, ...known, ...script };
}

const objectName = /^[a-z\d-]{1,63}\/[a-z\d.-]{1,253}$/;
/** What these texts look like. */
export const sightingForms = {
  stage: /^[a-z\d.-]{1,64}$/,
  result: /^[A-Za-z]{1,64}$/,
  address: /^[\da-f.:]{2,45}(%[\w.:@-]{1,16})?$/i,
  group: objectName,
  profile: objectName,
  rendered: /^[\da-f]{64}$/,
};

function textIn(name: keyof typeof sightingForms, value: JsonObject): string | undefined {
  const text = value[name];
  return typeof text === "string" && sightingForms[name].test(text) ? text : undefined;
}

function areIdentities(value: JsonValue | undefined): value is string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 2) return false;
  return value.every((each) => typeof each === "string" && /^(uuid|mac)\/[\da-f:-]{1,64}$/.test(each));
}

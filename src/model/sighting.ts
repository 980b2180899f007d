/**
 * What davit shows of a machine's newest request. Sightings come from the history (`records/history`), and followers
 * hand theirs on. Sightings only show: no decision reads them. So a follower, or whoever has its credentials, can open
 * nothing by them.
 */

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
interface SightedScript {
  /** In 64 hexadecimal digits. */
  readonly sha256: string;
  /** When it was rendered, in Unix milliseconds. */
  readonly atMs: number;
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

const objectName = /^[a-z\d-]{1,63}\/[a-z\d.-]{1,253}$/;
/** What the texts of followers look like. */
export const sightingForms = {
  result: /^[A-Za-z]{1,64}$/,
  address: /^[\da-f.:]{2,45}(%[\w.:@-]{1,16})?$/i,
  group: objectName,
  profile: objectName,
  script: /^[\da-f]{64}$/,
};

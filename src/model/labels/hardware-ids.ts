/** The identities of boards and network cards: MAC addresses and UUIDs, in one form each. */

/** A MAC address in lower case with colons: 6, 8 (EUI-64) or 20 (InfiniBand) bytes. */
type MacAddress = string & { readonly brand: "MacAddress" };

/** Reads a MAC address in any form of `macForms`; undefined for any other text. */
export function normalizeMac(text: string): MacAddress | undefined {
  if (ipxeForm.test(text)) return withColons(text) as MacAddress;
  if (!macForms.test(text)) return undefined;
  const lower = text.toLowerCase();
  // These forms only need other separators.
  if (lower[2] === "-" || lower[2] === ":") return lower.replaceAll("-", ":") as MacAddress;
  return lower.replaceAll(".", "").replaceAll(/..(?=.)/g, "$&:") as MacAddress;
}

// 6, 8 or 20 bytes, separated by colons or by hyphens, or in groups of four digits with dots between (10 groups for
// InfiniBand). Also 12 or 16 digits without separators. An address has only one kind of separator.
const macForms = new RegExp(
  `^(?:${[
    ...[6, 8, 20].flatMap((bytes) => [":", "-"].map((mark) => `[0-9a-f]{2}(?:${mark}[0-9a-f]{2}){${bytes - 1}}`)),
    ...[6, 8, 20].map((bytes) => `[0-9a-f]{4}(?:\\.[0-9a-f]{4}){${bytes / 2 - 1}}`),
    "[0-9a-f]{12}",
    "[0-9a-f]{16}",
  ].join("|")})$`,
  "i",
);

/** The form in which iPXE sends a MAC address. */
const ipxeForm = /^[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}$/;

/** Every request runs this. `replaceAll` takes twice as long, and V8 keeps its result in pieces. */
function withColons(mac: string): string {
  const bytes = [mac.slice(0, 2), mac.slice(3, 5), mac.slice(6, 8), mac.slice(9, 11), mac.slice(12, 14), mac.slice(15)];
  return bytes.join(":");
}

/** True for a text that begins a MAC address in lower case with colons, as labels have it. */
export function isMacPrefix(text: string): boolean {
  return normalizeMac(text + wholeMac.slice(text.length)) === text + wholeMac.slice(text.length);
}

const wholeMac = Array.from({ length: 20 }, () => "00").join(":");

/** True for a UUID, in any letter case. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** True for a text that begins a UUID. */
export function isUuidPrefix(text: string): boolean {
  return isUuid(text + wholeUuid.slice(text.length));
}

const wholeUuid = "00000000-0000-0000-0000-000000000000";

/**
 * UUIDs that many boards share, because their vendors set none: firmware of AMI and Insyde in both byte orders, Dell
 * boards without a service tag, and samples. The list is short on purpose: it has only UUIDs that FOG (fogproject)
 * refuses, or that several inventory tools refuse.
 */
const sharedUuids: ReadonlySet<string> = new Set([
  "00000000-0000-0000-0000-000000000000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
  "03000200-0400-0500-0006-000700080009",
  "00020003-0004-0005-0006-000700080009",
  "12345678-1234-5678-90ab-cddeefaabbcc",
  "78563412-3412-7856-90ab-cddeefaabbcc",
  "00010203-0405-0607-0809-0a0b0c0d0e0f",
  "4c4c4544-0000-2010-8020-80c04f202020",
  "fefefefe-fefe-fefe-fefe-fefefefefefe",
  "ffffff00-ffff-ffff-ffff-ffffffffffff",
]);

/** True for a UUID in lower case that can identify one board: not all zeros or ones, and no vendor's placeholder. */
export function isOwnUuid(uuid: string): boolean {
  // Every request runs this. The check of the first digit is fast, and most UUIDs then need no look-up in the set.
  return lowerUuid.test(uuid) && !(sharedStarts.has(uuid.charCodeAt(0)) && sharedUuids.has(uuid));
}

// Without repeated groups and without upper case, the pattern takes half as long as that of `isUuid`.
const lowerUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const sharedStarts: ReadonlySet<number> = new Set([...sharedUuids].map((uuid) => uuid.charCodeAt(0)));

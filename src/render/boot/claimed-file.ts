/**
 * Names a claim in the URL of the last file that a boot script loads, if it is one of davit's assets. A machine that
 * has read this file has all that the script loads. The claim identifies the machine. An address does not, because
 * several machines may share one.
 */

import { parseInitrd } from "./initrd.ts";

/** The name of the claim in the query of an asset's URL. */
export const claimParameter = "claim";

/**
 * Returns the files of a boot section, with the claim in the URL of the last one if it is in davit's assets.
 * @param files the kernel and the initrds, as `renderBoot` returns them.
 * @param davitUrl see `MakerScope`.
 */
export function withClaim(files: readonly string[], claim: string, davitUrl: string): readonly string[] {
  const last = files.at(-1);
  const location = last && assetOf(last, davitUrl);
  return last === undefined || location === undefined ? files : [...files.slice(0, -1), named(last, location, claim)];
}

/** As `withClaim`, for the script that `renderIpxe` has made of these files. */
export function scriptWithClaim(script: string, claim: string, davitUrl: string): string {
  const parts = script.split("\n").map((line) => /^((?:kernel |initrd )?)(.*)$/s.exec(line)?.slice(1) ?? ["", line]);
  const isFile = ([command]: readonly string[]) => command !== "";
  const files = withClaim(
    parts.filter(isFile).map(([, text = ""]) => text),
    claim,
    davitUrl,
  ).values();
  return parts.map((part) => (isFile(part) ? `${part[0]}${files.next().value}` : part[1])).join("\n");
}

/** The location of a file, if it is one of davit's assets. A fragment would end the query. */
function assetOf(file: string, davitUrl: string): string | undefined {
  const { location } = parseInitrd(file);
  const isAsset = location.startsWith("/assets/") || location.startsWith(`${davitUrl}/assets/`);
  return isAsset && !location.includes("#") ? location : undefined;
}

function named(file: string, location: string, claim: string): string {
  const query = `${location.includes("?") ? "&" : "?"}${claimParameter}=${claim}`;
  // A name before the location, or arguments behind it, may contain the same text.
  const name = /^\s*(?:--name\s+\S+\s+)?/.exec(file)?.[0] ?? "";
  const end = file.indexOf(location, name.length) + location.length;
  return `${file.slice(0, end)}${query}${file.slice(end)}`;
}

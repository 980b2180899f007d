/** Finds the files below davit's own `/assets/` that a boot script names. */

/** A file that a script names. */
export interface ScriptAsset {
  /** As a client asks for it: `/assets/`, the rest of the path, and the query. */
  readonly location: string;
  /** True for a URL inside of an argument, such as `inst.repo=URL`. It may name a directory of files. */
  readonly mayBeDirectory: boolean;
}

/**
 * Returns the files of davit that a script names: words that are a location, and URLs of davit inside of words. It
 * ignores comments, and other servers. It leaves out a location with a variable of the firmware, because only the
 * firmware knows the value.
 * @param text an iPXE script, a GRUB config, or the texts of a boot section, one a line.
 * @param davitUrls davit's own URLs, such as `http://192.0.2.1:8080`.
 */
export function assetsIn(text: string, davitUrls: readonly string[]): readonly ScriptAsset[] {
  const lines = text.split("\n").filter((line) => !/^\s*#/.test(line));
  const words = lines.flatMap((line) => line.split(/[\s"']+/)).map((word) => word.replace(/[;|&]+$/, ""));
  return words.flatMap((word) => assetsOfWord(word, davitUrls));
}

/**
 * Returns a location below davit's `/assets/` as a path with its query; undefined for any other location, and for one
 * with a variable of the firmware.
 */
export function ownAsset(location: string, davitUrls: readonly string[]): string | undefined {
  const url = davitUrls.find((each) => location.startsWith(`${each}/`)) ?? "";
  const own = location.slice(url.length);
  return own.startsWith(prefix) && !own.includes("$") ? own.replace(/[#\s].*$/s, "") : undefined;
}

const prefix = "/assets/";

function assetsOfWord(word: string, davitUrls: readonly string[]): readonly ScriptAsset[] {
  const location = ownAsset(withoutDevice(word, davitUrls), davitUrls);
  if (location !== undefined) return [{ location, mayBeDirectory: false }];
  const found = davitUrls.flatMap((url) => word.split(`${url}${prefix}`).slice(1));
  return found.flatMap((rest) => {
    const inside = ownAsset(`${prefix}${rest.replace(/[,;|<>()\\].*$/s, "")}`, []);
    return inside === undefined ? [] : [{ location: inside, mayBeDirectory: true }];
  });
}

/** Removes GRUB's device, such as `(http,192.0.2.1:8080)`, if it is davit. `(http)` is the server that GRUB asked. */
function withoutDevice(word: string, davitUrls: readonly string[]): string {
  const [, authority, path] = /^\(http(?:[,;]([^)]*))?\)(.*)$/s.exec(word) ?? [];
  if (path === undefined) return word;
  return authority === undefined || davitUrls.includes(`http://${authority}`) ? path : word;
}

/** Checks the URLs from which Ignition reads files and configs. */

interface Scheme {
  /** The first minor version of specification 3 that has it. */
  readonly since: number;
  /** Returns the mistake in a URL of this scheme. */
  readonly mistake?: (source: string) => string | undefined;
}

const schemes: ReadonlyMap<string, Scheme> = new Map<string, Scheme>([
  ["data", { since: 0, mistake: dataMistake }],
  ["http", { since: 0 }],
  ["https", { since: 0 }],
  ["tftp", { since: 0 }],
  ["s3", { since: 0 }],
  ["arn", { since: 4, mistake: arnMistake }],
  ["gs", { since: 2 }],
]);

/**
 * Checks the URL of a `source` as Ignition does (its config/v3_6/types/url.go, and the Go library dataurl). Returns the
 * mistake; undefined for none, and for an empty text, which counts as absent.
 * @param minor of the config's version of specification 3.
 * @returns a text that shows nothing of the URL, which may be secret.
 */
export function sourceMistake(source: string, minor: number): string | undefined {
  if (source === "") return undefined;
  const [, name = ""] = /^([a-z][a-z\d+.-]*):/i.exec(source) ?? [];
  const scheme = schemes.get(name.toLowerCase());
  if (scheme === undefined) return "must begin with data:, http:, https:, tftp:, s3:, arn: or gs:";
  if (scheme.since > minor) return `has the scheme ${name.toLowerCase()}:, which came with 3.${scheme.since}.0`;
  // Go decodes neither the query of a URL nor what follows a scheme without slashes.
  const decoded = scheme.mistake === dataMistake ? "" : source.replace(/\?[^#]*/s, "");
  if (badEscape.test(decoded)) return needsEscape;
  if (/\p{Cc}/u.test(source)) return "has a control character: use urlEncode";
  if (/^[a-z]+:\/\/[^/?#]*\s/i.test(source)) return "has a blank in its host";
  return scheme.mistake?.(source);
}

const badEscape = /%(?![\da-f]{2})/i;
const needsEscape = "has a % without two hexadecimal digits: use urlEncode";

function dataMistake(source: string): string | undefined {
  if (!source.startsWith("data:")) return "must begin with data: in lower case";
  if (!source.includes(",")) return "is a data: URL without a comma";
  const [head = "", base64] = dataHead.exec(source) ?? [];
  if (head === "") return "is a data: URL whose media type or parameters are wrong";
  const data = source.slice(head.length);
  if (base64 !== undefined) return isBase64(data) ? undefined : "is a data: URL whose base64 is wrong: use base64";
  if (badEscape.test(data)) return needsEscape;
  const isPlain = /^[\w!$%&'()*+,./:;=?@~-]*$/.test(data);
  return isPlain ? undefined : "is a data: URL with a blank, # or another unescaped character: use urlEncode";
}

// RFC 2397, with the types of RFC 2045 that the library knows.
const token = String.raw`[!#$%&'*+.^_\x60{|}~\w-]`;
const mediaType = `(?:(?:text|image|audio|video|application|message|multipart)${token}*|x-${token}*)/${token}*`;
const parameter = `;${token}+=(?:${token}+|"(?:[^"\\\\]|\\\\.)*")`;
const dataHead = new RegExp(`^data:(?:${mediaType})?(?:${parameter})*(;base64)?,`, "i");

function isBase64(data: string): boolean {
  return data.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(data);
}

// The library of AWS wants five colons, and Ignition a key behind the bucket or the access point.
function arnMistake(source: string): string | undefined {
  const path = source.replace(/[?#].*/s, "");
  const [, resource = ""] = /^arn:[^:]+:s3:[^:]*:[^:]*:(.+)$/is.exec(path) ?? [];
  const least = resource.startsWith("accesspoint/") ? 3 : 2;
  return resource.split("/").length < least ? "is no ARN of an object in S3" : undefined;
}

/**
 * Finds texts that a config has in encoded form: base64, gzip in base64, and percent escapes. Only the machine decodes
 * them.
 */

import { constants, gunzipSync } from "node:zlib";

interface HiddenText {
  readonly text: string;
  /** Where its encoded form begins, in UTF-16 units. */
  readonly offset: number;
}

const maxGzipBytes = 16 * 1024 * 1024;
// For example a systemd unit in gzip in base64 in an Ignition config.
const maxDepth = 3;

interface HiddenTextLimits {
  /** How often a text is decoded; 1 finds no texts in hidden texts. */
  readonly depth?: number;
  /** The most bytes of one gzip file. A larger one counts as no text. */
  readonly gzipBytes?: number;
  /** How many gzip files of the source are read, from the first one on. */
  readonly gzipFiles?: number;
}

/** Returns the decoded texts, also from inside of decoded texts. Most of them are ordinary words and mean nothing. */
export function hiddenTexts(source: string, limits: HiddenTextLimits = {}): readonly HiddenText[] {
  const { depth = maxDepth } = limits;
  const forms = [...encodedRuns(source, limits), ...escapedRuns(source)];
  return forms.flatMap(({ text, offset }) => {
    const inner = depth > 1 ? hiddenTexts(text, { ...limits, depth: depth - 1 }) : [];
    return [{ text, offset }, ...inner.map((hidden) => ({ ...hidden, offset }))];
  });
}

function encodedRuns(source: string, limits: HiddenTextLimits): readonly HiddenText[] {
  const { gzipBytes = maxGzipBytes, gzipFiles = Number.POSITIVE_INFINITY } = limits;
  let files = 0;
  return [...source.matchAll(/[A-Za-z0-9+/_-]{20,}(?:[ \t\r]*\n[ \t]*[A-Za-z0-9+/_-]{20,}={0,2}(?=\s|$))*/g)].flatMap(
    ({ 0: run, index: offset }) => {
      // Shorter words have no URL and no command.
      const bytes = Buffer.from(run.replaceAll(/\s+/g, ""), "base64");
      if (isGzip(bytes)) files++;
      const text = files > gzipFiles ? undefined : decoded(bytes, gzipBytes);
      return text === undefined ? [] : [{ text, offset }];
    },
  );
}

function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

function decoded(bytes: Buffer, gzipBytes: number): string | undefined {
  if (!isGzip(bytes)) return bytes.toString("latin1");
  try {
    // Reads a file that was cut off as far as it goes.
    return gunzipSync(bytes, {
      maxOutputLength: gzipBytes,
      finishFlush: constants.Z_SYNC_FLUSH,
    }).toString("latin1");
  } catch {
    // No gzip after all, or larger than any config.
    return undefined;
  }
}

function escapedRuns(source: string): readonly HiddenText[] {
  return [...source.matchAll(/[^\s"']+/g)].flatMap(({ 0: run, index: offset }) => {
    if (!/%[0-9a-f]{2}/i.test(run)) return [];
    const text = run.replaceAll(/%([0-9a-f]{2})/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
    return [{ text, offset }];
  });
}

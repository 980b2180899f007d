/**
 * Finds texts that a config has in encoded form: base64, gzip in base64, and percent escapes. matchbox serves them
 * encoded, and only the machine decodes them.
 */

import { constants, gunzipSync } from "node:zlib";

export interface HiddenText {
  readonly text: string;
  /** Where its encoded form begins, in UTF-16 units. */
  readonly offset: number;
}

const maxDecodedBytes = 16 * 1024 * 1024;
// For example a systemd unit in gzip in base64 in an Ignition config.
const maxDepth = 3;

/** Returns the decoded texts, also from inside of decoded texts. Most of them are ordinary words and mean nothing. */
export function hiddenTexts(source: string, depth = maxDepth): readonly HiddenText[] {
  const forms = [...encodedRuns(source), ...escapedRuns(source)];
  return forms.flatMap(({ text, offset }) => {
    const inner = depth > 1 ? hiddenTexts(text, depth - 1) : [];
    return [{ text, offset }, ...inner.map((hidden) => ({ ...hidden, offset }))];
  });
}

function encodedRuns(source: string): readonly HiddenText[] {
  return [...source.matchAll(/[A-Za-z0-9+/_-]{20,}(?:[ \t\r]*\n[ \t]*[A-Za-z0-9+/_-]{20,}={0,2}(?=\s|$))*/g)].flatMap(
    ({ 0: run, index: offset }) => {
      // Shorter words have no URL of a matchbox.
      const text = decoded(run.replaceAll(/\s+/g, ""));
      return text === undefined ? [] : [{ text, offset }];
    },
  );
}

/** Decodes base64 of both alphabets, and gzip in it. */
function decoded(base64: string): string | undefined {
  const bytes = Buffer.from(base64, "base64");
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes.toString("latin1");
  try {
    // Reads a file that was cut off as far as it goes.
    return gunzipSync(bytes, {
      maxOutputLength: maxDecodedBytes,
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

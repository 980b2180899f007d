/**
 * Encodes batches in the format of `command-codec.ts`, in steps. The first sync of a large cluster is one batch of 50
 * MB, and other work must not wait for all of it.
 */

import type { CommandRecord, ExpireCommand, SingleCommand } from "./command.ts";
import { version, writable } from "./command-codec.ts";

// Encoding this many characters takes a millisecond or two.
const stepLength = 256 * 1024;

/**
 * Returns the bytes of a batch's record, the same bytes as `encodeRecord` would return. It yields between two steps.
 */
export function* encodeBatchRecord(
  { atMs, run, beganAtMs, clockTerm }: Omit<CommandRecord, "command">,
  commands: readonly (SingleCommand | ExpireCommand)[],
): Generator<undefined, Uint8Array> {
  const pieces: Buffer[] = [];
  const began = beganAtMs === undefined ? "" : `"beganAtMs":${beganAtMs},`;
  const start = run === undefined ? began : `"run":${JSON.stringify(run)},${began}`;
  const clock = clockTerm === undefined ? "" : `"clockTerm":${clockTerm},`;
  let text = `{"v":${version},"atMs":${atMs},${start}${clock}"command":{"kind":"batch","commands":[`;
  for (const [number, command] of commands.entries()) {
    if (number > 0) text += ",";
    text += JSON.stringify(writable(command));
    if (text.length < stepLength) continue;
    pieces.push(Buffer.from(text));
    text = "";
    yield undefined;
  }
  pieces.push(Buffer.from(`${text}]}}`));
  return yield* joined(pieces);
}

function* joined(pieces: readonly Buffer[]): Generator<undefined, Buffer> {
  const bytes = Buffer.allocUnsafe(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    if (at > 0) yield undefined;
    at += piece.copy(bytes, at);
  }
  return bytes;
}

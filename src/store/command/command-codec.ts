/**
 * Encodes commands as bytes, and decodes them: one JSON object in UTF-8. Versions 1 and 2:
 *
 *   {"v":1,"atMs":…,"command":{"kind":"set","path":"/a","value":"b"}}
 *   {"v":1,"atMs":…,"run":"…","beganAtMs":…,"command":{…}}        the first records of a start
 *   {"v":1,"atMs":…,"clockTerm":…,"command":{…}}                  in a log of davit 0.2.0 with several members
 *
 *   {"v":2,"atMs":…,"command":{"kind":"extend",…}}                since version 2
 *   {"v":2,"atMs":…,"clockTerm":…,"command":{…}}                  the time counts as at least that of the record before
 *
 * A field can be added without a new version if records without the field keep their meaning. An expected index is a
 * decimal string, because a JSON number cannot hold every 64-bit number. UTF-8 never has the byte FF, and the log
 * relies on that.
 */

import { type Decoder, flag, list, number, object, optional, text, variant, where } from "../../lib/shape.ts";
import { newerFormat } from "../core/log-port.ts";
import { parseJson, path, stored } from "../core/stored-json.ts";
import type { Command, CommandRecord, Expected, ExpireCommand, SingleCommand } from "./command.ts";

/** The version of every command but `extend` in a log with one member, so that an older davit can read it. */
const version = 1;
/** The version of `extend`, and of a log with several members. davit refuses to read later versions. */
const lastVersion = 2;

export function encodeRecord({ atMs, run, beganAtMs, clockTerm, command }: CommandRecord): Uint8Array {
  const v = command.kind === "extend" || clockTerm !== undefined ? lastVersion : version;
  return Buffer.from(JSON.stringify({ v, atMs, run, beganAtMs, clockTerm, command: writable(command) }));
}

// Encoding this many characters takes a millisecond or two.
const stepLength = 256 * 1024;

/**
 * Returns the bytes of a batch's record, the same bytes as `encodeRecord` would return. It yields between two steps:
 * the first sync of a large cluster is one batch of 50 MB, and other work must not wait for all of it.
 */
export function* encodeBatchRecord(
  { atMs, run, beganAtMs, clockTerm }: Omit<CommandRecord, "command">,
  commands: readonly (SingleCommand | ExpireCommand)[],
): Generator<undefined, Uint8Array> {
  const pieces: Buffer[] = [];
  const began = beganAtMs === undefined ? "" : `"beganAtMs":${beganAtMs},`;
  const start = run === undefined ? began : `"run":${JSON.stringify(run)},${began}`;
  const [v, clock] = clockTerm === undefined ? [version, ""] : [lastVersion, `"clockTerm":${clockTerm},`];
  let text = `{"v":${v},"atMs":${atMs},${start}${clock}"command":{"kind":"batch","commands":[`;
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

/**
 * The command without bigints, which JSON lacks. A replacer for `JSON.stringify` would double the time for all
 * commands.
 */
function writable(command: Command): object {
  if (command.kind === "batch") return { kind: "batch", commands: command.commands.map(writable) };
  if (!("expected" in command) || command.expected.index === undefined) return command;
  const { expected } = command;
  return { ...command, expected: { ...expected, index: String(expected.index) } };
}

const written = { path, value: text, ttlSeconds: optional(number) };
const dir = optional(flag);
const refresh = optional(flag);
const expected: Decoder<Expected> = object({ value: optional(text), index: optional(decimal) });

function decimal(value: unknown): bigint {
  return BigInt(digits(value));
}

const digits = where((value): value is string => typeof value === "string" && /^\d+$/.test(value), "is no number");

const singles = {
  set: object({ ...written, dir, refresh }),
  create: object({ ...written, dir }),
  createInOrder: object({ ...written, dir }),
  update: object({ ...written, refresh }),
  compareAndSwap: object({ ...written, expected, refresh }),
  delete: object({ path, dir, recursive: optional(flag) }),
  compareAndDelete: object({ path, expected }),
  expire: object({ path, expiresAtMs: number }),
};

const versionShape = object({ v: number });
const recordShape: Decoder<CommandRecord> = object({
  atMs: number,
  run: optional(text),
  beganAtMs: optional(number),
  clockTerm: optional(number),
  command: variant("kind", {
    ...singles,
    extend: object({ path, modifiedIndex: number, leftMs: number }),
    batch: object({ commands: list(variant("kind", singles)) }),
  }),
});

/**
 * Reads what `encodeRecord` wrote.
 * @throws {WalError} newerFormat for a later version; damaged for other bytes that no davit writes.
 */
export function decodeRecord(bytes: Uint8Array): CommandRecord {
  const json = parseJson(bytes);
  const { v: found } = stored(versionShape, json);
  if (found > lastVersion) throw newerFormat("a command of the log", found, lastVersion);
  const record = stored(recordShape, json);
  return found < lastVersion && record.clockTerm !== undefined ? { ...record, mayGoBack: true } : record;
}

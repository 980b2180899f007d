/**
 * Encodes commands as bytes, and decodes them: one JSON object in UTF-8. Versions 1 and 2:
 *
 *   {"v":1,"atMs":…,"command":{"kind":"set","path":"/a","value":"b"}}
 *   {"v":1,"atMs":…,"run":"…","beganAtMs":…,"command":{…}}        the first records of a start
 *   {"v":1,"atMs":…,"clockTerm":…,"command":{…}}                  in a log with several members
 *
 *   {"v":2,"atMs":…,"command":{"kind":"extend",…}}                version 2 has only this command more
 *
 * A field can be added without a new version if records without the field keep their meaning. An expected index is a
 * decimal string, because a JSON number cannot hold every 64-bit number. UTF-8 never has the byte FF, and the log
 * relies on that.
 */

import { newerFormat } from "../core/log-port.ts";
import {
  flagFrom,
  numberFrom,
  objectFrom,
  parseJson,
  pathFrom,
  type StoredFields,
  textFrom,
  unreadable,
} from "../core/stored-json.ts";
import type { Command, CommandRecord, Expected, ExpireCommand, SingleCommand } from "./command.ts";

/** The version of every command but `extend`, so that an older davit can read a log without it. */
export const version = 1;
/** The version of `extend`. davit refuses to read later versions. */
const lastVersion = 2;

export function encodeRecord({ atMs, run, beganAtMs, clockTerm, command }: CommandRecord): Uint8Array {
  const v = command.kind === "extend" ? lastVersion : version;
  return Buffer.from(JSON.stringify({ v, atMs, run, beganAtMs, clockTerm, command: writable(command) }));
}

/**
 * The command without bigints, which JSON lacks. A replacer for `JSON.stringify` would double the time for all
 * commands.
 */
export function writable(command: Command): object {
  if (command.kind === "batch") return { kind: "batch", commands: command.commands.map(writable) };
  if (!("expected" in command) || command.expected.index === undefined) return command;
  const { expected } = command;
  return { ...command, expected: { ...expected, index: String(expected.index) } };
}

/**
 * Reads what `encodeRecord` wrote.
 * @throws {WalError} newerFormat for a later version; damaged for other bytes that no davit writes.
 */
export function decodeRecord(bytes: Uint8Array): CommandRecord {
  const record = objectFrom(parseJson(bytes));
  const found = numberFrom(record.v);
  if (found > lastVersion) throw newerFormat("a command of the log", found, lastVersion);
  const command = commandFrom(objectFrom(record.command));
  return {
    atMs: numberFrom(record.atMs),
    ...(record.run !== undefined && { run: textFrom(record.run) }),
    ...(record.beganAtMs !== undefined && { beganAtMs: numberFrom(record.beganAtMs) }),
    ...(record.clockTerm !== undefined && { clockTerm: numberFrom(record.clockTerm) }),
    command,
  };
}

function commandFrom(fields: StoredFields): Command {
  if (fields.kind === "extend") {
    const { path, modifiedIndex, leftMs } = fields;
    return {
      kind: "extend",
      path: pathFrom(path),
      modifiedIndex: numberFrom(modifiedIndex),
      leftMs: numberFrom(leftMs),
    };
  }
  if (fields.kind !== "batch") return singleFrom(fields);
  if (!Array.isArray(fields.commands)) throw unreadable("commands");
  return { kind: "batch", commands: fields.commands.map((single: unknown) => singleFrom(objectFrom(single))) };
}

function singleFrom(fields: StoredFields): SingleCommand | ExpireCommand {
  const path = pathFrom(fields.path);
  switch (fields.kind) {
    case "set":
      return {
        kind: "set",
        path,
        ...writtenFrom(fields),
        ...flagsFrom(fields, "dir"),
        ...flagsFrom(fields, "refresh"),
      };
    case "create":
    case "createInOrder":
      return { kind: fields.kind, path, ...writtenFrom(fields), ...flagsFrom(fields, "dir") };
    case "update":
      return { kind: "update", path, ...writtenFrom(fields), ...flagsFrom(fields, "refresh") };
    case "compareAndSwap": {
      const expected = expectedFrom(fields.expected);
      return { kind: "compareAndSwap", path, expected, ...writtenFrom(fields), ...flagsFrom(fields, "refresh") };
    }
    case "delete":
      return { kind: "delete", path, ...flagsFrom(fields, "dir"), ...flagsFrom(fields, "recursive") };
    case "compareAndDelete":
      return { kind: "compareAndDelete", path, expected: expectedFrom(fields.expected) };
    case "expire":
      return { kind: "expire", path, expiresAtMs: numberFrom(fields.expiresAtMs) };
    default:
      throw unreadable("kind");
  }
}

function writtenFrom({ value, ttlSeconds }: StoredFields) {
  return { value: textFrom(value), ...(ttlSeconds !== undefined && { ttlSeconds: numberFrom(ttlSeconds) }) };
}

/** An object with the flag `name` of a record; an empty object if the record lacks the flag. */
function flagsFrom(fields: StoredFields, name: "dir" | "recursive" | "refresh"): FlagFields {
  const value = fields[name];
  return value === undefined ? {} : { [name]: flagFrom(value) };
}

interface FlagFields {
  readonly dir?: boolean;
  readonly recursive?: boolean;
  readonly refresh?: boolean;
}

function expectedFrom(value: unknown): Expected {
  const fields = objectFrom(value);
  return {
    ...(fields.value !== undefined && { value: textFrom(fields.value) }),
    ...(fields.index !== undefined && { index: BigInt(textFrom(fields.index)) }),
  };
}

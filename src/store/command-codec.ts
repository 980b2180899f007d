/**
 * Commands as bytes: one JSON object in UTF-8. Version 1:
 *
 *   {"v":1,"atMs":…,"command":{"kind":"set","path":"/a","value":"b"}}
 *
 * A field may be added within a version if a record without it means what it meant before. An index is a decimal
 * string, since it may have more digits than a JSON number keeps. No text holds the byte FF, on which the log relies.
 */

import type { Command, CommandRecord, Expected, ExpireCommand, SingleCommand } from "./command.ts";
import { newerFormat, WalError } from "./log-port.ts";
import { parsePath, type StorePath } from "./node.ts";

const version = 1;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export function encodeRecord({ atMs, command }: CommandRecord): Uint8Array {
  return encoder.encode(JSON.stringify({ v: version, atMs, command }, writeIndex));
}

function writeIndex(_name: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/**
 * Reads what `encodeRecord` wrote.
 * @throws {WalError} newerFormat for a later version; damaged for anything else that no davit wrote.
 */
export function decodeRecord(bytes: Uint8Array): CommandRecord {
  const record = objectFrom(parse(bytes));
  const found = numberFrom(record.v);
  if (found > version) throw newerFormat("a command of the log", found, version);
  return { atMs: numberFrom(record.atMs), command: commandFrom(objectFrom(record.command)) };
}

type Fields = Readonly<Record<string, unknown>>;

function commandFrom(fields: Fields): Command {
  if (fields.kind !== "batch") return singleFrom(fields);
  if (!Array.isArray(fields.commands)) throw unreadable("commands");
  return { kind: "batch", commands: fields.commands.map((single: unknown) => singleFrom(objectFrom(single))) };
}

function singleFrom(fields: Fields): SingleCommand | ExpireCommand {
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

function writtenFrom({ value, ttlSeconds }: Fields) {
  return { value: textFrom(value), ...(ttlSeconds !== undefined && { ttlSeconds: numberFrom(ttlSeconds) }) };
}

/** The flag of a name, if it is there. */
function flagsFrom(fields: Fields, name: "dir" | "recursive" | "refresh"): FlagFields {
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

function pathFrom(value: unknown): StorePath {
  const path = parsePath(textFrom(value));
  if (path === undefined) throw unreadable("path");
  return path;
}

function flagFrom(value: unknown): boolean {
  if (typeof value !== "boolean") throw unreadable("flag");
  return value;
}

function textFrom(value: unknown): string {
  if (typeof value !== "string") throw unreadable("text");
  return value;
}

function numberFrom(value: unknown): number {
  if (typeof value !== "number") throw unreadable("number");
  return value;
}

function objectFrom(value: unknown): Fields {
  if (!isFields(value)) throw unreadable("object");
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(bytes: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes));
    return value;
  } catch {
    // The parser's message quotes the text, which may be a secret.
    throw unreadable("JSON");
  }
}

function unreadable(what: string): WalError {
  return new WalError(
    "damaged",
    `Reading a command of the log: its ${what} is not what davit writes; restore a backup`,
  );
}

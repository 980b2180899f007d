/**
 * Reads the JSON that the store wrote to a file or into etcd, field by field. It reports any other data as damage and
 * guesses nothing.
 */

import { type Decoder, ShapeError, where } from "../../lib/shape.ts";
import { WalError } from "./log-port.ts";
import { parsePath, type StorePath } from "./node.ts";

export type StoredFields = Readonly<Record<string, unknown>>;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses JSON in UTF-8. @throws {WalError} damaged, like every function of this file that reads. */
export function parseJson(stored: Uint8Array | string): unknown {
  try {
    const value: unknown = JSON.parse(typeof stored === "string" ? stored : utf8.decode(stored));
    return value;
  } catch {
    // The parser's message quotes the text, which may contain a secret.
    throw unreadable("JSON");
  }
}

/** Reads a value of a shape. */
export function stored<Value>(shape: Decoder<Value>, value: unknown): Value {
  try {
    return shape(value);
  } catch (error) {
    throw error instanceof ShapeError ? unreadable(error.place) : error;
  }
}

/** The shape of a path. */
export const path = where(
  (value): value is StorePath => typeof value === "string" && parsePath(value) !== undefined,
  "is no path",
);

export function pathFrom(value: unknown): StorePath {
  const path = parsePath(textFrom(value));
  if (path === undefined) throw unreadable("path");
  return path;
}

export function flagFrom(value: unknown): boolean {
  if (typeof value !== "boolean") throw unreadable("flag");
  return value;
}

export function textFrom(value: unknown): string {
  if (typeof value !== "string") throw unreadable("text");
  return value;
}

export function numberFrom(value: unknown): number {
  if (typeof value !== "number") throw unreadable("number");
  return value;
}

export function objectFrom(value: unknown): StoredFields {
  if (!isFields(value)) throw unreadable("object");
  return value;
}

function isFields(value: unknown): value is StoredFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Makes the error for data that davit does not write. @param what the wrong part, for the message. */
export function unreadable(what: string): WalError {
  return new WalError("damaged", `Reading the store: its ${what} is not what davit writes; restore a backup`);
}

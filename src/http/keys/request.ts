/**
 * Parses a request of `/v2/keys` into a read, a watch or a command. Pure. The order of the checks is part of the
 * protocol: of several mistakes only the first is reported. All parameters are checked, even those that the method
 * ignores.
 */

import type { Expected, SingleCommand } from "../../store/command/command.ts";
import type { StorePath } from "../../store/core/node.ts";
import { type RefusalName, StoreError } from "../../store/core/refusal.ts";
import { type FormFields, parseFields } from "./form.ts";

export const keysMethods = ["HEAD", "GET", "PUT", "POST", "DELETE"] as const;
export type KeysMethod = (typeof keysMethods)[number];

interface RawKeysRequest {
  readonly method: KeysMethod;
  readonly path: StorePath;
  /** The query as sent, without the question mark. */
  readonly query: string;
  /** The form of a PUT or POST, decoded as latin1; undefined when the body is no form. */
  readonly form?: string;
}

export type KeysRequest =
  | {
      readonly kind: "read";
      readonly path: StorePath;
      readonly recursive: boolean;
      readonly sorted: boolean;
      /** The answer has every change that any member made before the request. */
      readonly quorum: boolean;
    }
  | {
      readonly kind: "watch";
      readonly path: StorePath;
      readonly recursive: boolean;
      /** 0 for changes from now on. */
      readonly waitIndex: number;
      readonly stream: boolean;
    }
  | { readonly kind: "write"; readonly command: SingleCommand; readonly hidesNode: boolean };

/** @throws {StoreError} with one of the protocol's error codes from 201 to 212. */
export function parseKeysRequest({ method, path, query, form }: RawKeysRequest): KeysRequest {
  const bodyFields = form === undefined ? undefined : parseFields(form);
  const fields = checkedFields(mergedFields(bodyFields, parseFields(query)), method);
  switch (method) {
    case "GET":
      return readRequest(path, fields);
    case "HEAD":
      // etcd ignores quorum=true here (etcd v3.4.23 etcdserver/v2_server.go, Handle).
      return readRequest(path, { ...fields, quorum: false });
    case "PUT":
      return { kind: "write", command: putCommand(path, fields), hidesNode: fields.noValueOnSuccess };
    case "POST":
      return {
        kind: "write",
        command: { kind: "createInOrder", path, ...written(fields), dir: fields.dir },
        hidesNode: fields.noValueOnSuccess,
      };
    case "DELETE":
      return { kind: "write", command: deleteCommand(path, fields), hidesNode: false };
  }
}

interface CheckedFields {
  readonly prevIndex: bigint | undefined;
  readonly waitIndex: bigint | undefined;
  readonly recursive: boolean;
  readonly sorted: boolean;
  readonly wait: boolean;
  readonly dir: boolean;
  readonly quorum: boolean;
  readonly stream: boolean;
  readonly prevValue: string | undefined;
  readonly noValueOnSuccess: boolean;
  readonly prevExist: boolean | undefined;
  readonly value: string;
  /** Undefined without a ttl, and for an empty one. */
  readonly ttlSeconds: number | undefined;
  readonly refresh: boolean;
}

/** Reads and checks all fields, in the order of etcd (v3.4.23 v2http/client.go, parseKeyRequest). */
function checkedFields(fields: FormFields, method: KeysMethod): CheckedFields {
  const prevIndex = numberIn(fields, "prevIndex", "indexNotNumber");
  const waitIndex = numberIn(fields, "waitIndex", "indexNotNumber");
  const recursive = isSet(fields, "recursive");
  const sorted = isSet(fields, "sorted");
  const wait = isSet(fields, "wait");
  const dir = isSet(fields, "dir");
  const quorum = isSet(fields, "quorum");
  const stream = isSet(fields, "stream");
  if (wait && method !== "GET") throw refuse("invalidField", '"wait" can only be used with GET requests');
  const prevValue = fields.get("prevValue");
  if (prevValue === "") throw refuse("prevValueRequired", '"prevValue" cannot be empty');
  const noValueOnSuccess = isSet(fields, "noValueOnSuccess");
  const ttlSeconds = ttlIn(fields);
  const prevExist = flagIn(fields, "prevExist", "prevExist");
  const value = fields.get("value") ?? "";
  const refresh = isSet(fields, "refresh", "refresh");
  if (refresh && value !== "") throw refuse("valueOnRefresh", "A value was provided on a refresh");
  if (refresh && ttlSeconds === undefined) throw refuse("ttlRequired", "No TTL value set");
  return {
    prevIndex,
    waitIndex,
    recursive,
    sorted,
    wait,
    dir,
    quorum,
    stream,
    prevValue,
    noValueOnSuccess,
    prevExist,
    value,
    ttlSeconds,
    refresh,
  };
}

function readRequest(path: StorePath, fields: CheckedFields): KeysRequest {
  const { recursive, sorted, wait, quorum, stream, waitIndex = 0n } = fields;
  // etcd ignores wait=true for a quorum read, and answers immediately.
  if (!wait || quorum) return { kind: "read", path, recursive, sorted, quorum };
  // An index beyond 2^53 loses digits here, but no store reaches such an index.
  return { kind: "watch", path, recursive, stream, waitIndex: Number(waitIndex) };
}

function putCommand(path: StorePath, fields: CheckedFields): SingleCommand {
  const { dir, prevExist } = fields;
  // A create has nothing to refresh, so `refresh` is ignored.
  if (prevExist === false) return { kind: "create", path, ...written(fields), dir };
  const refresh = fields.refresh ? { refresh: true } : {};
  const expected = expectedIn(fields);
  if (expected !== undefined) return { kind: "compareAndSwap", path, expected, ...written(fields), ...refresh };
  if (prevExist === true) return { kind: "update", path, ...written(fields), ...refresh };
  return { kind: "set", path, ...written(fields), dir, ...refresh };
}

function written({ value, ttlSeconds }: CheckedFields) {
  return { value, ...(ttlSeconds !== undefined && { ttlSeconds }) };
}

function deleteCommand(path: StorePath, fields: CheckedFields): SingleCommand {
  const expected = expectedIn(fields);
  if (expected !== undefined) return { kind: "compareAndDelete", path, expected };
  return { kind: "delete", path, dir: fields.dir, recursive: fields.recursive };
}

/** Returns the conditions of a write; undefined for none. An index of 0 is no condition. */
function expectedIn({ prevValue, prevIndex = 0n }: CheckedFields): Expected | undefined {
  if (prevValue === undefined && prevIndex === 0n) return undefined;
  return { ...(prevValue !== undefined && { value: prevValue }), ...(prevIndex > 0n && { index: prevIndex }) };
}

function mergedFields(form: FormFields | undefined, query: FormFields): FormFields {
  if (form === undefined) return query;
  return query.size === 0 ? form : new Map([...query, ...form]);
}

const maxUint64 = 2n ** 64n - 1n;

function numberIn(fields: FormFields, name: string, refusal: RefusalName): bigint | undefined {
  const text = fields.get(name);
  if (text === undefined) return undefined;
  // Any number of leading zeros, then as many digits as 64 bits may need.
  const number = /^0*[0-9]{1,20}$/.test(text) ? BigInt(text) : maxUint64 + 1n;
  if (number > maxUint64) throw refuse(refusal, `invalid value for "${name}"`);
  return number;
}

const trueTexts = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const falseTexts = new Set(["0", "f", "F", "FALSE", "false", "False"]);

/** An empty ttl counts as absent. A ttl beyond 2^53 s loses digits here, but no store runs that long. */
function ttlIn(fields: FormFields): number | undefined {
  const ttl = fields.get("ttl") === "" ? undefined : numberIn(fields, "ttl", "ttlNotNumber");
  return ttl === undefined ? undefined : Number(ttl);
}

function isSet(fields: FormFields, name: string, shown?: string): boolean {
  return flagIn(fields, name, shown) ?? false;
}

/** @param shown how etcd writes the name when it refuses the value. */
function flagIn(fields: FormFields, name: string, shown = `"${name}"`): boolean | undefined {
  const text = fields.get(name);
  if (text === undefined) return undefined;
  if (!trueTexts.has(text) && !falseTexts.has(text)) throw refuse("invalidField", `invalid value for ${shown}`);
  return trueTexts.has(text);
}

function refuse(refusal: RefusalName, cause: string): StoreError {
  return new StoreError(refusal, cause, 0);
}

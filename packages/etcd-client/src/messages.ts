/** The requests and answers of davit's client, and how they look on the wire. Keys are text, counts are numbers. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  type CompareSchema,
  type KeyValue,
  type RangeRequestSchema,
  type RequestOpSchema,
  type ResponseHeader,
  type ResponseOp,
} from "./rpc_pb.ts";

/** Who answered, and how far it was. */
export interface EtcdHeader {
  readonly memberId: bigint;
  /** The newest revision of the key space when the answer was made. */
  readonly revision: number;
  readonly raftTerm: number;
}

export interface EtcdKey {
  readonly key: string;
  readonly value: Uint8Array;
  /** How often it was put since it was created, from 1 on. */
  readonly version: number;
  readonly createRevision: number;
  readonly modRevision: number;
  /** 0n without one. */
  readonly lease: bigint;
}

export interface EtcdRange {
  readonly key: string;
  /** The key after the last one; one key only unless given. */
  readonly end?: string;
  /** The most keys in an answer; all unless given. */
  readonly limit?: number;
  /** Reads the past; the newest unless given. */
  readonly revision?: number;
  readonly keysOnly?: boolean;
}

export interface EtcdRangeAnswer {
  readonly header: EtcdHeader;
  readonly keys: readonly EtcdKey[];
  /** The limit left some out. */
  readonly more: boolean;
}

/** A condition of a transaction. A key that does not exist has version, createRevision and modRevision 0. */
export type EtcdCompare = {
  readonly key: string;
  readonly is: "equal" | "greater";
} & (
  | { readonly version: number }
  | { readonly createRevision: number }
  | { readonly modRevision: number }
  | { readonly value: Uint8Array | string }
);

export interface EtcdPut {
  readonly key: string;
  /** A text is written in UTF-8. */
  readonly value: Uint8Array | string;
  /** None unless given. */
  readonly lease?: bigint;
  /** Gives the former key. */
  readonly previous?: boolean;
}

export interface EtcdDelete {
  readonly key: string;
  readonly end?: string;
}

export type EtcdOperation = { readonly put: EtcdPut } | { readonly range: EtcdRange } | { readonly delete: EtcdDelete };

export interface EtcdTxn {
  /** All must hold; none: it always succeeds. */
  readonly when?: readonly EtcdCompare[];
  readonly success: readonly EtcdOperation[];
  readonly failure?: readonly EtcdOperation[];
}

/** What an operation did, in the order of the transaction. `keys`: of a range, or the former one of a put. */
export interface EtcdOperationAnswer {
  readonly keys: readonly EtcdKey[];
}

export interface EtcdTxnAnswer {
  readonly header: EtcdHeader;
  readonly succeeded: boolean;
  readonly answers: readonly EtcdOperationAnswer[];
}

const encoder = new TextEncoder();

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

export function headerOf(header: ResponseHeader | undefined): EtcdHeader {
  return {
    memberId: header?.memberId ?? 0n,
    revision: Number(header?.revision ?? 0n),
    raftTerm: Number(header?.raftTerm ?? 0n),
  };
}

export function keyOf({ key, value, version, createRevision, modRevision, lease }: KeyValue): EtcdKey {
  return {
    key: Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("utf8"),
    value,
    version: Number(version),
    createRevision: Number(createRevision),
    modRevision: Number(modRevision),
    lease,
  };
}

export function rangeMessage(range: EtcdRange): MessageInitShape<typeof RangeRequestSchema> {
  return {
    key: bytesOf(range.key),
    rangeEnd: bytesOf(range.end ?? ""),
    limit: BigInt(range.limit ?? 0),
    revision: BigInt(range.revision ?? 0),
    keysOnly: range.keysOnly ?? false,
  };
}

export function operationMessage(operation: EtcdOperation): MessageInitShape<typeof RequestOpSchema> {
  if ("put" in operation) {
    const { key, value, lease = 0n, previous = false } = operation.put;
    return {
      request: { case: "requestPut", value: { key: bytesOf(key), value: owned(value), lease, prevKv: previous } },
    };
  }
  if ("range" in operation) return { request: { case: "requestRange", value: rangeMessage(operation.range) } };
  const { key, end = "" } = operation.delete;
  return { request: { case: "requestDeleteRange", value: { key: bytesOf(key), rangeEnd: bytesOf(end) } } };
}

export function operationAnswer({ response }: ResponseOp): EtcdOperationAnswer {
  switch (response.case) {
    case "responseRange":
      return { keys: response.value.kvs.map(keyOf) };
    case "responsePut": {
      const { prevKv } = response.value;
      return { keys: prevKv === undefined ? [] : [keyOf(prevKv)] };
    }
    case "responseDeleteRange":
    case undefined:
      return { keys: [] };
  }
}

const results = { equal: Compare_CompareResult.EQUAL, greater: Compare_CompareResult.GREATER };

export function compareMessage(compare: EtcdCompare): MessageInitShape<typeof CompareSchema> {
  return { key: bytesOf(compare.key), result: results[compare.is], ...targetOf(compare) };
}

function targetOf(compare: EtcdCompare): Pick<MessageInitShape<typeof CompareSchema>, "target" | "targetUnion"> {
  if ("version" in compare) {
    const value = BigInt(compare.version);
    return { target: Compare_CompareTarget.VERSION, targetUnion: { case: "version", value } };
  }
  if ("createRevision" in compare) {
    const value = BigInt(compare.createRevision);
    return { target: Compare_CompareTarget.CREATE, targetUnion: { case: "createRevision", value } };
  }
  if ("modRevision" in compare) {
    const value = BigInt(compare.modRevision);
    return { target: Compare_CompareTarget.MOD, targetUnion: { case: "modRevision", value } };
  }
  return { target: Compare_CompareTarget.VALUE, targetUnion: { case: "value", value: owned(compare.value) } };
}

/** protobuf-es wants bytes that are not shared between threads; a copy only where they are. */
function owned(value: Uint8Array | string): Uint8Array<ArrayBuffer> {
  if (typeof value === "string") return bytesOf(value);
  return isOwn(value) ? value : new Uint8Array(value);
}

function isOwn(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}

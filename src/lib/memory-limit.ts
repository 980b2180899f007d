/**
 * Compares the memory that davit may use with the limit of its container. Beyond that limit, the kernel kills the
 * process without a message. At the limit of its heap, Node ends with a message.
 */

import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { Log } from "./log.ts";

const mebibyte = 2 ** 20;
/** Code, buffers of requests, and the collector of garbage: of an idle davit, measured by `make bench-memory`. */
const baseBytes = 64 * mebibyte;

export interface MemoryUse {
  /** The limit of the container. Undefined, 0, or more than the computer has, if there is no limit. */
  readonly limitBytes: number | undefined;
  /** The limit of cached assets. */
  readonly cacheBytes: number;
}

/**
 * Logs a warning if a full heap and a full cache together exceed the limit. davit cannot change the heap's limit: V8
 * reads it before a program starts. Heaps of other threads are not counted.
 */
export function warnOfMemory(log: Log, { limitBytes = 0, cacheBytes }: MemoryUse): void {
  if (limitBytes === 0 || limitBytes >= totalmem()) return;
  const heapBytes = getHeapStatistics().heap_size_limit;
  if (heapBytes + cacheBytes + baseBytes <= limitBytes) return;
  const facts = { memoryLimit: limitBytes, heap: heapBytes, assetsCache: cacheBytes };
  log.warn(
    Object.fromEntries(Object.entries(facts).map(([name, bytes]) => [`${name}MiB`, Math.round(bytes / mebibyte)])),
    "the memory limit is less than a full heap and a full asset cache need: " +
      "raise the limit, lower --assets-cache-bytes, or set NODE_OPTIONS=--max-old-space-size=MIB",
  );
}

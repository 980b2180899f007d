/**
 * Limits the memory of threads, and compares the memory that davit may use with the limit of its container. Beyond the
 * container's limit, the kernel kills the process without a message. At the limit of its heap, Node ends with a
 * message. At the limit of a thread, only the thread ends.
 */

import { totalmem } from "node:os";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import type { ResourceLimits } from "node:worker_threads";
import type { Log } from "./log.ts";

const mebibyte = 2 ** 20;
/**
 * What an idle davit needs beside its heap: buffers of requests, and the collector of garbage. The pages of the program
 * are not counted, because the kernel can drop them. Measured by `make bench-memory`.
 */
const baseBytes = 64 * mebibyte;
/** The same for each further boot thread. */
const threadBaseBytes = 24 * mebibyte;
/** The size of the young generation with `--max-semi-space-size=16`, as in the image. */
export const youngMebibytes = 48;

/** In MiB. */
export type ThreadLimits = ResourceLimits & { readonly maxOldGenerationSizeMb: number };

/**
 * Makes V8 apply the limits of threads. V8 reads these flags again for each thread that starts, and they override the
 * thread's own limits. The first thread's heap keeps its limit.
 */
export function enforceThreadLimits(): void {
  setFlagsFromString("--max-old-space-size=0");
  setFlagsFromString("--max-heap-size=0");
}

/** @returns the limits of a thread that needs as much as the first one. */
export function firstThreadLimits(): ThreadLimits {
  const heapMebibytes = Math.floor(getHeapStatistics().heap_size_limit / mebibyte);
  return {
    maxOldGenerationSizeMb: Math.max(heapMebibytes - youngMebibytes, 1),
    maxYoungGenerationSizeMb: youngMebibytes,
  };
}

/** @returns these limits, but no more than the first thread has: the container may be small. */
export function threadLimits(limits: ThreadLimits): ResourceLimits {
  const { maxOldGenerationSizeMb } = firstThreadLimits();
  return { ...limits, maxOldGenerationSizeMb: Math.min(limits.maxOldGenerationSizeMb, maxOldGenerationSizeMb) };
}

export interface MemoryUse {
  /** The limit of cached assets. */
  readonly cacheBytes: number;
  /** The number of threads that answer machines, the first one included. */
  readonly bootThreads: number;
}

/** @returns what full heaps with this limit, which includes the young objects, and a full cache need. */
export function neededBytes(heapBytes: number, { cacheBytes, bootThreads }: MemoryUse): number {
  return bootThreads * heapBytes + (bootThreads - 1) * threadBaseBytes + cacheBytes + baseBytes;
}

interface LimitedMemory extends MemoryUse {
  /** The limit of the container. Undefined, 0, or more than the computer has, if there is no limit. */
  readonly limitBytes: number | undefined;
}

/**
 * Logs a warning if the full heaps of the boot threads and a full cache together exceed the limit. davit cannot change
 * the limit of the first heap: V8 reads it before a program starts. The warning does not count threads for jobs.
 */
export function warnOfMemory(log: Log, { limitBytes = 0, cacheBytes, bootThreads }: LimitedMemory): void {
  if (limitBytes === 0 || limitBytes >= totalmem()) return;
  const heapBytes = getHeapStatistics().heap_size_limit;
  if (neededBytes(heapBytes, { cacheBytes, bootThreads }) <= limitBytes) return;
  const facts = { memoryLimit: limitBytes, heap: heapBytes, assetsCache: cacheBytes };
  const mebibytes = Object.entries(facts).map(([name, bytes]) => [`${name}MiB`, Math.round(bytes / mebibyte)]);
  const [each, fewer] = bootThreads > 1 ? [" of each boot thread", "lower --boot-threads, "] : ["", ""];
  log.warn(
    { ...Object.fromEntries(mebibytes), ...(bootThreads > 1 && { bootThreads }) },
    `the memory limit is less than a full heap${each} and a full asset cache need: raise the limit, ${fewer}` +
      "lower --assets-cache-bytes, or set NODE_OPTIONS=--max-old-space-size=MIB",
  );
}

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
 * What an idle davit needs beside its heap: buffers of requests, and the garbage collector. The pages of the program
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
 * The limits of the threads for jobs, which run beside those that answer machines. A job that needs more fails, and
 * davit continues. The texts of the largest configs (8 MiB) need 64 MiB of old objects, a cloud-config of half a
 * mebibyte needs 160 MiB, and a manifest of the console over 10,000 Groups needs 96 MiB.
 */
export const jobLimits = {
  /** Makes slow configs. */
  render: { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 8 },
  /** Hashes assets. */
  digest: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
  /** Tries what Groups render. */
  trial: { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 8 },
  /** Tries manifests of the console. */
  attempt: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 },
} as const satisfies Readonly<Record<string, ThreadLimits>>;
export type JobKind = keyof typeof jobLimits;
/** Node gives the heap of a thread this much more while it ends the thread. */
const endingMebibytes = 16;

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

interface MemoryUse {
  /** The limit of cached assets. */
  readonly cacheBytes: number;
  /** The number of threads that answer machines, the first one included. */
  readonly bootThreads: number;
  /** The threads for jobs. */
  readonly jobs: readonly JobKind[];
}

/**
 * @param heapBytes the limit of the heap of each boot thread, with the young objects.
 * @returns what full heaps of all threads and a full cache need.
 */
export function neededBytes(heapBytes: number, { cacheBytes, bootThreads, jobs }: MemoryUse): number {
  const ofBootThreads = bootThreads * heapBytes + (bootThreads - 1) * threadBaseBytes;
  const ofJobs = jobs.reduce((sum, job) => sum + jobBytes(job), 0);
  return ofBootThreads + ofJobs + cacheBytes + baseBytes;
}

/** What the thread of a job takes at its limit. */
function jobBytes(job: JobKind): number {
  const { maxOldGenerationSizeMb, maxYoungGenerationSizeMb } = jobLimits[job];
  return (maxOldGenerationSizeMb + maxYoungGenerationSizeMb + endingMebibytes) * mebibyte + threadBaseBytes;
}

interface LimitedMemory extends MemoryUse {
  /** The limit of the container. Undefined, 0, or more than the computer has, if there is no limit. */
  readonly limitBytes: number | undefined;
}

/**
 * Logs a warning if the full heaps of all threads and a full cache together exceed the limit. davit cannot change the
 * limit of the first heap: V8 reads it before a program starts.
 */
export function warnOfMemory(log: Log, { limitBytes = 0, ...use }: LimitedMemory): void {
  if (limitBytes === 0 || limitBytes >= totalmem()) return;
  const heapBytes = getHeapStatistics().heap_size_limit;
  const needed = neededBytes(heapBytes, use);
  if (needed <= limitBytes) return;
  const { cacheBytes, bootThreads } = use;
  const facts = { memoryLimit: limitBytes, needed, heap: heapBytes, assetsCache: cacheBytes };
  const mebibytes = Object.entries(facts).map(([name, bytes]) => [`${name}MiB`, Math.round(bytes / mebibyte)]);
  const fewer = bootThreads > 1 ? "lower --boot-threads, " : "";
  log.warn(
    { ...Object.fromEntries(mebibytes), ...(bootThreads > 1 && { bootThreads }) },
    "the memory limit is less than the full heaps of all threads and a full asset cache need: raise the limit, " +
      `${fewer}lower --limit assets-cache-bytes, or set NODE_OPTIONS=--max-old-space-size=MIB`,
  );
}

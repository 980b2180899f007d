/**
 * Checks the digest that a request names, as in `/assets/vmlinuz?sha256=HEX`: davit sends the bytes of that file, or
 * none. The digest is a part of the location in a Profile. So the check works for followers, for machines with an older
 * script, and for two Profiles that want different files of one path.
 *
 * A thread hashes one file at a time. Each version of a file is hashed once, however many machines wait for it.
 */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/errors.ts";
import { JobThread, workerBeside } from "../../lib/job-thread.ts";
import type { Log } from "../../lib/log.ts";
import { jobLimits } from "../../lib/memory-limit.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { RequestError } from "../errors.ts";
import { type Asset, checkUnchanged, type FileVersion, isSameVersion, settleMs } from "./file.ts";

export interface AssetDigestsOptions {
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
  readonly metrics: Pick<Metrics, "assetMismatches">;
  /** Hashes an open file by its descriptor. Default: this object hashes it in its own thread. */
  readonly hash?: (descriptor: number) => Promise<string>;
}

/** A file to hash, by a descriptor of this process. */
export interface DigestJob {
  readonly descriptor: number;
}

export type DigestAnswer = { readonly sha256: string } | { readonly code: string };

interface KnownDigest {
  readonly version: FileVersion;
  readonly sha256: string;
}

const maxKnown = 4_096;
/** davit logs a mismatch of one file once in this time, because its machines ask again and again. */
const logEveryMs = 60_000;
// The machines of a rack ask within a minute or two.
const idleMs = 60_000;
const resourceLimits = jobLimits.digest;

export class AssetDigests {
  readonly #options: AssetDigestsOptions;
  readonly #thread: JobThread<DigestJob, DigestAnswer>;
  /** By file. */
  readonly #known = new LRUCache<string, KnownDigest>({ max: maxKnown });
  /** By file and version. */
  readonly #pending = new Map<string, Promise<string>>();
  /** By file: one path has many spellings. */
  readonly #logged: LRUCache<string, true>;

  constructor(options: AssetDigestsOptions) {
    this.#options = options;
    const { clock } = options;
    const worker = workerBeside(import.meta.url, "digest-worker");
    this.#thread = new JobThread({ worker, resourceLimits, idleMs, clock });
    this.#logged = new LRUCache({ max: maxKnown, ttl: logEveryMs, perf: { now: () => clock.monotonicMs() } });
  }

  /** True if the digest of this version is known, so that `check` takes no time. */
  knows(asset: Asset): boolean {
    return this.#knownOf(asset) !== undefined;
  }

  /**
   * Checks that an asset has an accepted digest. The asset must stay open until the promise settles.
   * @param accepts says whether a SHA-256, in lower case, is that of a file that may be sent.
   * @throws {RequestError} otherFile, or unchecked if the file cannot be hashed.
   * @throws {AssetChanged} when the file was written meanwhile.
   */
  async check(asset: Asset, accepts: (sha256: string) => boolean, path: string): Promise<void> {
    const sha256 = this.#knownOf(asset) ?? (await this.#digestOf(asset, path));
    if (accepts(sha256)) return;
    const { log, metrics } = this.#options;
    metrics.assetMismatches.inc();
    const { file } = asset.version;
    if (!this.#logged.has(file)) log.warn({ path, sha256 }, "asset is not the file that its location or Profile names");
    this.#logged.set(file, true);
    throw new RequestError("otherFile");
  }

  /**
   * Hashes an open file, in the thread.
   * @throws {Error} if the file cannot be read, with its code.
   */
  async hash(descriptor: number): Promise<string> {
    if (this.#options.hash !== undefined) return await this.#options.hash(descriptor);
    const end = await this.#thread.run({ descriptor });
    if (end.kind === "answered" && "sha256" in end.answer) return end.answer.sha256;
    const code = end.kind === "answered" && "code" in end.answer ? end.answer.code : end.kind;
    throw Object.assign(new Error(`A file cannot be hashed (${code})`), { code });
  }

  /** Ends the thread. Idempotent. */
  async stop(): Promise<void> {
    await this.#thread.stop();
  }

  #knownOf({ version }: Asset): string | undefined {
    const known = this.#known.get(version.file);
    return known !== undefined && isSameVersion(known.version, version) ? known.sha256 : undefined;
  }

  async #digestOf(asset: Asset, path: string): Promise<string> {
    await this.#untilSettled(asset);
    const { file, sizeBytes, mtimeNs, ctimeNs } = asset.version;
    const key = [file, sizeBytes, mtimeNs, ctimeNs].join(" ");
    const pending = this.#pending.get(key) ?? this.#hashInTurn(asset, key, path);
    return await pending;
  }

  /** A file that was written a moment ago could change again unnoticed: see `settleMs`. */
  async #untilSettled(asset: Asset): Promise<void> {
    const { clock } = this.#options;
    const ageMs = clock.nowMs() - Number(asset.version.ctimeNs / 1_000_000n);
    if (ageMs >= settleMs) return;
    await clock.sleep(Math.min(settleMs, settleMs - ageMs));
    await checkUnchanged(asset);
  }

  #hashInTurn(asset: Asset, key: string, path: string): Promise<string> {
    const hashed = this.hash(asset.handle.fd)
      .catch((error: unknown) => {
        this.#options.log.warn({ path, code: codeOf(error) }, "asset cannot be read to check its SHA-256");
        throw new RequestError("unchecked");
      })
      .then(async (sha256) => {
        await checkUnchanged(asset);
        this.#known.set(asset.version.file, { version: asset.version, sha256 });
        return sha256;
      })
      .finally(() => this.#pending.delete(key));
    this.#pending.set(key, hashed);
    return hashed;
  }
}

/**
 * Returns the digest that a query names; undefined for none.
 * @throws {RequestError} badDigest, for one that is not a SHA-256, and for two different ones.
 */
export function wantedDigest(rawQuery: string): string | undefined {
  if (!/(^|&)sha256/i.test(rawQuery)) return undefined;
  const digests = new Set(new URLSearchParams(rawQuery).getAll("sha256").map((text) => text.toLowerCase()));
  const [digest, other] = digests;
  if (digest === undefined || other !== undefined || !/^[0-9a-f]{64}$/.test(digest))
    throw new RequestError("badDigest");
  return digest;
}

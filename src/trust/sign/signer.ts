/**
 * Signs the boot service's answers with the OpenPGP key of a file. The file may be replaced while davit runs.
 *
 * A signature covers exact bytes. gpg and GRUB verify it. All requests for the same body share one signature per key.
 * A separate thread unlocks and uses each key, so only requests for signatures wait for it. davit does not start with a
 * key that cannot sign. It ignores a replacement that cannot sign, and reports it in the log, the metrics and the
 * `attention` lines. davit never signs with an expired key. It never reveals the key, its passphrase or the signed
 * text.
 */

import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Clock, toRfc3339 } from "../../lib/clock.ts";
import { WatchedFiles } from "../../lib/files/watched-files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Ports } from "../../lib/ports.ts";
import type { DetachedSignature } from "./detached.ts";
import { KeyThread } from "./key-thread.ts";
import { SigningError } from "./signing-error.ts";
import type { KeyInfo, SigningOption } from "./signing-key.ts";

export interface SignerOptions extends Pick<Ports, "clock" | "log"> {
  /** The prefix of this key's options; `signing` unless given. */
  readonly option?: SigningOption;
  readonly keyFile: string;
  /** The first line of this file is the passphrase. */
  readonly passphraseFile: string | undefined;
  /** The passphrase, if it is in no file. */
  readonly passphrase: string | undefined;
  readonly metrics: Pick<Metrics, "signatures" | "signaturesWithheld" | "signingKeyExpiry" | "signingKeyProblem">;
  /** The program of a key's thread; `sign-worker` unless given. */
  readonly worker?: URL;
}

/**
 * The limits of one cache. It has room for one signature for each of 10,000 machines: a signature by RSA-4096 takes 1.5
 * KiB in its two forms. There are two caches, so that signatures of bodies that depend on a request never displace
 * those of shared bodies.
 */
const cacheLimits = { maxCount: 10_000, maxBytes: 16 * 1024 * 1024 };

/**
 * In UTF-16 units. Hashing this much takes a fraction of a millisecond. Longer bodies are hashed outside the event
 * loop.
 */
const maxHashedAtOnce = 64 * 1024;

/** The asking client, and the kind of body. */
interface SignatureAsker {
  /** True if the body is the same for every request, so that many clients can ask for its signature. */
  readonly isShared: boolean;
  /**
   * Returns the client's name; undefined for a client without a share of its own (see `Shares`). Called only if the
   * signature is not cached.
   */
  readonly client: () => string | undefined;
}

const nobody: SignatureAsker = { isShared: false, client: () => undefined };

/** A key in use, with its signatures. */
interface Current {
  readonly thread: KeyThread;
  /** Signatures of bodies that depend on the request. */
  readonly own: SignatureCache;
  /** Signatures of bodies that are the same for every request. */
  readonly shared: SignatureCache;
  readonly expiry: ExpiryWatch;
}

export class Signer {
  readonly #options: SignerOptions;
  readonly #option: SigningOption;
  readonly #files: WatchedFiles<KeyThread>;
  #current: Current | undefined;
  /** The previous key. It may still be signing for earlier requests. */
  #former: KeyThread | undefined;
  #isStopped = false;

  private constructor(options: SignerOptions) {
    this.#options = options;
    const { option = "signing", keyFile, passphraseFile, clock, log } = options;
    this.#option = option;
    const paths = [keyFile, ...(passphraseFile === undefined ? [] : [passphraseFile])];
    this.#files = new WatchedFiles({
      paths,
      secretPaths: paths,
      // A key file can be binary. latin1 keeps all of its bytes.
      encoding: "latin1",
      parse: (texts) => this.#read(texts),
      changed: (thread) => this.#use(thread),
      clock,
      log,
    });
  }

  /**
   * Reads the key, and then follows its files.
   * @throws {StartError} with the reason, if the key cannot sign.
   */
  static async open(options: SignerOptions): Promise<Signer> {
    const signer = new Signer(options);
    signer.#use(await signer.#files.start());
    return signer;
  }

  /** The public key, armored. */
  get publicKey(): string {
    return this.#key.thread.info.publicKey;
  }

  /**
   * Returns the signature of a text's UTF-8 bytes: directly if the text is short and its signature is cached, else as a
   * promise.
   * @throws {SigningError} if the text cannot be signed.
   */
  sign(body: string, asker = nobody): DetachedSignature | Promise<DetachedSignature> {
    if (body.length > maxHashedAtOnce) return this.#signLong(body, asker);
    const digest = hash("sha256", body, "base64");
    return this.#find(digest, asker) ?? this.#make(digest, new TextEncoder().encode(body), asker);
  }

  /**
   * Refuses to sign a text, and counts the refusal.
   * @throws {SigningError} withheld, always.
   */
  withhold(): never {
    this.#options.metrics.signaturesWithheld.inc();
    throw new SigningError("withheld");
  }

  /** Problems for the operator, one line each. */
  attention(): readonly string[] {
    const { problem } = this.#files;
    const lines = problem === "" ? [] : [`${problem}; the last good key signs`];
    const { notice } = this.#key.expiry;
    return [...lines, ...(notice === undefined ? [] : [notice])].map(
      (line) => `${this.#option === "signing" ? "sign" : "GRUB's key"}: ${line}`,
    );
  }

  /** Sets the metrics whose values are computed when they are read. */
  measure(): void {
    const { signingKeyExpiry, signingKeyProblem } = this.#options.metrics;
    const labels = this.#option === "signing" ? {} : { key: "grub" };
    signingKeyExpiry.set(labels, Math.floor((this.#key.thread.info.expiresAtMs ?? 0) / 1_000));
    signingKeyProblem.set(labels, this.#files.problem === "" ? 0 : 1);
  }

  /** Ends the key's thread. Requests that wait for a signature are refused. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#files.stop();
    this.#current?.expiry.stop();
    await Promise.all([this.#former?.stop(), this.#current?.thread.stop()]);
  }

  get #key(): Current {
    if (this.#current === undefined) throw new SigningError("failed");
    return this.#current;
  }

  async #signLong(body: string, asker: SignatureAsker): Promise<DetachedSignature> {
    const bytes = new TextEncoder().encode(body);
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("base64");
    return this.#find(digest, asker) ?? (await this.#make(digest, bytes, asker));
  }

  #find(digest: string, { isShared }: SignatureAsker): DetachedSignature | undefined {
    const { shared, own } = this.#key;
    const known = (isShared ? shared : own).find(digest);
    if (known !== undefined) this.#options.metrics.signatures.inc({ from: "cache" });
    return known;
  }

  async #make(
    digest: string,
    bytes: Uint8Array<ArrayBuffer>,
    { isShared, client }: SignatureAsker,
  ): Promise<DetachedSignature> {
    const { thread, shared, own, expiry } = this.#key;
    if (expiry.hasExpired) throw new SigningError("expired");
    const wish = { name: digest, isShared, client: client() };
    const make = async () => {
      const signature = await thread.sign(bytes, wish);
      this.#options.metrics.signatures.inc({ from: "key" });
      return signature;
    };
    return await (isShared ? shared : own).add(digest, make, () => thread.join(wish));
  }

  #read([key = "", passphraseText]: readonly string[]): Promise<KeyThread> {
    const { clock, worker } = this.#options;
    const passphrase = this.#passphrase(passphraseText);
    const material = { bytes: Buffer.from(key, "latin1"), passphrase, option: this.#option };
    return KeyThread.start({ material, clock, ...(worker && { worker }) });
  }

  #passphrase(text: string | undefined): string | undefined {
    if (text === undefined) return this.#options.passphrase;
    const [line = ""] = Buffer.from(text, "latin1").toString().split(/\r?\n/, 1);
    return line;
  }

  /** Uses this key from now on. Requests that already wait still get signatures by the previous key. */
  #use(thread: KeyThread): void {
    if (this.#isStopped) return void thread.stop();
    const { clock, log } = this.#options;
    const { fingerprint, userId } = thread.info;
    this.#current?.expiry.stop();
    this.#former = this.#current?.thread;
    void this.#former?.retire();
    log.info({ fingerprint, userId }, "signing by this key");
    const expiry = new ExpiryWatch({ info: thread.info, clock, log });
    const [own, shared] = [new SignatureCache(cacheLimits), new SignatureCache(cacheLimits)];
    this.#current = { thread, own, shared, expiry };
  }
}

const dayMs = 24 * 60 * 60 * 1_000;

/** This is enough for people who are away for some weeks. */
const warnAheadMs = 30 * dayMs;

interface ExpiryWatchOptions {
  readonly info: Pick<KeyInfo, "fingerprint" | "expiresAtMs">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn" | "error">;
}

/**
 * Logs once a day that a key expires soon, from 30 days before its end. Logs once that the key has expired. It checks
 * at least once a day, because the wall clock may be set in the meantime.
 */
export class ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  readonly #stopping = new AbortController();

  /** Checks immediately, and then again until `stop` or the end of the key. */
  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    const { expiresAtMs } = options.info;
    if (expiresAtMs !== undefined) void this.#follow(expiresAtMs);
  }

  /** True if the key has expired: davit signs nothing with it. */
  get hasExpired(): boolean {
    const { info, clock } = this.#options;
    return info.expiresAtMs !== undefined && info.expiresAtMs <= clock.nowMs();
  }

  /** A notice for the operator. Undefined until 30 days before the end, and for a key that never expires. */
  get notice(): string | undefined {
    const { info, clock } = this.#options;
    const { expiresAtMs } = info;
    if (expiresAtMs === undefined || expiresAtMs - clock.nowMs() > warnAheadMs) return undefined;
    const when = toRfc3339(expiresAtMs);
    return this.hasExpired
      ? `the signing key expired at ${when}, nothing is signed`
      : `the signing key expires at ${when}`;
  }

  /** Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  async #follow(expiresAtMs: number): Promise<void> {
    const { info, clock, log } = this.#options;
    const { signal } = this.#stopping;
    const data = { fingerprint: info.fingerprint, expiresAt: toRfc3339(expiresAtMs) };
    while (!signal.aborted) {
      const leftMs = expiresAtMs - clock.nowMs();
      if (leftMs <= 0) return log.error(data, "signing key has expired, nothing is signed");
      if (leftMs <= warnAheadMs) log.warn(data, "signing key expires soon");
      const untilNextMs = leftMs > warnAheadMs ? leftMs - warnAheadMs : leftMs;
      await clock.sleep(Math.min(untilNextMs, dayMs), signal);
    }
  }
}

interface SignatureCacheOptions {
  readonly maxCount: number;
  /** The most bytes of signatures, in both of their forms. The hashes of bodies are not counted. */
  readonly maxBytes: number;
}

/**
 * Caches the signatures of one key by the hash of the signed body. A repeated body costs only a hash. Requests for a
 * signature that is being made wait for the same one. The least recently used signatures are dropped first. A failure
 * is not cached.
 */
export class SignatureCache {
  readonly #made: LRUCache<string, DetachedSignature>;
  readonly #inTheMaking = new Map<string, Promise<DetachedSignature>>();

  constructor({ maxCount, maxBytes }: SignatureCacheOptions) {
    const sizeCalculation = ({ binary, armored }: DetachedSignature) => binary.length + armored.length;
    this.#made = new LRUCache({ max: maxCount, maxSize: maxBytes, sizeCalculation });
  }

  /** How many signatures are cached now. */
  get count(): number {
    return this.#made.size;
  }

  /** How many bytes of signatures are cached now. */
  get sizeBytes(): number {
    return this.#made.calculatedSize;
  }

  /** Returns the signature of the body with this hash; undefined if it is not cached. */
  find(digest: string): DetachedSignature | undefined {
    return this.#made.get(digest);
  }

  /**
   * Returns the signature of the body with this hash. If none is being made yet, it calls `make` and caches the result.
   * @param joined called if another request already began to make the signature.
   */
  add(digest: string, make: () => Promise<DetachedSignature>, joined?: () => void): Promise<DetachedSignature> {
    const begun = this.#inTheMaking.get(digest);
    if (begun !== undefined) {
      joined?.();
      return begun;
    }
    const making = this.#keep(digest, make);
    this.#inTheMaking.set(digest, making);
    return making;
  }

  async #keep(digest: string, make: () => Promise<DetachedSignature>): Promise<DetachedSignature> {
    try {
      const signature = await make();
      this.#made.set(digest, signature);
      return signature;
    } finally {
      this.#inTheMaking.delete(digest);
    }
  }
}

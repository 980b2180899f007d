/**
 * The keys of `--secrets-key-file`, by which davit encrypts the texts of Secrets before it stores them. The first key
 * encrypts, and each key decrypts. davit follows the file. Without the option, it stores the texts in the clear.
 */

import { hash, randomBytes } from "node:crypto";
import { backoffMs } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import { readTextKeys, TextKey } from "../../lib/files/text-key.ts";
import { WatchedFiles } from "../../lib/files/watched-files.ts";
import type { Log } from "../../lib/log.ts";
import { StartError } from "../../lib/start-error.ts";
import { secretsRoot } from "../../model/objects/documents.ts";
import {
  clearReader,
  clearTexts,
  encryptedSecretName,
  keyOfSecret,
  lacksKey,
  type SecretText,
  type SecretTexts,
} from "../../model/objects/secret-texts.ts";
import type { Store } from "../../store/store.ts";

interface SecretKeysOptions {
  /** Undefined without the option. */
  readonly path: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The pauses before a purge is repeated that failed, such as on a full disk. */
const retries = { firstMs: 10_000, capMs: 10 * 60_000 };
const purgeFailed =
  "purge failed: log and snapshots may still have texts of Secrets that the first key did not encrypt; " +
  "davit tries again";

export class SecretKeys implements SecretTexts {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #files: WatchedFiles<readonly TextKey[]> | undefined;
  readonly #listeners: (() => void)[] = [];
  #keys: readonly TextKey[] = [];
  #texts: SecretTexts;
  #secret: () => string | undefined = () => undefined;
  /** Names texts in the clear. */
  #naming = namingBy(randomBytes(32).toString("hex"));

  constructor({ path, clock, log }: SecretKeysOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#texts = this.#textsBy([]);
    const parse = ([text = ""]: readonly string[]) => readTextKeys(text);
    const changed = (keys: readonly TextKey[]) => this.#take(keys);
    this.#files =
      path === undefined
        ? undefined
        : new WatchedFiles({ paths: [path], secretPaths: [path], parse, changed, clock, log });
  }

  /** Reads the keys, and follows their file from then on. @throws {StartError} */
  async start(): Promise<void> {
    this.#keys = (await this.#files?.start()) ?? [];
    this.#texts = this.#textsBy(this.#keys);
  }

  /**
   * Makes the store names of texts in the clear from a secret of the ledger, so that they are the same after a restart
   * and in each member. While the ledger has no secret yet, davit uses a random one that lasts for this run.
   */
  nameBy(secret: () => string | undefined): void {
    this.#secret = secret;
  }

  /** Stops following the file. Idempotent. */
  stop(): void {
    this.#files?.stop();
  }

  /** Calls `listener` after each change of the keys. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Why the file cannot be used now, for a person. The last good keys stay. */
  get attention(): readonly string[] {
    const problem = this.#files?.problem ?? "";
    return problem === "" ? [] : [`secrets: ${problem}`];
  }

  /**
   * Refuses a store with encrypted texts if davit has no key at all: davit would replace them by texts in the clear.
   * @throws {StartError}
   */
  assertFor(store: Pick<Store, "follow">): void {
    if (this.#files !== undefined) return;
    let keyId: string | undefined;
    const replaced = (texts: Iterable<readonly [path: string, text: string]>) => {
      for (const [path] of texts) keyId ??= keyOfSecret(path);
    };
    store.follow(secretsRoot, { replaced, changed: () => {} })();
    if (keyId !== undefined)
      throw new StartError(`Cannot use the store: a Secret's text in it cannot be read: ${lacksKey(keyId)}`);
  }

  /**
   * Follows a store. When the store loses a text that the first key did not encrypt, davit purges the history and the
   * log, where the text would stay. The leader repeats a purge that failed. If a crash interrupts a purge, davit
   * repeats it at the start, or the next leader does.
   * @returns a function that ends this.
   */
  followAndPurge(store: Pick<Store, "follow" | "events" | "purge" | "membership" | "onLeadership">): () => void {
    const ending = new AbortController();
    let isOwed = false;
    let isRunning = false;
    const work = async () => {
      isRunning = true;
      let isDone: boolean;
      let isToRetry: boolean;
      let failures = 0;
      // What is removed meanwhile needs one further purge, however many texts it is.
      do {
        isOwed = false;
        this.#log.info({}, "purging history and log of texts of Secrets that the first key did not encrypt");
        isDone = await store.purge();
        // Only the leader can shorten the log, and it may stop before it does.
        isToRetry = !isDone && store.membership.isLeader;
        if (!isToRetry) continue;
        this.#log.warn({ failures: failures + 1 }, purgeFailed);
        await this.#clock.sleep(backoffMs(failures++, retries), ending.signal);
      } while ((isOwed || isToRetry) && !ending.signal.aborted);
      isOwed = !isDone;
      isRunning = false;
    };
    const purge = () => {
      isOwed = true;
      if (!isRunning) void work();
    };
    const isStale = (path: string) => this.#files !== undefined && keyOfSecret(path) !== this.#keys[0]?.id;
    const isSecret = (path: string) => path.startsWith(`${secretsRoot}/`);
    store.onLeadership((isLeading) => {
      if (isLeading && (isOwed || isRunning)) purge();
    });
    const unfollow = store.follow(secretsRoot, {
      replaced: () => {
        if (store.events.some(({ node }) => isSecret(node.path) && isStale(node.path))) purge();
      },
      changed: (changes) => {
        if (changes.some(({ path, text }) => text === undefined && isStale(path))) purge();
      },
    });
    return () => {
      ending.abort();
      unfollow();
    };
  }

  nameOf(text: string): string {
    return this.#texts.nameOf(text);
  }

  namesOf(text: string): readonly string[] {
    return this.#texts.namesOf(text);
  }

  encode(path: string, text: string): string {
    return this.#texts.encode(path, text);
  }

  decode(path: string, stored: string): SecretText {
    return this.#texts.decode(path, stored);
  }

  #textsBy(keys: readonly TextKey[]): SecretTexts {
    return encryptedTexts(keys, (text) => {
      const { secret } = this.#naming;
      const now = this.#secret() ?? secret;
      if (now !== secret) this.#naming = namingBy(now);
      return this.#naming.key.digest(text);
    });
  }

  #take(keys: readonly TextKey[]): void {
    this.#keys = keys;
    this.#texts = this.#textsBy(keys);
    this.#log.info({ keys: keys.map(({ id }) => id) }, "keys of Secrets read again: the first one encrypts");
    for (const listener of this.#listeners) listener();
  }
}

function namingBy(secret: string): { readonly secret: string; readonly key: TextKey } {
  return { secret, key: new TextKey(Buffer.from(secret, "hex")) };
}

const sha256 = (text: string) => hash("sha256", text, "hex");

/**
 * Returns how texts are stored with these keys: the first one encrypts, and each decrypts. A text in the clear can be
 * read, too. Without keys, texts are stored in the clear.
 * @param digest names texts in the clear.
 */
export function encryptedTexts(keys: readonly TextKey[], digest = sha256): SecretTexts {
  const inTheClear = clearTexts(digest, sha256);
  const keyOf = (path: string) => keys.find(({ id }) => id === keyOfSecret(path));
  const [first] = keys;
  if (first === undefined) return inTheClear;
  return {
    nameOf: (text) => nameBy(first, text),
    namesOf: (text) => [...inTheClear.namesOf(text), ...keys.map((key) => nameBy(key, text))],
    encode: (path, text) => {
      const key = keyOf(path);
      assert(key !== undefined, "A text is named and encrypted in one turn, and keys change between turns");
      return key.encrypt(text, path);
    },
    decode: (path, stored) => {
      const key = keyOf(path);
      if (key === undefined) return clearReader.decode(path, stored);
      const text = key.decrypt(stored, path);
      const problem = `the stored text is not what key ${key.id} encrypted for it: davit replaces it at the next sync`;
      return text === undefined ? { problem } : { text };
    },
  };
}

function nameBy(key: TextKey, text: string): string {
  return encryptedSecretName(key.id, key.digest(text));
}

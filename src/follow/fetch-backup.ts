/** Fetches a backup of a store in another process. The caller checks whether the backup is whole. */

import { backupPath } from "../model/backup-path.ts";
import { FollowError } from "./follow-error.ts";
import { answerTo, asFollowError, askStore, type StoreCredentials } from "./store-request.ts";

export interface FetchBackupOptions {
  /** The store's origin. */
  readonly url: URL;
  readonly credentials: StoreCredentials;
  /** The longest silence before the connection ends; 60 s unless given. */
  readonly silenceMs?: number;
  /** Ends the connection immediately. */
  readonly signal: AbortSignal;
}

// It is long because nothing is read while the disk that gets the backup is busy. Such a pause counts as silence, too.
const presetSilenceMs = 60_000;

/**
 * Yields the bytes as soon as they arrive.
 * @throws {FollowError} when the answer cannot be read to its end; `ended` when `signal` ended the connection.
 */
export async function* fetchBackup(options: FetchBackupOptions): AsyncIterable<Uint8Array> {
  const { url, credentials, silenceMs: timeout = presetSilenceMs, signal } = options;
  if (signal.aborted) throw new FollowError("ended");
  const sent = askStore(new URL(backupPath, url), credentials, { timeout });
  let isSilent = false;
  const stop = () => sent.destroy(new FollowError("ended"));
  sent.on("timeout", () => {
    isSilent = true;
    stop();
  });
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of await answerTo(sent)) yield Buffer.from(chunk);
  } catch (error) {
    // After a timeout, the error depends on how far the answer was. The caller gets `silent` in any case.
    throw isSilent ? new FollowError("silent") : asFollowError(error);
  } finally {
    signal.removeEventListener("abort", stop);
    sent.destroy();
  }
}

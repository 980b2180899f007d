/** Fetches a backup of a store in another process. Its reader checks whether it is whole. */

import { backupPath } from "../model/backup-path.ts";
import { FollowError } from "./follow-error.ts";
import { answerTo, asFollowError, askStore, type StoreCredentials } from "./store-request.ts";

export interface FetchBackupOptions {
  /** The store's origin. */
  readonly url: URL;
  readonly credentials: StoreCredentials;
  /** Longer silence ends the connection; 60 s unless given. */
  readonly silenceMs?: number;
  /** Ends it at once. */
  readonly signal: AbortSignal;
}

// While the disk that receives the backup is busy, nothing is read: such a pause counts as silence, too.
const presetSilenceMs = 60_000;

/**
 * The bytes as they arrive.
 * @throws {FollowError} with the reason why there are no more; `ended` when `signal` ended it.
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
    // The error of our own cut depends on how far the answer was.
    throw isSilent ? new FollowError("silent") : asFollowError(error);
  } finally {
    signal.removeEventListener("abort", stop);
    sent.destroy();
  }
}

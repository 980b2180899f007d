/** Why an asset could not be had; the message completes a sentence that names the asset, and quotes no query string. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  /** True when it may go better another time. */
  readonly mayPass: boolean;
  /** How long the server wants to be left alone; 0 when it does not say. */
  readonly retryAfterMs: number;

  constructor(message: string, { mayPass = false, retryAfterMs = 0 } = {}) {
    super(message);
    this.mayPass = mayPass;
    this.retryAfterMs = retryAfterMs;
  }
}

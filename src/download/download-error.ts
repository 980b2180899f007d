/** Why an asset could not be downloaded. The message follows the asset's name and quotes no query string. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  /** True when a retry may succeed. */
  readonly mayPass: boolean;
  /** The server's Retry-After; 0 without one. */
  readonly retryAfterMs: number;

  constructor(message: string, { mayPass = false, retryAfterMs = 0 } = {}) {
    super(message);
    this.mayPass = mayPass;
    this.retryAfterMs = retryAfterMs;
  }
}

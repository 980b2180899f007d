/** The reason why an asset could not be downloaded. Messages put it after the asset's name. It never quotes a URL. */
export class DownloadError extends Error {
  override readonly name = "DownloadError";
  /** True if a retry may succeed. */
  readonly mayPass: boolean;
  /** The wait that the server asked for (`Retry-After`); 0 if it asked for none. */
  readonly retryAfterMs: number;

  constructor(message: string, { mayPass = false, retryAfterMs = 0 } = {}) {
    super(message);
    this.mayPass = mayPass;
    this.retryAfterMs = retryAfterMs;
  }
}

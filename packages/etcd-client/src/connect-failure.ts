/** Why there is no connection to an endpoint, in a sentence with the cure. */

interface ConnectFailureDetails {
  readonly isDenied?: boolean;
  readonly isEarlyEnd?: boolean;
  readonly cause?: unknown;
}

/** A connection that could not be made, or that davit gave up. The message is the end of "etcd at URL: …". */
export class ConnectFailure extends Error {
  override readonly name = "ConnectFailure";
  /** The server refuses this client, or this client refuses the server: a retry does not help. */
  readonly isDenied: boolean;
  /** The other side took the connection and ended it. It may not speak the same protocol, or it stops right now. */
  readonly isEarlyEnd: boolean;

  constructor(sentence: string, { isDenied = false, isEarlyEnd = false, cause }: ConnectFailureDetails = {}) {
    super(sentence, { cause });
    this.isDenied = isDenied;
    this.isEarlyEnd = isEarlyEnd;
  }
}

interface Sentence {
  readonly codes: RegExp;
  readonly text: string;
  readonly isDenied?: boolean;
}

/** By the code of Node's or OpenSSL's error. */
const sentences: readonly Sentence[] = [
  { codes: /^ECONNREFUSED$/, text: "nothing listens there" },
  { codes: /^(ENOTFOUND|EAI_AGAIN)$/, text: "its name is not known: correct the endpoint, or look at DNS" },
  { codes: /^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/, text: "it cannot be reached: look at routes and firewalls" },
  { codes: /^(ENOENT|EACCES|EISDIR|ENOTDIR)$/, text: "a file of davit's certificates cannot be read" },
  { codes: /^CERT_HAS_EXPIRED$/, text: "its certificate has expired", isDenied: true },
  { codes: /^CERT_NOT_YET_VALID$/, text: "its certificate is not valid yet: look at the clocks", isDenied: true },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    text: "its certificate is not for this host name: correct the endpoint or the certificate",
    isDenied: true,
  },
  {
    codes: /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|CERT_)/,
    text: "its certificate is not signed by the authority in the CA file",
    isDenied: true,
  },
  {
    codes: /^ERR_SSL_.*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)/,
    text: "it refuses davit's client certificate, or requires one",
    isDenied: true,
  },
  {
    codes: /^ERR_OSSL_|^ERR_TLS_|^ERR_CRYPTO_/,
    text: "davit's client certificate and key do not fit, or cannot be read",
    isDenied: true,
  },
  {
    codes: /^(ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO)$/,
    text: "it does not speak TLS: use http:// in the endpoint",
    isDenied: true,
  },
];

/** For an error before the first answer on a connection. */
export function connectFailure(error: unknown, isTls: boolean): ConnectFailure {
  if (error instanceof ConnectFailure) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known = sentences.find(({ codes }) => codes.test(code));
  if (known !== undefined) return new ConnectFailure(known.text, { isDenied: known.isDenied ?? false, cause: error });
  // The other side took the connection, and ended it or said something else than HTTP/2.
  const what = `it ended the connection at once${code === "" ? "" : ` (${code})`}`;
  const advice = isTls ? ": use http:// in the endpoint if it does not speak TLS" : "";
  return new ConnectFailure(`${what}${advice}`, { isEarlyEnd: true, cause: error });
}

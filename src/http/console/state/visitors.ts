/**
 * Decides who visits the console, and what this visitor may do. A visitor is admitted by one of these:
 * - By davit's own computer, where the operations listener needs no token (`guard/ops-guard.ts`).
 * - By a token of a token file: a reader, or an administrator, who may also change the ledger.
 * - By a Kubernetes token: whoever may list davit's objects reads, and changes objects as far as the API server allows.
 *   davit takes such tokens only from its own computer, which includes port-forwards, and from a trusted proxy that
 *   speaks HTTPS.
 *
 * A browser exchanges its token for a session cookie. Tokens are in memory only, and each request checks them again, so
 * that a removed token ends its sessions. Every change needs a form token, which no other web page can read, and the
 * console's own origin.
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../../lib/clock.ts";
import { Places } from "../../../lib/fair-queue.ts";
import { Shares } from "../../../lib/shares.ts";
import type { CallerReview, ClusterCallers } from "../../../model/cluster-callers.ts";
import type { Holder } from "../../client-shares.ts";
import { RequestError } from "../../errors.ts";
import type { OpsGuard } from "../../guard/ops-guard.ts";
import { tokenDigest, tokenOf } from "../../guard/tokens.ts";

/** Who visits the console. */
export interface Visitor {
  /** For people: an account's name, or where the visitor's right comes from. */
  readonly name: string;
  /** The user, for shares of sessions and live pages: an account, or the owner of a token of a token file. */
  readonly user: string;
  /** True if the visitor may correct the ledger. */
  readonly mayChangeLedger: boolean;
  /** The Kubernetes token, for changes of objects; undefined for other visitors. */
  readonly clusterToken?: string;
  /** Returns whether the visitor may change Machines of a namespace. */
  readonly mayPatch: (namespace: string) => Promise<boolean>;
  /** The value that every form of this visitor must send back. */
  readonly formToken: string;
  /** True if the visitor has a session that can be ended. */
  readonly hasSession: boolean;
}

interface VisitorsOptions {
  readonly guard: Pick<OpsGuard, "rightsOf">;
  /** Undefined without a cluster. */
  readonly callers: () => ClusterCallers | undefined;
  /** True for a connection from davit's own computer, or from a trusted proxy that was reached by HTTPS. */
  readonly isPrivate: (request: IncomingMessage) => boolean;
  /** The client of a request, for shares by client. */
  readonly clientOf: (request: IncomingMessage) => Holder;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Why somebody is no visitor; the sign-in page shows it. */
export class SignInNeeded extends Error {
  override readonly name = "SignInNeeded";
}

export const sessionCookie = "davit-session";

export class Visitors {
  readonly #options: VisitorsOptions;
  readonly #secret = randomBytes(32);
  readonly #sessions: Sessions;
  readonly #reviews: TokenReviews;
  /** Whether accounts may change Machines, by the digests of tokens and the namespaces. */
  readonly #patchRights: LRUCache<string, Promise<boolean | undefined>>;

  constructor(options: VisitorsOptions) {
    this.#options = options;
    const perf = { now: () => options.clock.monotonicMs() };
    this.#sessions = new Sessions(options);
    this.#reviews = new TokenReviews(options);
    this.#patchRights = new LRUCache({ max: maxReviews, ttl: reviewMs, perf });
  }

  /**
   * Returns the visitor who sends a request.
   * @throws {SignInNeeded} if a token is missing, wrong, or no longer valid.
   * @throws {RequestError} if no token could help.
   */
  async of(request: IncomingMessage): Promise<Visitor> {
    const { authorization, cookie } = request.headers;
    const session = sessionIn(cookie);
    const ofSession = session === undefined ? undefined : this.#sessions.tokenOf(session);
    const token = tokenOf(authorization) ?? ofSession;
    if (token === undefined) return this.#withoutToken(request);
    return { ...(await this.#byToken(token, request)), hasSession: ofSession === token };
  }

  /**
   * Begins a session.
   * @returns the value of its cookie.
   * @throws as `of`.
   */
  async signIn(token: string, request: IncomingMessage): Promise<string> {
    const { user } = await this.#byToken(token, request);
    return this.#sessions.begin({ token, user });
  }

  /** Ends the session of a request. */
  signOut({ headers }: IncomingMessage): void {
    const session = sessionIn(headers.cookie);
    if (session !== undefined) this.#sessions.end(session);
  }

  /**
   * Refuses a change that the console's own page has not sent.
   * @param formToken what the form has sent.
   * @throws {RequestError} fromWebPage
   */
  checkForm(request: IncomingMessage, visitor: Visitor, formToken: string | null): void {
    this.checkOrigin(request);
    const [given, wanted] = [Buffer.from(formToken ?? ""), Buffer.from(visitor.formToken)];
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw new RequestError("fromWebPage");
  }

  /** Refuses a form of another web page. @throws {RequestError} fromWebPage */
  checkOrigin({ headers }: IncomingMessage): void {
    if (!isOwnOrigin(headers)) throw new RequestError("fromWebPage");
  }

  #withoutToken(request: IncomingMessage): Visitor {
    const rights = this.#options.guard.rightsOf(request.headers);
    if (rights instanceof RequestError) {
      if (rights.reason === "noToken" || this.#options.callers() !== undefined) throw new SignInNeeded("");
      throw rights;
    }
    const name = "this computer";
    const formToken = this.#formToken("");
    return { name, user: name, mayChangeLedger: rights.mayChange, mayPatch: never, formToken, hasSession: false };
  }

  async #byToken(token: string, request: IncomingMessage): Promise<Omit<Visitor, "hasSession">> {
    if (!tokenForm.test(token)) throw new SignInNeeded("This token is not known.");
    const formToken = this.#formToken(token);
    const rights = this.#options.guard.rightsOf({ ...request.headers, authorization: `Bearer ${token}` });
    if (!(rights instanceof RequestError) && rights.hasToken) {
      const name = rights.mayChange ? "the admin token file" : "the token file";
      const user = `token ${tokenDigest(token).toString("base64")}`;
      return { name, user, mayChangeLedger: rights.mayChange, mayPatch: never, formToken };
    }
    const { isPrivate, clientOf } = this.#options;
    const callers = this.#options.callers();
    if (callers === undefined) throw new SignInNeeded("This token is not known.");
    if (!isPrivate(request)) throw new SignInNeeded(notPrivate);
    const review = await this.#reviews.of(token, clientOf(request), callers);
    if (review === undefined) throw new SignInNeeded("Too many tokens are checked now: try again.");
    if (review.kind === "admitted") {
      const mayPatch = (namespace: string) => this.#mayPatch(token, namespace, callers);
      const { name } = review;
      return { name, user: `account ${name}`, mayChangeLedger: false, mayPatch, clusterToken: token, formToken };
    }
    throw new SignInNeeded(review.kind === "unknown" ? "This token is not known." : review.why);
  }

  async #mayPatch(token: string, namespace: string, callers: ClusterCallers): Promise<boolean> {
    const key = `${tokenDigest(token).toString("base64")} ${namespace}`;
    const asked = this.#patchRights.get(key) ?? callers.mayPatchMachines(token, namespace);
    this.#patchRights.set(key, asked, { ttl: reviewMs, noUpdateTTL: true });
    const may = await asked;
    // The next request asks again.
    if (may === undefined) this.#patchRights.delete(key);
    return may === true;
  }

  #formToken(token: string): string {
    return createHmac("sha256", this.#secret).update(tokenDigest(token)).digest("base64url");
  }
}

async function never(): Promise<boolean> {
  return false;
}

/** Every token has this form; others could not stand in a header. */
const tokenForm = /^[\x21-\x7e]{1,8192}$/;

const notPrivate =
  "davit takes Kubernetes tokens only over a port-forward, or over HTTPS by a proxy of --trusted-proxy: " +
  "kubectl port-forward, then open the console at localhost.";

function sessionIn(cookie = ""): string | undefined {
  const found = cookie.split(";").map((pair) => pair.trim().split("="));
  return found.find(([name]) => name === sessionCookie)?.[1];
}

/** A browser names the origin of the page with every form that it sends. */
function isOwnOrigin({ origin, host }: IncomingMessage["headers"]): boolean {
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false;
  return new URL(origin).host.toLowerCase() === host.toLowerCase();
}

interface Session {
  readonly token: string;
  readonly user: string;
}

const maxSessions = 1_024;
/** A session ends when nothing is asked for this long. */
const sessionMs = 12 * 60 * 60_000;

/**
 * The sessions of the console. In their cookies, browsers have random values that stand for tokens. If there are too
 * many sessions, a new one ends the oldest of the user with the most.
 */
class Sessions {
  /** By the digests of their cookies, so that a look-up does not reveal how much of a guess is right. */
  readonly #sessions: LRUCache<string, Session>;
  /** How many each user has. */
  readonly #shares = new Shares({ limit: maxSessions });

  constructor({ clock }: { readonly clock: Pick<Clock, "monotonicMs"> }) {
    this.#sessions = new LRUCache({
      max: maxSessions,
      ttl: sessionMs,
      updateAgeOnGet: true,
      perf: { now: () => clock.monotonicMs() },
      dispose: ({ user }) => this.#shares.release(user),
    });
  }

  /** Begins a session. @returns the value of its cookie. */
  begin(session: Session): string {
    if (this.#sessions.size >= maxSessions) this.#makeRoom();
    const value = randomBytes(32).toString("base64url");
    this.#sessions.set(keyOf(value), session);
    this.#shares.add(session.user, 1);
    return value;
  }

  /** The token of a session; undefined if the session has ended. @param value of the cookie. */
  tokenOf(value: string): string | undefined {
    return this.#sessions.get(keyOf(value))?.token;
  }

  /** Ends a session. Idempotent. @param value of the cookie. */
  end(value: string): void {
    this.#sessions.delete(keyOf(value));
  }

  #makeRoom(): void {
    this.#sessions.purgeStale();
    if (this.#sessions.size < maxSessions) return;
    const [largest] = this.#shares.largest ?? [];
    for (const key of this.#sessions.rkeys()) {
      if (this.#sessions.peek(key)?.user === largest) return void this.#sessions.delete(key);
    }
  }
}

function keyOf(value: string): string {
  return tokenDigest(value).toString("base64");
}

/** How long the API server's answer about an account counts. */
const reviewMs = 30_000;
const maxReviews = 1_024;
const maxRunning = 4;
/** The most reviews of new tokens that wait or run. One client has at most half of these places. */
const maxNew = 64;

/**
 * Asks the API server to which accounts the Kubernetes tokens of visitors belong. Few reviews run at a time, so that
 * whoever guesses tokens does not load the API server. The others wait: tokens that were admitted before take turns
 * with new ones, and in each of the two kinds, clients take turns. So nobody who guesses tokens ends a session or keeps
 * others from signing in.
 */
class TokenReviews {
  /** Reviews of tokens that the API server knows, by the digests of the tokens. */
  readonly #known: LRUCache<string, CallerReview>;
  /** Reviews that wait or run. */
  readonly #pending = new Map<string, Promise<CallerReview>>();
  readonly #places = new Places(maxRunning);
  readonly #newOnes = new Shares({ limit: maxNew });

  constructor({ clock }: { readonly clock: Pick<Clock, "monotonicMs"> }) {
    const perf = { now: () => clock.monotonicMs() };
    // An old review still says that its token was admitted.
    this.#known = new LRUCache({ max: maxReviews, ttl: reviewMs, perf, noDeleteOnStaleGet: true });
  }

  /**
   * Returns what the API server says of a token, or said in the last 30 s.
   * @returns undefined if too many tokens wait.
   */
  async of(token: string, client: Holder, callers: ClusterCallers): Promise<CallerReview | undefined> {
    const key = tokenDigest(token).toString("base64");
    const found = this.#known.get(key) ?? this.#pending.get(key);
    if (found !== undefined) return await found;
    const isNew = this.#known.peek(key, { allowStale: true })?.kind !== "admitted";
    if (isNew && !this.#newOnes.take(client)) return undefined;
    const review = this.#places.run([isNew ? "new" : "admitted", client ?? ""], () => callers.review(token));
    this.#pending.set(key, review);
    try {
      const { kind } = await review;
      if (kind === "unknown") this.#known.delete(key);
      else if (kind !== "away") this.#known.set(key, await review);
      return await review;
    } finally {
      this.#pending.delete(key);
      if (isNew) this.#newOnes.release(client);
    }
  }
}

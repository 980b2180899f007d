/**
 * dnsmasq as a child of davit: with the least rights, watched, and started again when it ends. Its lines become lines
 * of davit's log. While it is down davit answers machines as before.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { backoffMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { StartError } from "../lib/start-error.ts";
import { visible } from "../lib/text/visible.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import { nobody, systemPath } from "./network.ts";

interface DnsmasqChildOptions {
  /** The text of dnsmasq.conf. dnsmasq reads it from its standard input, so no file can be changed meanwhile. */
  readonly config: string;
  /** True to run it as `nobody`. */
  readonly changesUser: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts when davit must stop. */
  readonly stop: AbortSignal;
}

const capabilities = "-all,+net_admin,+net_raw,+net_bind_service";
const waits = { firstMs: 1_000, capMs: 60_000 };
/** One that ran this long has worked: the next wait is the first one again. */
const provenMs = 60_000;
/** A signal that ends davit and all of its children may reach dnsmasq first. */
const signalMs = 200;
const startLimitMs = 10_000;
const stopLimitMs = 3_000;
/** A machine's boot has about 30 lines. A flood of requests must not fill the disk. */
const lineRate = { perSecond: 100, burst: 2_000 };
const maxLineLength = 500;
const startedLine = /^started, version /;
/** With `log-dhcp` a line that begins with the number of a request; all but the messages are details. */
const detailLine = /^\d+ (?!DHCP|PXE|BOOTP)/;

/** @throws {StartError} if a program is missing, with the command that installs it. */
export async function assertPrograms(): Promise<void> {
  const packages = { dnsmasq: "dnsmasq-base", setpriv: "util-linux" };
  for (const [program, package_] of Object.entries(packages)) {
    const paths = systemPath.split(":").map((folder) => access(join(folder, program), constants.X_OK));
    const isThere = await Promise.any(paths).then(
      () => true,
      () => false,
    );
    if (!isThere) throw new StartError(`No ${program}, which --dhcp needs: run apt-get install ${package_}`);
  }
}

export class DnsmasqChild {
  readonly #options: DnsmasqChildOptions;
  readonly #lines: TokenBucket;
  readonly #ending = new AbortController();
  readonly #stopping: AbortSignal;
  #process: ChildProcess | undefined;
  /** Of those that are about no single request. */
  #lastLine = "";
  #dropped = 0;
  #problem: string | undefined;
  #watched: Promise<void> | undefined;

  constructor(options: DnsmasqChildOptions) {
    this.#options = options;
    this.#stopping = AbortSignal.any([options.stop, this.#ending.signal]);
    this.#lines = new TokenBucket({ clock: options.clock, ...lineRate });
  }

  /** Why it does not run; undefined while it runs. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * Starts dnsmasq, and resolves when it answers machines.
   * @throws {StartError} if it ends at once, with what it said.
   */
  async start(): Promise<void> {
    const { clock } = this.#options;
    const over = new AbortController();
    let isStarted = false;
    const ended = this.#run(() => {
      isStarted = true;
      over.abort();
    });
    void ended.then(() => over.abort());
    await clock.sleep(startLimitMs, over.signal);
    if (!isStarted) {
      await this.stop();
      throw new StartError(`Cannot start dnsmasq: ${this.#lastLine || "it is silent"}`);
    }
    this.#watched = this.#watch(ended);
  }

  /** Ends dnsmasq, and waits until it is gone. Idempotent. */
  async stop(): Promise<void> {
    this.#ending.abort();
    const child = this.#process;
    if (child !== undefined && isRunning(child)) {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      const late = new AbortController();
      void this.#options.clock.sleep(stopLimitMs, late.signal).then(() => late.signal.aborted || child.kill("SIGKILL"));
      await gone;
      late.abort();
    }
    await this.#watched;
  }

  /** Starts dnsmasq whenever it has ended. */
  async #watch(first: Promise<void>): Promise<void> {
    const { clock, log } = this.#options;
    let [ended, attempt, startedAtMs] = [first, 0, clock.monotonicMs()];
    for (;;) {
      await ended;
      await clock.sleep(signalMs, this.#stopping);
      if (this.#stopping.aborted) return;
      attempt = clock.monotonicMs() - startedAtMs >= provenMs ? 0 : attempt;
      const waitMs = backoffMs(attempt, waits);
      this.#problem = `dnsmasq has ended: ${this.#lastLine}`;
      log.error({ line: this.#lastLine, waitMs }, "dnsmasq has ended, machines get no DHCP until it runs again");
      await clock.sleep(waitMs, this.#stopping);
      if (this.#stopping.aborted) return;
      attempt += 1;
      startedAtMs = clock.monotonicMs();
      ended = this.#run(() => {
        this.#problem = undefined;
      });
    }
  }

  /** Runs dnsmasq once. @returns a promise of its end, which never rejects. */
  async #run(started: () => void): Promise<void> {
    const { config, changesUser } = this.#options;
    const identity = [`--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"];
    const rights = ["inh-caps", "ambient-caps", "bounding-set"].map((name) => `--${name}=${capabilities}`);
    const own = [...(changesUser ? [...identity, ...rights] : []), "--no-new-privs", "--pdeathsig=TERM"];
    // As a daemon dnsmasq would change its user itself, and keep more rights than it needs.
    const words = [...own, "--", "dnsmasq", "--no-daemon", "--conf-file=-"];
    const env = { PATH: systemPath, LC_ALL: "C" };
    const child = spawn("setpriv", words, { stdio: ["pipe", "ignore", "pipe"], env });
    this.#process = child;
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once("close", () => resolve());
    child.once("error", (error) => {
      this.#lastLine = `setpriv does not run (${codeOf(error) ?? "unknown error"})`;
      resolve();
    });
    // If it ends before it has read all, the end has the reason.
    child.stdin.on("error", () => undefined).end(`${config}\n`);
    createInterface({ input: child.stderr }).on("line", (line) => this.#take(line, started));
    await promise;
  }

  #take(raw: string, started: () => void): void {
    const { log } = this.#options;
    // The prefix is the time, and the program with its number.
    const text = raw.replace(/^\w{3} [ \d]\d [\d:]{8} (?=dnsmasq)/, "").replace(/^dnsmasq[\w-]*(\[\d+\])?: /, "");
    const line = visible(text.slice(0, maxLineLength));
    if (line === "") return;
    if (!/^(\d|sent |file )/.test(line)) this.#lastLine = line;
    if (startedLine.test(line)) started();
    if (!this.#lines.tryTake()) {
      this.#dropped += 1;
      return;
    }
    if (this.#dropped > 0) log.warn({ count: this.#dropped }, "lines of dnsmasq dropped, there were too many");
    this.#dropped = 0;
    if (detailLine.test(line)) log.debug({ line }, "dnsmasq");
    else log.info({ line }, "dnsmasq");
  }
}

function isRunning({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null;
}

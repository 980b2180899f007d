/** A server process of a test cluster. It ends with the process that started it, even when that one is killed. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { systemClock } from "../../src/lib/clock.ts";

export interface DaemonOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Its output is appended here. */
  readonly logFile: string;
}

// An API server is ready after four seconds; this allows for a machine that is busy with other suites.
const readyLimitMs = 120_000;
const askAgainMs = 25;

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  private constructor(options: DaemonOptions, child: ChildProcess) {
    this.#options = options;
    this.#child = child;
    // It was not even started: the log is where the reason is looked for.
    this.#exit = once(child, "exit").catch((error) => appendFileSync(options.logFile, `${error}\n`));
  }

  /** Starts it, in a process group of its own: Ctrl-C on a terminal is for the one who started it. */
  static start(options: DaemonOptions): Daemon {
    const log = openSync(options.logFile, "a");
    const command = ["--pdeathsig", "KILL", options.program, ...options.args];
    const child = spawn("setpriv", command, { stdio: ["ignore", log, log], detached: true });
    closeSync(log);
    return new Daemon(options, child);
  }

  get isRunning(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Stops it where it is, and waits until none of its threads runs: connections stay, and are silent. */
  async pause(): Promise<void> {
    this.#child.kill("SIGSTOP");
    await untilReady(`${this.#options.name} to stand still`, [this], async () => this.#assertStands());
  }

  /** Ends a pause. */
  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Ends it without a chance to tidy up, and waits until it is gone. */
  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.#child.kill("SIGKILL");
    await this.#exit;
  }

  /** The state follows the name, which is in parentheses (proc_pid_stat(5)); T is stopped. A thread may end meanwhile. */
  #assertStands(): void {
    const tasks = `/proc/${this.#child.pid}/task`;
    const stats = readdirSync(tasks).map((id) => readFileSync(`${tasks}/${id}/stat`, "utf8"));
    const running = stats.filter((stat) => !/\) T /.test(stat));
    if (running.length > 0) throw new Error(`these threads run: ${running.join(" ")}`);
  }

  /** @throws {Error} with the end of its log, when it has ended by itself. */
  assertRunning(): void {
    if (this.isRunning) return;
    const lines = readFileSync(this.#options.logFile, "utf8").trimEnd().split("\n");
    throw new Error(`${this.#options.name} has ended:\n${lines.slice(-20).join("\n")}`);
  }
}

/**
 * Asks again and again until something is so.
 * @param assertReady throws with the reason while it is not.
 * @throws {Error} when one of the daemons ends first, or it takes two minutes, with the last reason.
 */
export async function untilReady(what: string, daemons: readonly Daemon[], assertReady: () => Promise<void>) {
  const giveUpAtMs = systemClock.monotonicMs() + readyLimitMs;
  for (;;) {
    try {
      return await assertReady();
    } catch (error) {
      for (const daemon of daemons) daemon.assertRunning();
      if (systemClock.monotonicMs() > giveUpAtMs) throw new Error(`Waiting for ${what} for two minutes: ${error}`);
    }
    await systemClock.sleep(askAgainMs);
  }
}

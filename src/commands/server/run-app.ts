/** The common part of `davit serve` and `davit boot`, which run until a signal stops them. */

import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import { type JobKind, warnOfMemory } from "../../lib/memory-limit.ts";
import { StartError } from "../../lib/start-error.ts";
import type { Environment } from "../../options/parsing.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { WalError } from "../../store/core/log-port.ts";
import { type CommandLine, readCommandLine } from "../core/command-line.ts";
import type { CliCommand, Host } from "../core/host.ts";
import { readVersion } from "../core/version.ts";

// davit exits after this time even if a part has not stopped. Kubernetes sends SIGKILL 30 s after SIGTERM, and a person
// at a terminal does not wait that long.
const stopLimitMs = 10_000;

/** What a serving command runs. `Facts` holds the facts for the welcome text. */
interface RunningApp<Facts extends object> {
  start(): Promise<{ readonly ready: Promise<Facts> }>;
  stop(): Promise<void>;
}

interface ServingCommand<Config extends ServiceConfig, Facts extends object> extends CommandLine<Config> {
  /** The threads for jobs, besides the one for assets. */
  readonly jobs: readonly JobKind[];
  readonly createApp: (options: {
    readonly config: Config;
    readonly log: Log;
    /** Writes a line without its newline to standard output, between the lines of the log. */
    readonly writeLine: (line: string) => void;
    readonly clock: Clock;
    /** Aborts when davit must stop, even while it starts. */
    readonly stop: AbortSignal;
    readonly version: string;
    readonly environment: Environment;
  }) => RunningApp<Facts>;
  /**
   * Returns the welcome text for a terminal, without its last newline. Called when davit begins to answer machines.
   */
  readonly welcome: (facts: Facts, config: Config) => string;
}

/** Makes a command that runs until a signal stops it. */
export function servingCommand<Config extends ServiceConfig, Facts extends object>(
  command: ServingCommand<Config, Facts>,
): CliCommand {
  return {
    help: command.help,
    run: async (args, host) => {
      const read = readCommandLine(command, args, host);
      return read.kind === "over" ? read.exitCode : await serveUntilStopped(command, read.config, host);
    },
  };
}

async function serveUntilStopped<Config extends ServiceConfig, Facts extends object>(
  { createApp, jobs, welcome }: ServingCommand<Config, Facts>,
  config: Config,
  host: Host,
): Promise<number> {
  const format = config.logFormat ?? (host.outputIsTerminal ? "pretty" : "json");
  const log = createLog({ level: config.logLevel, format, onExit: host.onExit });
  const hasAssets = config.assetsDir !== undefined;
  warnOfMemory(log, {
    limitBytes: host.memoryLimitBytes,
    cacheBytes: hasAssets ? config.limits.assetsCacheBytes : 0,
    bootThreads: config.bootThreads,
    jobs: hasAssets ? [...jobs, "digest"] : jobs,
  });
  const { writeLine } = log;
  const around = { log, writeLine, clock: systemClock, stop: host.stop, environment: host.environment };
  const app = createApp({ ...around, config, version: readVersion() });
  try {
    const { ready } = await app.start();
    const facts = ready.then((served) => {
      if (format === "pretty") writeLine(welcome(served, config));
      else log.info(served, "serving");
    });
    await Promise.race([aborted(host.stop), facts.then(() => aborted(host.stop))]);
  } catch (error) {
    if (!(error instanceof StartError || error instanceof WalError)) throw error;
    const { aborted: isStopped } = host.stop;
    if (!isStopped) host.writeError(`${error.message}\n`);
    await app.stop();
    return isStopped ? 0 : 1;
  }
  log.info({}, "stopping");
  void systemClock.sleep(stopLimitMs).then(() => host.exit(1));
  await app.stop();
  log.info({}, "stopped");
  host.exit(0);
  return 0;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

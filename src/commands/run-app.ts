/** What every command that serves has in common: reading its options, and running until it is told to stop. */

import { statSync } from "node:fs";
import type { Paths, ServiceConfig } from "../config.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { createLog, type Log } from "../lib/log.ts";
import { StartError } from "../lib/start-error.ts";
import type { Environment } from "../options.ts";
import { ConfigError } from "../options.ts";
import { WalError } from "../store/log-port.ts";
import { readVersion } from "../version.ts";
import type { Host } from "./host.ts";

// Kubernetes sends SIGKILL 30 s after SIGTERM; a person at a terminal waits less.
const stopLimitMs = 10_000;

/** What a command serves by. `Told` is what it says of itself once machines are answered. */
interface RunningApp<Told extends object> {
  start(): Promise<{ readonly ready: Promise<Told> }>;
  stop(): Promise<void>;
}

export interface ServingCommand<Config extends ServiceConfig, Told extends object> {
  /** The command's name, for advice. */
  readonly name: string;
  readonly help: () => string;
  /** @throws {ConfigError} */
  readonly readConfig: (args: readonly string[], environment: Environment, paths: Paths) => Config;
  readonly createApp: (options: {
    readonly config: Config;
    readonly log: Log;
    readonly clock: Clock;
    readonly version: string;
  }) => RunningApp<Told>;
  /** What a person at a terminal reads once machines are answered. */
  readonly welcome: (told: Told, config: Config) => string;
}

/** Runs such a command to its end and gives the exit code. */
export async function runServing<Config extends ServiceConfig, Told extends object>(
  command: ServingCommand<Config, Told>,
  args: readonly string[],
  host: Host,
): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    host.write(command.help());
    return 0;
  }
  const config = readConfig(command, args, host);
  return config === undefined ? 2 : await serveUntilStopped(command, config, host);
}

function readConfig<Config extends ServiceConfig, Told extends object>(
  { name, readConfig: read }: ServingCommand<Config, Told>,
  args: readonly string[],
  host: Host,
): Config | undefined {
  try {
    return read(args, host.environment, diskPaths);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) host.writeError(`${problem}\n`);
    host.writeError(`See davit ${name} --help\n`);
    return undefined;
  }
}

async function serveUntilStopped<Config extends ServiceConfig, Told extends object>(
  { createApp, welcome }: ServingCommand<Config, Told>,
  config: Config,
  host: Host,
): Promise<number> {
  const format = config.logFormat ?? (host.outputIsTerminal ? "pretty" : "json");
  const log = createLog({ level: config.logLevel, format, onExit: host.onExit });
  const app = createApp({ config, log, clock: systemClock, version: readVersion() });
  try {
    const { ready } = await app.start();
    const told = ready.then((served) => {
      if (format === "pretty") host.write(welcome(served, config));
      else log.info(served, "serving");
    });
    await Promise.race([aborted(host.stop), told.then(() => aborted(host.stop))]);
  } catch (error) {
    if (!(error instanceof StartError || error instanceof WalError)) throw error;
    host.writeError(`${error.message}\n`);
    await app.stop();
    return 1;
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

const diskPaths: Paths = {
  isDirectory: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true,
  isFile: (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true,
};

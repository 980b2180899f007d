import { statSync } from "node:fs";
import { App } from "../app.ts";
import { ConfigError, readServeConfig, type ServeConfig, serveHelp } from "../config.ts";
import { systemClock } from "../lib/clock.ts";
import { createLog } from "../lib/log.ts";
import { StartError } from "../lib/start-error.ts";
import { WalError } from "../store/log-port.ts";
import { readVersion } from "../version.ts";
import type { Command, Host } from "./host.ts";
import { welcome } from "./welcome.ts";

// Kubernetes sends SIGKILL 30 s after SIGTERM; a person at a terminal waits less.
const stopLimitMs = 10_000;

/** Everything in one process: a source, the controller, the store and the boot service. */
export const serve: Command = {
  name: "serve",
  summary: "serve boot configs from Profiles and Groups",
  run: async (args, host) => {
    if (args.includes("--help") || args.includes("-h")) {
      host.write(serveHelp());
      return 0;
    }
    const config = readConfig(args, host);
    return config === undefined ? 2 : await serveUntilStopped(config, host);
  },
};

function readConfig(args: readonly string[], host: Host): ServeConfig | undefined {
  try {
    return readServeConfig(args, host.environment, isDirectory);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) host.writeError(`${problem}\n`);
    host.writeError("See davit serve --help\n");
    return undefined;
  }
}

async function serveUntilStopped(config: ServeConfig, host: Host): Promise<number> {
  const format = config.logFormat ?? (host.outputIsTerminal ? "pretty" : "json");
  const log = createLog({ level: config.logLevel, format });
  const app = new App({ config, log, clock: systemClock, version: readVersion() });
  try {
    const { ready } = await app.start();
    const told = ready.then((served) => {
      if (format === "pretty") host.write(welcome(served, config.manifests));
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

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

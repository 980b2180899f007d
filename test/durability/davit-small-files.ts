/**
 * `davit serve` as src/main.ts starts it, but with segments and snapshots so small that every short life has some of
 * both: a crash is to meet them.
 */

import { App } from "../../src/app/app.ts";
import { servingCommand } from "../../src/commands/server/run-app.ts";
import { readServeConfig, serveHelp } from "../../src/options/serve.ts";

const storeSizes = { maxSegmentBytes: 256 * 1024, snapshotInterval: { records: 300, bytes: 2 ** 30 } };

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());

const [, , , ...args] = process.argv;
const serve = servingCommand({
  name: "serve",
  help: serveHelp,
  readConfig: readServeConfig,
  jobs: [],
  createApp: (options) => new App({ ...options, storeSizes }),
  welcome: () => "",
});
process.exitCode = await serve.run(args, {
  args,
  environment: process.env,
  outputIsTerminal: false,
  input: { isTerminal: false, pieces: () => process.stdin },
  write: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
  stop: stop.signal,
  onExit: (callback) => process.once("exit", callback),
  exit: (code) => process.exit(code),
});

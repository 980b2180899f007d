// The only file that touches the process: everything else gets what it needs through `Host`.
// An older Node must get as far as the check below. So files that need a newer Node are imported after it.

const oldestMajor = 24;
const major = Number(process.versions.node.split(".")[0]);

if (major < oldestMajor) {
  const cure = 'start it by "make run", which brings its own';
  process.stderr.write(`davit needs Node ${oldestMajor}, this is ${process.versions.node}: ${cure}\n`);
  process.exitCode = 1;
} else {
  // V8 need not compile again what it compiled at an earlier start. Without a folder for it, davit only starts slower.
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  const home = CACHE_DIRECTORY || XDG_CACHE_HOME || HOME;
  // Node never stops trying to make a folder below one that cannot be made, as in /proc.
  if (home && (await import("node:fs")).existsSync(home)) {
    const cache = CACHE_DIRECTORY || (XDG_CACHE_HOME ? `${XDG_CACHE_HOME}/davit` : `${HOME}/.cache/davit`);
    (await import("node:module")).enableCompileCache(cache);
  }
  const { run } = await import("./commands/commands.ts");
  const { enforceThreadLimits } = await import("./lib/memory-limit.ts");
  enforceThreadLimits();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      // A second signal ends davit without cleanup: its sender does not want to wait.
      if (stop.signal.aborted) process.exit(1);
      stop.abort();
    });
  }
  let outputFailed = false;
  // EPIPE: the reader has seen enough and closed the pipe, as in `| head`. This is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return;
    if (!outputFailed) process.stderr.write(`Writing standard output: ${error.code ?? "failed"}\n`);
    outputFailed = true;
    process.exitCode = 2;
  });
  const exitCode = await run({
    args: process.argv.slice(2),
    environment: process.env,
    outputIsTerminal: process.stdout.isTTY === true,
    // Functions, so that standard input stays untouched unless a command reads it.
    input: {
      get isTerminal() {
        return process.stdin.isTTY === true;
      },
      pieces: () => process.stdin,
    },
    write: (text) => process.stdout.write(text),
    writeError: (text) => process.stderr.write(text),
    memoryLimitBytes: process.constrainedMemory(),
    stop: stop.signal,
    onExit: (callback) => process.once("exit", callback),
    exit: (code) => process.exit(code),
  });
  process.exitCode = outputFailed ? 2 : exitCode;
}

export {};

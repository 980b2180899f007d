// The only file that touches the process: everything else gets what it needs through `Host`.
// An older Node stops at the check below, so nothing that needs a newer one is imported before it.

const oldestMajor = 24;
const major = Number(process.versions.node.split(".")[0]);

if (major < oldestMajor) {
  const cure = 'start it by "make run", which brings its own';
  process.stderr.write(`davit needs Node ${oldestMajor}, this is ${process.versions.node}: ${cure}\n`);
  process.exitCode = 1;
} else {
  const { run } = await import("./commands/run.ts");
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      // A second signal means that the first one was not obeyed soon enough.
      if (stop.signal.aborted) process.exit(1);
      stop.abort();
    });
  }
  let outputFailed = false;
  // Whoever reads the output may have seen enough (`| head`): the rest is written for nobody, and that is all.
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
    // Looked at only by commands that read it.
    input: {
      get isTerminal() {
        return process.stdin.isTTY === true;
      },
      pieces: () => process.stdin,
    },
    write: (text) => process.stdout.write(text),
    writeError: (text) => process.stderr.write(text),
    stop: stop.signal,
    onExit: (callback) => process.once("exit", callback),
    exit: (code) => process.exit(code),
  });
  process.exitCode = outputFailed ? 2 : exitCode;
}

export {};

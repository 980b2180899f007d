/** What a command may use of its process. */
export interface Host {
  /** Command line without the program: the command's name first. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly outputIsTerminal: boolean;
  readonly input: Input;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /** Registers a callback for the end of the process, which must not wait for anything. */
  readonly onExit: (callback: () => void) => void;
  /** Ends the process at once. */
  readonly exit: (code: number) => void;
}

/** Standard input. */
interface Input {
  /** True if nothing is piped in: a person would have to type it. */
  readonly isTerminal: boolean;
  /** Its pieces in their order; read it once. */
  readonly pieces: () => AsyncIterable<Uint8Array>;
}

/** One command of the command line. */
export interface CliCommand {
  readonly name: string;
  /** Half a sentence for the list of commands. */
  readonly summary: string;
  /** True for a command without cleanup: a signal ends it at once. */
  readonly endsAtOnce?: boolean;
  /** Runs to the end and returns the exit code: 0 done, 1 failed, 2 the command line is wrong. */
  readonly run: (args: readonly string[], host: Host) => Promise<number>;
}

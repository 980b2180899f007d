/** What a command may ask of the process it runs in. */
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
  /** Calls back at the end of the process, when nothing can be waited for any more. */
  readonly onExit: (callback: () => void) => void;
  /** Ends the process at once. */
  readonly exit: (code: number) => void;
}

/** Standard input. */
interface Input {
  /** Nothing is piped in: a person would have to type it. */
  readonly isTerminal: boolean;
  /** Its pieces in their order; to be read once. */
  readonly pieces: () => AsyncIterable<Uint8Array>;
}

/** One word of the command line. */
export interface CliCommand {
  readonly name: string;
  /** Half a sentence for the list of commands. */
  readonly summary: string;
  /** True for one that has nothing to tidy up: a signal ends it at once, wherever it is. */
  readonly endsAtOnce?: boolean;
  /** Runs to the end and gives the exit code: 0 done, 1 failed, 2 the command line is wrong. */
  readonly run: (args: readonly string[], host: Host) => Promise<number>;
}

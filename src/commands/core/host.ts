import type { CommandHelp } from "../../options/parsing.ts";

/** The parts of the process that a command may use. */
export interface Host {
  /** The command line after the program's name; the first word is the command's name. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly outputIsTerminal: boolean;
  readonly input: Input;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
  /** The memory limit of the process's container, in bytes. Without a limit, it is more than the computer has, or 0. */
  readonly memoryLimitBytes?: number;
  /** Aborts at the first SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  /** Registers a callback for the end of the process. The callback must not wait for anything. */
  readonly onExit: (callback: () => void) => void;
  /** Ends the process immediately. */
  readonly exit: (code: number) => void;
}

/** Standard input. */
interface Input {
  /** True if nothing is piped in: a person would have to type the input. */
  readonly isTerminal: boolean;
  /** Yields the input piece by piece. Call it only once. */
  readonly pieces: () => AsyncIterable<Uint8Array>;
}

/** A command in a list of commands. */
export interface ListedCommand {
  /** The word or words that call it. */
  readonly name: string;
  /** A short phrase for the list. */
  readonly summary: string;
  /** Reads the command's files. Nothing else does, so that a command starts without the files of the others. */
  readonly load: () => Promise<CliCommand>;
}

/** One command of the command line. */
export interface CliCommand {
  /** The commands behind a second word, whose names have both words. */
  readonly parts?: readonly ListedCommand[];
  /** Undefined for a command without options. */
  readonly help?: CommandHelp;
  /** True for a command without cleanup: a signal ends it immediately. */
  readonly endsAtOnce?: boolean;
  /** Runs the command. Returns the exit code: usually 0 for success, 1 for failure, 2 for a wrong command line. */
  readonly run: (args: readonly string[], host: Host) => Promise<number>;
}

/** `davit import` as a person runs it. */

import { execFile } from "node:child_process";
import { davitProgram } from "../../tools/davit-process.ts";

export interface ImportRun {
  readonly code: number;
  readonly output: string;
  readonly complaints: string;
}

export function runImport(...args: readonly string[]): Promise<ImportRun> {
  return runProgram([process.execPath, davitProgram, "import", ...args]);
}

/** The same without what lets root read every file. */
export function runImportUnprivileged(...args: readonly string[]): Promise<ImportRun> {
  const dropped = ["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"];
  const drop = process.getuid?.() === 0 ? ["setpriv", ...dropped] : [];
  return runProgram([...drop, process.execPath, davitProgram, "import", ...args]);
}

function runProgram([program = "", ...args]: readonly string[]): Promise<ImportRun> {
  return new Promise((resolve) => {
    execFile(program, args, (error, output, complaints) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, output, complaints });
    });
  });
}

import { statSync } from "node:fs";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { readBackup } from "../../store/backup/backup.ts";
import { WalError } from "../../store/core/log-port.ts";
import { inspectDirectory } from "../../store/inspect/inspect.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { sentenceOf } from "../core/command-line.ts";
import type { CliCommand, Host } from "../core/host.ts";
import { backupReport, directoryReport, isSecret, verdict } from "./inspect-report.ts";

const soundCode = 0;
const damagedCode = 1;
const notInspectedCode = 2;

const help = `Usage: davit inspect PATH

Reads a backup, or the data directory of a davit that does not run, and verifies every checksum. It says which texts of
Secrets are in it, and the key that encrypts them. It writes nothing.
Exit code 0: sound. 1: damaged; each place is printed. 2: it was not inspected.
`;

/** `davit inspect`: shows what is in a backup or a data directory, and whether it is damaged. */
export const inspect: CliCommand = {
  endsAtOnce: true,
  run: async (args, host) => {
    if (args.includes("--help") || args.includes("-h")) {
      host.write(help);
      return soundCode;
    }
    const [path, ...others] = args;
    const option = args.find((word) => word.startsWith("-"));
    if (path === undefined || option !== undefined || others.length > 0) {
      const problem =
        option === undefined
          ? "No single path: give one backup or one data directory"
          : `Unknown option "${option}": give one backup or one data directory, and nothing else`;
      host.writeError(`${problem}\nSee davit inspect --help\n`);
      return notInspectedCode;
    }
    try {
      return await inspectPath(path, host);
    } catch (error) {
      return reportFailure(diskFailure("Reading", path, error), host);
    }
  },
};

function reportFailure(error: unknown, host: Host): number {
  const sentence = sentenceOf(error);
  if (sentence === undefined) throw error;
  const isDamage = error instanceof WalError && error.reason === "damaged";
  if (isDamage) host.write(verdict([sentence]));
  else host.writeError(`${sentence}\n`);
  return isDamage ? damagedCode : notInspectedCode;
}

async function inspectPath(path: string, host: Host): Promise<number> {
  if (!statSync(path).isDirectory()) {
    host.write(backupReport(path, await readBackup(() => diskFiles.readPieces(path), `"${path}"`)));
    host.write(verdict([]));
    return soundCode;
  }
  const unlock = await lockIfThere(path);
  try {
    const values = new Set<string>();
    const report = await inspectDirectory(diskFiles, path, (place) => {
      if (isSecret(place)) values.add(place);
    });
    host.write(directoryReport(path, report, values));
    host.write(verdict(report.damage));
    return report.damage.length === 0 ? soundCode : damagedCode;
  } finally {
    unlock();
  }
}

/**
 * Locks a data directory, and returns the function that unlocks it. If the lock's file is missing, no davit has a lock.
 * If the file cannot be opened for writing, davit reads the directory without a lock.
 */
async function lockIfThere(directory: string): Promise<() => void> {
  const nothingToUnlock = () => undefined;
  if (!(await diskFiles.list(directory)).includes("lock.db")) return nothingToUnlock;
  try {
    const lock = lockDirectory(directory, { mends: false });
    return () => lock.release();
  } catch (error) {
    if (error instanceof WalError && error.reason === "unusable") return nothingToUnlock;
    throw error;
  }
}

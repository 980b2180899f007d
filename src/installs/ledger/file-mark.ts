/**
 * The mark of a ledger without a cluster: a file in the data directory. It shows that the ledger's directory alone was
 * replaced by an older copy, or that the etcd of several members was. It does not show that the whole data directory
 * was rolled back: a cluster keeps its mark elsewhere.
 */

import { join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { parseJsonObject } from "../../model/json.ts";
import type { LedgerMark, Mark } from "./mark-keeper.ts";

const fileName = "ledger-mark";

/**
 * Ends the ledger of a data directory whose store is moved to another place: the next davit there begins a new ledger.
 * Meanwhile a person may have adopted machines in the other place, and the former ledger does not know them.
 * @throws a system error.
 */
export async function endFileLedger(files: Files, directory: string): Promise<void> {
  await writeMark(files, directory, { id: "moved", index: 0 });
}

/** Returns the mark in a data directory. @param isOwn see `LedgerMark`. */
export function fileMark(files: Files, directory: string, isOwn: boolean): LedgerMark {
  const read = async () => {
    const text = await files.read(join(directory, fileName)).catch((error: unknown) => {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    const { id, index, beganAtMs } = parseJsonObject(text.toString("utf8")) ?? {};
    // Without a readable mark, nobody knows whether the ledger is whole.
    if (typeof id !== "string" || typeof index !== "number") throw new Error(`"${fileName}" is damaged`);
    return { id, index, ...(typeof beganAtMs === "number" && { beganAtMs }) };
  };
  return {
    isOwn,
    // The ledger's own log waits for the same disk, and a write takes all claims that came during the one before.
    pauseMs: 0,
    read,
    write: async (id, index, beganAtMs) => {
      const known = await read();
      if (known?.id === id && known.index >= index) return;
      await writeMark(files, directory, { id, index, beganAtMs });
    },
  };
}

async function writeMark(files: Files, directory: string, mark: Mark): Promise<void> {
  await writeWholeFile(files, directory, fileName, [Buffer.from(`${JSON.stringify(mark)}\n`)]);
}

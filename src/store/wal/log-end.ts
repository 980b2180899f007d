/**
 * Keeps the last known end of the log in the file `log-end`. With it, a start notices if the end of the log is missing,
 * even if all remaining files are whole. davit writes the file at each start, at each new segment and at a clean stop,
 * so the file may lag behind the log.
 *
 * The file has one line of JSON, `{"v":1,"clusterId":"…","sequence":1983}`, and a second line with the CRC-32 of the
 * first in hex.
 */

import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import type { Log } from "../../lib/log.ts";
import { number, object, parsed, text } from "../../lib/shape.ts";
import { WalError } from "../core/log-port.ts";
import { unreadable } from "../core/stored-json.ts";
import { type LogEnd, startOverAdvice } from "./recover.ts";

export const logEndName = "log-end";

interface KnownEnd {
  readonly clusterId: bigint;
  /** The sequence of a durable record. */
  readonly sequence: number;
}

interface EndNoteOptions {
  readonly files: Files;
  readonly directory: string;
  readonly log: Log;
  readonly clusterId: bigint;
}

/** Writes `log-end`. A failure is only logged, because the file is needed only to notice damage. */
export class EndNote {
  readonly #options: EndNoteOptions;
  /** The segment of the last noted record. */
  #segment: string | undefined;

  constructor(options: EndNoteOptions) {
    this.#options = options;
  }

  /** Notes a record of a segment, unless one of its records was noted before. */
  async segmentHas(segment: string, sequence: number): Promise<void> {
    if (this.#segment === segment) return;
    this.#segment = segment;
    await this.write(sequence);
  }

  async write(sequence: number): Promise<void> {
    const { files, directory, log, clusterId } = this.#options;
    const line = `${JSON.stringify({ v: 1, clusterId: clusterId.toString(16), sequence })}\n`;
    try {
      await writeWholeFile(files, directory, logEndName, [Buffer.from(`${line}${crc32(line).toString(16)}\n`)]);
    } catch (error) {
      log.warn({ err: error }, "how far the log reaches cannot be noted, so a missing end would not be noticed");
    }
  }
}

/** Reads `log-end`; undefined if there is no such file. @throws {WalError} damaged. */
export async function readLogEnd(files: Files, directory: string): Promise<KnownEnd | undefined> {
  if (!(await files.list(directory)).includes(logEndName)) return undefined;
  const [line = "", crc] = (await files.read(join(directory, logEndName))).toString("latin1").split("\n");
  const known = parsed(object({ clusterId: text, sequence: number }), line);
  if (crc32(`${line}\n`).toString(16) !== crc || known === undefined) throw unreadable("end of the log");
  return { clusterId: BigInt(`0x${known.clusterId}`), sequence: known.sequence };
}

/**
 * Compares the end of a log with its noted end.
 * @param onUnreadable called when the note is damaged. Then nothing is compared.
 * @throws {WalError} damaged, when durable records are missing at the log's end.
 */
export async function checkKnownEnd(
  { files, directory }: { readonly files: Files; readonly directory: string },
  end: LogEnd | undefined,
  onUnreadable: (error: WalError) => void = () => undefined,
): Promise<void> {
  const known = await readLogEnd(files, directory).catch((error: unknown) => {
    if (!(error instanceof WalError)) throw error;
    onUnreadable(error);
    return undefined;
  });
  if (known !== undefined) checkReaches(known, end, directory);
}

function checkReaches(known: KnownEnd, end: LogEnd | undefined, directory: string): void {
  const isSame = end === undefined || end.head.clusterId === known.clusterId;
  if (!isSame || (end?.lastSequence ?? 0) >= known.sequence) return;
  const found = end === undefined ? "no segment of its log is there" : `its log ends with record ${end.lastSequence}`;
  const path = join(directory, logEndName);
  const what = `${found}, but record ${known.sequence} was written`;
  const advice = `bring back the missing files, ${startOverAdvice}`;
  const accept = `to go on without the records that are missing, remove "${path}"`;
  throw new WalError("damaged", `Reading "${directory}": ${what}; ${advice}; ${accept}`);
}

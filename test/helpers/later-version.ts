/** What a davit of later years would write at the beginning of a segment, or of a snapshot. */

import { crc32 } from "node:zlib";

const headBytes = { segment: 72, snapshot: 32 } as const;

/** Gives a file of the store another version, which its checksum confirms. */
export function ofVersion(kind: keyof typeof headBytes, version: number): (content: Buffer) => Buffer {
  return (content) => {
    content.writeUInt32LE(version, 8);
    const behind = content.subarray(16, headBytes[kind]);
    content.writeUInt32LE(crc32(behind, crc32(content.subarray(0, 12))), 12);
    return content;
  };
}

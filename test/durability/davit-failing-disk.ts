/**
 * To be loaded before davit: while the file that FAILING_DISK names is there, no sync of this process succeeds, as on a
 * disk that fails. What is written reaches the page cache all the same.
 */

import { existsSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const handle = await open(import.meta.filename);
const prototype: Pick<FileHandle, "datasync" | "sync"> = Object.getPrototypeOf(handle);
await handle.close();

for (const name of ["datasync", "sync"] as const) {
  const working = prototype[name];
  prototype[name] = async function (this: FileHandle) {
    if (existsSync(process.env.FAILING_DISK ?? "")) {
      throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
    }
    await working.call(this);
  };
}

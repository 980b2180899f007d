/** Programs that suites start beside themselves, such as DHCP servers. */

import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

export type ChildProgram = ChildProcessByStdio<Writable, Readable, Readable>;

/** Resolves when it has written a text. @throws {Error} with all that it wrote, when it ends instead. */
export function says(child: ChildProgram, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let written = "";
    const take = (more: string) => {
      written += more;
      if (written.includes(text)) resolve();
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.on("error", reject);
    child.on("close", (code) => reject(new Error(`${child.spawnargs.join(" ")} ended with ${code}\n${written}`)));
  });
}

/** Ends it, if it still runs, and waits until it is gone. */
export async function end(child: ChildProgram): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, "exit");
}

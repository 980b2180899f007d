/** What the reports of the benchmarks have in common. */

import { loadavg } from "node:os";

export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}

export function load(): string {
  return `load average ${loadavg()
    .map((value) => value.toFixed(1))
    .join(" ")}`;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

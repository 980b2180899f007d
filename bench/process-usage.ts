/** What another process uses, as Linux reports it. */

import { readFileSync } from "node:fs";

// The unit of /proc/PID/stat: sysconf(_SC_CLK_TCK), which is 100 on every Linux that Node runs on.
const ticksPerSecond = 100;
const userTimeField = 11;
const systemTimeField = 12;

/** Processor time so far, microseconds, to 10 ms. */
export function cpuMicrosecondsOf(pid: number): number {
  // The name, in parentheses, may hold blanks.
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  const ticks = Number(fields[userTimeField]) + Number(fields[systemTimeField]);
  return (ticks / ticksPerSecond) * 1e6;
}

/** Resident memory, bytes. */
export function residentBytesOf(pid: number): number {
  const [, kibibytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
  return Number(kibibytes) * 1024;
}

/**
 * Makes GRUB wait. GRUB runs the body of an answer whatever its status, and ignores `Retry-After`. So the body of a 503
 * is a script that sleeps and reads its own address again, until it gets another answer.
 *
 * Only the first such script loops. A script that the loop reads stores its reason in a variable and ends. So the loop
 * needs the same memory for hours as for seconds. The address is GRUB's own `$config_file`: nothing from the request is
 * in the script.
 */

import { quote } from "./words.ts";

// GRUB takes about 20 seconds for an attempt that nobody answers. A restart of davit takes less time than twelve
// attempts.
const maxSilences = 12;

/**
 * The line that ends the waiting. GRUB does not report whether it could read a file, so an answer must leave a trace. A
 * config that davit writes sets `default`. Every other final answer at `/grub` has this line.
 */
const answered = "set davit_answered=yes\n";

/** Returns a Profile's own config with the line that ends the waiting. The config may not return, so it comes first. */
export function answering(script: string): string {
  return answered + script;
}

/** Returns the body of an error that ends the waiting. */
export function answeringError(words: string): string {
  return `# ${words}\n${answered}`;
}

/**
 * Writes a config that waits.
 * @param words the reason, for the machine's screen.
 * @param seconds the pause between two attempts.
 */
export function waitingConfig(words: string, seconds: number): string {
  const end = ".".repeat(maxSilences);
  const again = `"Asking again in ${seconds} seconds"`;
  const lines = [
    `# ${words}`,
    `set davit_wait=${quote(words)}`,
    `if [ "$davit_waits" != "yes" ]; then`,
    "set davit_waits=yes",
    "set davit_silence=",
    `set davit_default="$default"`,
    `while [ "$davit_silence" != "${end}" ]; do`,
    `if [ -n "$davit_wait" ]; then`,
    `echo "davit: $davit_wait." ${again}`,
    "set davit_silence=",
    "else",
    `echo "davit: no answer." ${again}`,
    `set davit_silence="$davit_silence."`,
    "fi",
    `sleep ${seconds}`,
    "set davit_wait=",
    "set davit_answered=",
    // A config sees `default` as at its first reading. A value of an earlier config would count as an answer.
    "unset default",
    `source "$config_file"`,
    `if [ -n "$default$davit_answered" ]; then`,
    `set davit_silence="${end}"`,
    "fi",
    "done",
    "set davit_waits=",
    `if [ -z "$default" ]; then`,
    `set default="$davit_default"`,
    "fi",
    "fi",
  ];
  return lines.map((line) => `${line}\n`).join("");
}

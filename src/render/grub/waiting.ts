/**
 * Makes GRUB wait. GRUB runs the body of an answer whatever its status, and knows no `Retry-After`. So a 503 is a
 * script that sleeps and reads its own address again, until something else comes.
 *
 * Only the first such script loops. The scripts that it reads leave their words for it and end, so that hours of
 * waiting take no memory. The address is GRUB's own `$config_file`: nothing of the request is in the script.
 */

import { quote } from "./words.ts";

// An attempt takes GRUB about 20 seconds when nobody answers: a restart of davit is over by then.
const maxSilences = 12;

/**
 * Writes a config that waits.
 * @param words the reason, for the machine's screen.
 * @param seconds between two attempts.
 */
export function waitingConfig(words: string, seconds: number): string {
  const end = ".".repeat(maxSilences);
  const again = `"Asking again in ${seconds} seconds"`;
  // GRUB does not report whether it could read a file. davit's configs set `default`, so an unchanged one means no.
  const unread = "davit";
  const lines = [
    `# ${words}`,
    `set davit_wait=${quote(words)}`,
    `if [ "$davit_waits" != "yes" ]; then`,
    "set davit_waits=yes",
    "set davit_silence=",
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
    `set default=${unread}`,
    `source "$config_file"`,
    `if [ "$default" != "${unread}" ]; then`,
    `set davit_silence="${end}"`,
    "fi",
    "done",
    "set davit_waits=",
    "fi",
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** How iPXE and Linux read a line, as models for tests: written from their sources, and measured with both. */

/** What a script's `kernel` line hands to the kernel; undefined where iPXE would read another line than is written. */
export function readByIpxe(script: string): string | undefined {
  const settings = new Map<string, string>();
  const [, ...lines] = script.split("\n").map((line) => line.split(" ").filter((word) => word !== ""));
  if (lines.flat().some((word) => /^(?:#|(?:\|\||&&|;)$)/.test(word))) return undefined;
  for (const line of lines) {
    const [command, name = "", ...rest] = line.map((word) => expanded(word, settings));
    if (command === "kernel") return rest.join(" ");
    if (command === "set")
      settings.set(name.replace(":hex", ""), String.fromCharCode(Number.parseInt(rest.join(), 16)));
  }
  return undefined;
}

/** iPXE fills the innermost token first, and looks at the result again. */
function expanded(word: string, settings: ReadonlyMap<string, string>): string {
  const end = word.indexOf("}", word.indexOf("${"));
  const start = word.lastIndexOf("${", end);
  if (start < 0 || end < 0) return word;
  const [name = ""] = word.slice(start + 2, end).split(":");
  return expanded(word.slice(0, start) + (settings.get(name) ?? "") + word.slice(end + 1), settings);
}

/** What GRUB hands to the kernel of words that its script parser has read. */
export function writtenByGrub(words: readonly string[]): string {
  return words
    .map((word) => word.replaceAll(/["'\\]/g, String.raw`\$&`))
    .map((word) => (word.includes(" ") ? `"${word}"` : word))
    .join(" ");
}

/** Words in double quotes as GRUB's script parser reads them. */
export function readByGrub(line: string): readonly string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, word = ""]) => word.replaceAll(/\\(["\\$])/g, "$1"));
}

/**
 * The arguments of a command line as Linux takes them apart: lib/cmdline.c, next_arg, byte for byte. A quote that is
 * never closed takes all that follows.
 */
export function readByLinux(commandLine: string): readonly string[] {
  const bytes = Buffer.from(commandLine, "utf8").toString("latin1");
  const words = bytes.match(/(?:"[^"]*(?:"|$)|[^ \u00a0"])+/g) ?? [];
  return words.map((word) => Buffer.from(unquoted(word), "latin1").toString("utf8"));
}

function unquoted(word: string): string {
  const isWhole = word.startsWith('"');
  const rest = isWhole ? word.slice(1) : word;
  const equals = rest.indexOf("=", 1);
  const isPart = equals > 0 && rest[equals + 1] === '"';
  const inner = isPart ? rest.slice(0, equals + 1) + rest.slice(equals + 2) : rest;
  return (isWhole || isPart) && inner.endsWith('"') ? inner.slice(0, -1) : inner;
}

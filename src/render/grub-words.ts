/** Words of GRUB's script language: how arguments become words, tokens become values, and values become quoted text. */

import type { Labels } from "../model/labels.ts";

/**
 * Splits an argument on white space outside double quotes, and removes those quotes, as the Linux kernel reads its
 * command line: `opt="two words" quiet` is `opt=two words` and `quiet`. GRUB quotes such a word again for the kernel.
 */
export function wordsOf(argument: string): readonly string[] {
  const words = argument.match(/(?:"[^"]*"?|[^\s"])+/g) ?? [];
  return words.map((word) => word.replaceAll('"', "")).filter((word) => word !== "");
}

/**
 * Fills iPXE's tokens, which GRUB does not know, from the labels of the request. An unknown or unsent name is nothing,
 * as in iPXE; an unfinished token stays. A filled value is not looked at again.
 */
export function fillTokens(text: string, labels: Labels): string {
  return text.replaceAll(/\$\{([^}]*)\}/g, (_token, name: string) => tokenValue(name, labels));
}

/** Quotes a text for GRUB: control characters are dropped, backslash, double quote and dollar are escaped. */
export function quote(text: string): string {
  return `"${text.replaceAll(/\p{Cc}/gu, "").replaceAll(/[\\"$]/g, String.raw`\$&`)}"`;
}

const tokenLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain"]);

function tokenValue(name: string, labels: Labels): string {
  if (name === "mac:hexhyp") return (labels.get("mac") ?? "").replaceAll(":", "-");
  return tokenLabels.has(name) ? (labels.get(name) ?? "") : "";
}

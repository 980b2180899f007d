/** What the screen of a machine shows that booted the quickstart with `davit.check=1`. */

import { expect } from "vitest";
import { tail } from "../firmware/power-on.ts";

/** Linux came up with this word among its arguments. */
export function expectUserSpace(screen: string, word: string): void {
  const [commandLine = tail(screen)] = screen.split("\n").filter((line) => line.includes("KERNEL-COMMAND-LINE "));
  expect(commandLine.split(" ")).toContain(word);
}

/** The same, and Linux found its configs by davit's address. */
export function expectChecked(screen: string, authority: string, word: string): void {
  expectUserSpace(screen, word);
  const said = screen.split("\n").filter((line) => /^DAVIT-|CHECK failed/.test(line));
  expect(said, tail(screen)).toEqual([`DAVIT-URL http://${authority}`, "DAVIT-CHECK PASSED"]);
}

/** How often its firmware began. */
export function timesBegun(screen: string): number {
  return screen.split("/boot.ipxe...").length - 1;
}

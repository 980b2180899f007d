/** Colours words on a terminal. The words themselves say everything, so nothing is lost without colours. */

import { styleText } from "node:util";
import type { Host } from "./host.ts";

/** Returns a text with a colour, or as it is. */
export type Paint = (style: PaintStyle, text: string) => string;
type PaintStyle = "red" | "yellow" | "green" | "magenta" | "dim" | "bold";

/** Returns how a command may colour its output: not in a pipe, not with `NO_COLOR`, and not on a dumb terminal. */
export function paintOf({ outputIsTerminal, environment }: Pick<Host, "outputIsTerminal" | "environment">): Paint {
  const { NO_COLOR: noColor = "", TERM: terminal } = environment;
  if (!outputIsTerminal || noColor !== "" || terminal === "dumb") return (_style, text) => text;
  return (style, text) => styleText(style, text, { validateStream: false });
}

const phaseStyles: Readonly<Record<string, PaintStyle>> = {
  Failed: "red",
  Unconfirmed: "red",
  Waiting: "yellow",
  Held: "yellow",
  Permitted: "magenta",
  Installing: "magenta",
  Installed: "green",
  Booted: "green",
};

/** Colours the phase of a machine. @param shown the phase with blanks around it. */
export function paintPhase(paint: Paint, shown: string): string {
  const style = phaseStyles[shown.trim()];
  return style === undefined ? shown : paint(style, shown);
}

/** Debian's Chromium, which shows the console to its tests and takes its pictures. */

import { type Browser, chromium } from "playwright-core";

export const chromiumPath = "/usr/bin/chromium";

/** Starts a browser without a window. As root, Chromium has no sandbox. */
export function openChromium(): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: chromiumPath, args });
}

/**
 * Checks slow configs before they are sent. Such a config may wait for the other thread for seconds or minutes.
 * Meanwhile somebody may have held the machine or changed its Profile, and an old config could still install it.
 */

import { after, type Soon } from "../../lib/soon.ts";
import { BootError } from "../core/boot-error.ts";

/** The objects changed while a config was made. */
class OutdatedConfig extends Error {
  override readonly name = "OutdatedConfig";
}

/** After so many attempts the machine asks again later. */
const maxAttempts = 3;

/**
 * Returns what was made. If that took another thread, it first checks the objects.
 * @param isCurrent false if the objects have changed. It may also throw why the machine gets no config now.
 */
export function ifCurrent<Made>(made: Soon<Made>, isCurrent: () => boolean): Soon<Made> {
  if (!(made instanceof Promise)) return made;
  return after(made, (config) => {
    if (isCurrent()) return config;
    throw new OutdatedConfig();
  });
}

/**
 * Makes a config, and makes it again if `ifCurrent` has refused it.
 * @throws {BootError} busy, if the objects change during each attempt.
 */
export function madeAnew<Made>(make: () => Soon<Made>, attempt = 1): Soon<Made> {
  const made = make();
  if (!(made instanceof Promise)) return made;
  return made.catch((error: unknown) => {
    if (!(error instanceof OutdatedConfig)) throw error;
    if (attempt === maxAttempts) throw new BootError("busy", { problem: "the objects changed during each attempt" });
    return madeAnew(make, attempt + 1);
  });
}

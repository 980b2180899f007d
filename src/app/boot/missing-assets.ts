/**
 * The files that scripts of installs name and that davit did not have when a machine asked. Machines ask again every
 * few seconds, so davit forgets a file for which none has asked for a minute.
 */

import type { RequestedMachine } from "../../http/boot/access-log.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { MissingFiles } from "../../model/objects/profile.ts";

const keptMs = 60_000;
/** The most files. davit forgets the oldest one first. */
const maxFiles = 32;

interface MissingAsset {
  readonly path: string;
  readonly profile: string;
  readonly atMs: number;
}

export class MissingAssets implements MissingFiles {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #log: Pick<Log, "warn">;
  readonly #files = new Map<string, MissingAsset>();

  constructor({ clock, log }: { readonly clock: Pick<Clock, "monotonicMs">; readonly log: Pick<Log, "warn"> }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Records the missing file of an answer to a machine. */
  saw({ missing: path, group, profile = "" }: Pick<RequestedMachine, "missing" | "group" | "profile">): void {
    if (path === undefined) return;
    const key = `${profile} ${path}`;
    if (!this.#current.some((file) => file.path === path && file.profile === profile))
      this.#log.warn({ path, group, profile }, "asset missing: its machines wait and claim no install");
    this.#files.delete(key);
    this.#files.set(key, { path, profile, atMs: this.#clock.monotonicMs() });
    const [oldest] = this.#files.keys();
    if (this.#files.size > maxFiles && oldest !== undefined) this.#files.delete(oldest);
  }

  of(profile: string): readonly string[] {
    return this.#current.filter((file) => file.profile === profile).map(({ path }) => path);
  }

  get profiles(): readonly string[] {
    return [...new Set(this.#current.map(({ profile }) => profile))];
  }

  /** One line for the operator, for each file. */
  get attention(): readonly string[] {
    return this.#current.map(
      ({ path, profile }) =>
        `asset missing: "${path}", for which machines of Profile "${profile}" wait: put it below --assets-dir`,
    );
  }

  get #current(): readonly MissingAsset[] {
    const sinceMs = this.#clock.monotonicMs() - keptMs;
    return [...this.#files.values()].filter(({ atMs }) => atMs >= sinceMs);
  }
}

/**
 * Follows the source while this davit leads the store: each time with a new connection to the source, and so from a new
 * list. What an earlier list said may be outdated, and would take machines back to older objects.
 */

import type { Controller } from "../../controller/controller.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { StartError } from "../../lib/start-error.ts";
import type { Store } from "../../store/store.ts";
import type { ObjectSource } from "./object-source.ts";

interface SourceFollowerOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** An open source that nobody follows yet: that of the first time. Its opener stops it. */
  readonly first: ObjectSource;
  /** Opens the source for a later time. @throws {StartError} */
  readonly open: () => Promise<ObjectSource>;
  readonly controllerOf: (objects: ObjectSource) => Controller;
}

/** The source and the controller of one time of leading. */
interface Following {
  readonly objects: ObjectSource;
  readonly controller: Controller;
}

const retryMs = 2_000;

export class SourceFollower {
  readonly #options: SourceFollowerOptions;
  readonly #stopping = new AbortController();
  #following: Following | undefined;
  #isFirst = true;
  #isLeading = false;
  /** Resolves when the last change is made. */
  #changed: Promise<void> = Promise.resolve();

  constructor(options: SourceFollowerOptions) {
    this.#options = options;
  }

  /** Undefined while this davit does not lead. */
  get controller(): Controller | undefined {
    return this.#following?.controller;
  }

  /** The source that is followed, or was last. */
  get objects(): ObjectSource {
    return this.#following?.objects ?? this.#options.first;
  }

  /**
   * Follows the source whenever this davit leads the store. In a store without other members it leads from the start:
   * then this resolves when the source is followed.
   * @throws {StartError} from the source of a store without other members.
   */
  async follow(store: Pick<Store, "membership" | "onLeadership">): Promise<void> {
    const isSole = store.membership.members.length === 0;
    let started: Promise<void> | undefined;
    store.onLeadership((isLeading) => {
      this.#isLeading = isLeading;
      const done = this.#after(() => (isSole ? this.#change(isLeading) : this.#keepTrying(isLeading)));
      if (isSole) started ??= done;
    });
    await started;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#isLeading = false;
    await this.#after(() => this.#change(false));
  }

  /** Makes a change after the earlier ones. */
  #after(change: () => Promise<void>): Promise<void> {
    const done = this.#changed.then(change);
    this.#changed = done.catch(() => undefined);
    return done;
  }

  async #keepTrying(isLeading: boolean): Promise<void> {
    const { clock, log } = this.#options;
    while (this.#isLeading === isLeading) {
      try {
        return await this.#change(isLeading);
      } catch (error) {
        if (!(error instanceof StartError)) throw error;
        log.error({ err: error }, "source cannot be opened");
        await this.#change(false);
        await clock.sleep(retryMs, this.#stopping.signal);
      }
    }
  }

  async #change(isLeading: boolean): Promise<void> {
    if (isLeading && this.#following === undefined && !this.#stopping.signal.aborted) await this.#begin();
    if (!isLeading && this.#following !== undefined) await this.#end(this.#following);
  }

  async #begin(): Promise<void> {
    const { first, open, controllerOf } = this.#options;
    const objects = this.#isFirst ? first : await open();
    this.#isFirst = false;
    try {
      const controller = controllerOf(objects);
      this.#following = { objects, controller };
      await controller.start();
    } catch (error) {
      if (this.#following === undefined && objects !== first) await objects.stop();
      throw error;
    }
  }

  async #end({ objects, controller }: Following): Promise<void> {
    this.#following = undefined;
    await objects.source.stop();
    await controller.stop();
    if (objects !== this.#options.first) await objects.stop();
  }
}

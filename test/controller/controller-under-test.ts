import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { Controller } from "../../src/controller/controller.ts";
import type { ControllerOptions } from "../../src/controller/controller-options.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore } from "../helpers/test-store.ts";
import { Statuses, sha256, trials } from "./around.ts";
import { FakeSource } from "./fake-source.ts";

/** A controller over a store in memory, and what machines get by it. */
export class ControllerUnderTest {
  readonly clock: FakeClock;
  readonly source = new FakeSource();
  readonly statuses = new Statuses();
  readonly metrics = createMetrics("test");
  readonly logLines: string[] = [];
  /** Resolves when the first list is in the store. */
  readonly synced: Promise<void>;
  readonly store: Store;
  readonly #index: BootIndex;
  readonly #configs: BootConfigs;
  readonly #controller: Controller;

  private constructor(clock: FakeClock, store: Store, options: Partial<ControllerOptions>) {
    this.clock = clock;
    const destination = { write: (line: string) => void this.logLines.push(line) };
    const log = createLog({ level: "debug", format: "json", destination });
    this.store = store;
    const { secretTexts = clearTexts(sha256) } = options;
    this.#index = new BootIndex({ log, secretReader: secretTexts });
    const grub = { separator: "auto", commands: "auto" } as const;
    this.#configs = new BootConfigs({ index: this.#index, authority: "192.0.2.1:8080", grub });
    store.follow("/davit", this.#index);
    this.#index.open();
    const { promise: synced, resolve: onSynced } = Promise.withResolvers<void>();
    this.synced = synced;
    this.#controller = new Controller({
      source: this.source,
      store,
      statusSink: this.statuses,
      trials,
      clock,
      log,
      metrics: this.metrics,
      sha256,
      secretTexts: clearTexts(sha256),
      checkTemplate: () => undefined,
      random: () => 0.5,
      tombstoneTtlSeconds: 60,
      onSynced,
      ...options,
    });
  }

  static async start(options: Partial<ControllerOptions> = {}): Promise<ControllerUnderTest> {
    const clock = new FakeClock();
    const under = new ControllerUnderTest(clock, await openStore(undefined, { clock }), options);
    await under.#controller.start();
    return under;
  }

  /** Lets what the controller has begun run to its next wait on the clock. No time passes. */
  settled(): Promise<void> {
    return this.clock.advance(0);
  }

  /** Plans everything again, as ten minutes later or after a change of the keys of Secrets. */
  async lookAgain(): Promise<void> {
    this.#controller.lookAgain();
    await this.settled();
  }

  /** Tells the boot index of other keys of Secrets. */
  keysChanged(): void {
    this.#index.keysChanged();
  }

  async stop(): Promise<void> {
    await this.#controller.stop();
    await this.store.stop();
  }

  /** The texts of the documents whose paths begin so. */
  stored(prefix: string): readonly string[] {
    const found: string[] = [];
    const replaced = (documents: Iterable<readonly [path: string, text: string]>) => {
      for (const [path, text] of documents) if (path.startsWith(prefix)) found.push(text);
    };
    this.store.follow("/davit", { replaced, changed: () => {} })();
    return found;
  }

  get provenAtMs(): number | undefined {
    return this.#controller.provenAtMs;
  }

  get attention(): readonly string[] {
    return this.#controller.attention;
  }

  pendingMachines(): readonly object[] {
    return [...this.#controller.pendingMachines()];
  }

  /** How many Groups machines may get. */
  get groupCount(): number {
    return this.#index.groupCount;
  }

  /** What a machine with these labels boots, such as `kernel /assets/vmlinuz`, or why it gets nothing. */
  boots(labels: Readonly<Record<string, string>>): string {
    try {
      const { boot } = this.#index.select(new Map(Object.entries(labels))).profile.content;
      if (boot?.kind === "kernel") return `kernel ${boot.kernel}`;
      return boot?.kind === "local" ? `local ${boot.local}` : (boot?.kind ?? "nothing");
    } catch (error) {
      if (error instanceof BootError) return error.reason;
      throw error;
    }
  }

  /** The same after each change of the store from now on: every answer that the machine can get meanwhile. */
  watchBoots(labels: Readonly<Record<string, string>>): readonly string[] {
    return this.#watch(() => this.boots(labels));
  }

  #watch(answer: () => string): readonly string[] {
    const seen: string[] = [];
    const look = () => {
      const now = answer();
      if (seen.at(-1) !== now) seen.push(now);
    };
    this.store.follow("/davit", { replaced: look, changed: look });
    return seen;
  }

  /** As `watchBoots`, of `answer`. */
  watchAnswers(labels: Readonly<Record<string, string>>): readonly string[] {
    return this.#watch(() => this.answer(labels));
  }

  /** A config as a machine with these labels gets it, or why it gets none. */
  config(name: ConfigName, labels: Readonly<Record<string, string>>): string {
    const rawQuery = new URLSearchParams(labels).toString();
    try {
      const { rendered } = this.#configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
      return rendered.body;
    } catch (error) {
      if (error instanceof BootError) return error.reason;
      throw error;
    }
  }

  /** The same after each change of the store from now on. */
  watchConfig(name: ConfigName, labels: Readonly<Record<string, string>>): readonly string[] {
    return this.#watch(() => this.config(name, labels));
  }

  /** `group profile` for a machine with these labels, or why it gets none. */
  answer(labels: Readonly<Record<string, string>>): string {
    try {
      const { group, profile } = this.#index.select(new Map(Object.entries(labels)));
      return `${group.id} ${profile.content.displayName}`;
    } catch (error) {
      if (error instanceof BootError) return error.reason;
      throw error;
    }
  }
}

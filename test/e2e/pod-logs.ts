/**
 * The logs of all containers of davit that ever run in a namespace, also of those that are gone when somebody wants to
 * read them. While the API server is away nothing is read; what is still there is read afterwards.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { attempt } from "./run.ts";

const lookEveryMs = 500;

export class PodLogs {
  readonly #namespace: string;
  readonly #texts = new Map<string, string>();
  readonly #readers = new Map<string, ChildProcess>();
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(namespace: string) {
    this.#namespace = namespace;
    this.#done = this.#follow();
  }

  /**
   * All lines so far of pods whose names begin so, a container after the other. None counts twice: a log may be read under
   * the name of the container before, while its pod's status is old.
   */
  lines(podPrefix: string): readonly JsonObject[] {
    const texts = [...this.#texts].filter(([name]) => name.startsWith(podPrefix)).map(([, text]) => text);
    return [...new Set(texts.flatMap((text) => text.split("\n")))]
      .map(parseJsonObject)
      .filter((line) => line !== undefined);
  }

  /** Writes a file for each container. */
  writeTo(folder: string): void {
    mkdirSync(folder, { recursive: true });
    for (const [name, text] of this.#texts) writeFileSync(join(folder, `${name.replace(/\W+/g, "-")}.log`), text);
  }

  /** How many containers were seen. */
  get containers(): number {
    return this.#texts.size;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    for (const reader of this.#readers.values()) await end(reader);
  }

  async #follow(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      for (const container of await this.#running()) {
        if (!this.#readers.has(container.id)) this.#read(container);
      }
      await systemClock.sleep(lookEveryMs, this.#stop.signal);
    }
  }

  async #running(): Promise<readonly Container[]> {
    const path =
      '{range .items[*]}{.metadata.name}{" "}{.status.containerStatuses[?(@.name=="davit")].containerID}{"\\n"}{end}';
    const words = ["get", "pods", "--request-timeout=5s", `--output=jsonpath=${path}`];
    // Nothing while the API server is away, or the namespace not there yet.
    const { stdout } = await attempt(["kubectl", "--namespace", this.#namespace, ...words]);
    return stdout.split("\n").flatMap((line) => {
      const [pod = "", id = ""] = line.split(" ");
      return id === "" ? [] : [{ pod, id }];
    });
  }

  #read({ pod, id }: Container): void {
    const words = ["--namespace", this.#namespace, "logs", "--follow", "--container=davit", pod];
    const reader = spawn("kubectl", words, { stdio: ["ignore", "pipe", "ignore"] });
    this.#readers.set(id, reader);
    const name = `${pod} ${id}`;
    let text = "";
    reader.stdout.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      // A reader that came later begins at the beginning again.
      if (text.length > (this.#texts.get(name) ?? "").length) this.#texts.set(name, text);
    });
    // One that was cut off is replaced, if the container still runs.
    reader.on("close", () => this.#readers.delete(id));
  }
}

interface Container {
  readonly pod: string;
  readonly id: string;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill();
  await closed;
}

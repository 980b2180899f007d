/** The release of the chart under test, in a namespace of its own that enforces the Pod Security level `restricted`. */

import { join } from "node:path";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { attempt, type Ended, type RunOptions, run } from "./run.ts";

export const chartDirectory = join(import.meta.dirname, "../../charts/davit");

const level = "restricted";
const helmLimit = "--timeout=180s";
const helmLimitMs = 200_000;

export interface ReleaseOptions {
  readonly helm: string;
  readonly namespace: string;
  /** What every version of it has. */
  readonly values: JsonObject;
}

export class Release {
  readonly name = "davit";
  readonly namespace: string;
  readonly #helmProgram: string;
  #values: JsonObject;

  constructor({ helm, namespace, values }: ReleaseOptions) {
    this.#helmProgram = helm;
    this.namespace = namespace;
    this.#values = values;
  }

  /** In its namespace. @throws {Error} with what kubectl says. */
  async kubectl(words: readonly string[], options: RunOptions = {}): Promise<string> {
    return await run(["kubectl", "--namespace", this.namespace, ...words], options);
  }

  /** An object of its namespace. */
  async get(name: string): Promise<JsonObject> {
    const found = parseJsonObject(await this.kubectl(["get", name, "--output=json"]));
    if (found === undefined) throw new Error(`Reading ${name}: it is no object`);
    return found;
  }

  /** What kubectl prints by a JSONPath. */
  async look(name: string, jsonPath: string): Promise<string> {
    return await this.kubectl(["get", name, `--output=jsonpath=${jsonPath}`]);
  }

  /** The id of davit's, or of etcd's, container, as the node knows it. */
  async containerOf(pod: string): Promise<string> {
    return (await this.look(`pod/${pod}`, "{.status.containerStatuses[0].containerID}")).replace(/^.*:\/\//, "");
  }

  async createNamespace(): Promise<void> {
    await run(["kubectl", "create", "namespace", this.namespace]);
    const label = `pod-security.kubernetes.io/enforce=${level}`;
    await run(["kubectl", "label", "namespace", this.namespace, label]);
  }

  /** @returns what helm prints: the NOTES. */
  async install(chart = chartDirectory): Promise<string> {
    return await this.#helm(["install", this.name, chart, "--values=-", "--wait", helmLimit]);
  }

  /**
   * Changes values for good.
   * @param more deep changes to what was there; null takes a value away.
   */
  async upgrade(more: JsonObject, chart = chartDirectory): Promise<string> {
    this.#values = merged(this.#values, more);
    return await this.#helm(["upgrade", this.name, chart, "--values=-", "--wait", helmLimit]);
  }

  /** The same without waiting until pods are ready. */
  async upgradeSoon(more: JsonObject): Promise<void> {
    this.#values = merged(this.#values, more);
    await this.#helm(["upgrade", this.name, chartDirectory, "--values=-"]);
  }

  /** @returns what the test's pod says. @throws {Error} with that, too, when the test fails. */
  async test(): Promise<string> {
    const said = await this.#helm(["test", this.name, "--logs", helmLimit]);
    return said.replace(/^(?!ok |NOT OK ).*\n/gm, "");
  }

  async uninstall(): Promise<void> {
    await this.#helm(["uninstall", this.name, "--wait", helmLimit]);
  }

  async #helm(words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.#tryHelm(words);
    if (code !== 0) throw new Error(`helm ${words.join(" ")} ended with ${code}\n${stdout}${stderr}`);
    return stdout;
  }

  async #tryHelm(words: readonly string[]): Promise<Ended> {
    const command = [this.#helmProgram, "--namespace", this.namespace, ...words];
    return await attempt(command, { input: JSON.stringify(this.#values), timeoutMs: helmLimitMs });
  }
}

/** @param more deep changes; null takes a value away. */
export function merged(values: JsonObject, more: JsonObject): JsonObject {
  const entries = Object.entries({ ...values, ...more }).filter(([, value]) => value !== null);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const old = values[name];
      return [name, isJsonObject(old) && isJsonObject(value) ? merged(old, value) : value];
    }),
  );
}

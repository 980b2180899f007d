/** davit on a test cluster, as its machines and its operator see it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "../../src/model/json.ts";
import { type DavitOptions, type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { macOf } from "./machines.ts";

export interface RackOptions extends Pick<DavitOptions, "program" | "nodeArgs"> {
  readonly kubeconfig: string;
  /** Further options of `davit serve`. */
  readonly args?: readonly string[];
}

export class Rack {
  readonly #options: RackOptions;
  readonly #dataDir: string;
  #davit: DavitProcess;

  private constructor(options: RackOptions, dataDir: string, davit: DavitProcess) {
    this.#options = options;
    this.#dataDir = dataDir;
    this.#davit = davit;
  }

  /** Starts davit, and waits until it answers machines. */
  static async start(options: RackOptions): Promise<Rack> {
    const dataDir = await mkdtemp(join(tmpdir(), "davit-rack-"));
    return new Rack(options, dataDir, await startDavit({ ...options, dataDir }));
  }

  get davit(): DavitProcess {
    return this.#davit;
  }

  /** Kills davit and starts it on the same data; resolves when it answers machines. */
  async restart(between: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    await this.#davit.stop("SIGKILL");
    await between();
    this.#davit = await startDavit({ ...this.#options, dataDir: this.#dataDir });
  }

  /** Ends davit, and removes its data. @returns its exit code. */
  async stop(): Promise<number | null> {
    const code = await this.davit.stop();
    await rm(this.#dataDir, { recursive: true });
    return code;
  }

  /** What a machine boots: the kernel's name, or the status of an answer without one. */
  async boots(machine: number): Promise<string | number> {
    return await this.bootOf(`mac=${macOf(machine)}`);
  }

  /** As `boots`, of the machine that asks by this query. */
  async bootOf(query: string): Promise<string | number> {
    const answer = await fetch(`${this.davit.bootUrl}/ipxe?${query}`);
    const text = await answer.text();
    return /^kernel \S*\/assets\/(\S+)/m.exec(text)?.[1] ?? answer.status;
  }

  /** What `/readyz` answers. */
  async readiness(): Promise<number> {
    const answer = await fetch(`${this.davit.opsUrl}/readyz`);
    await answer.text();
    return answer.status;
  }

  /** The sum of a metric's samples that have these labels, written as Prometheus does: `reason="silent"`. */
  async metric(name: string, label = ""): Promise<number> {
    const answer = await fetch(`${this.davit.opsUrl}/metrics`);
    const lines = (await answer.text()).split("\n");
    const samples = lines.filter((line) => /^[^{ ]+/.exec(line)?.[0] === name && line.includes(label));
    return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  /** Lines of the log with this message. */
  told(message: string): readonly JsonObject[] {
    return this.davit.log.filter(({ msg }) => msg === message);
  }
}

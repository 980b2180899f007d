/** The store's door, by curl through `kubectl port-forward`: by the name and the authority that clients in the cluster use. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { type Answer, curl } from "./curl.ts";
import type { Release } from "./release.ts";

type Forward = ChildProcessByStdio<null, Readable, Readable>;

export class StoreDoor {
  readonly #forward: Forward;
  readonly #folder: string;
  readonly #host: string;
  readonly #localPort: string;

  private constructor(forward: Forward, folder: string, host: string, localPort: string) {
    this.#forward = forward;
    this.#folder = folder;
    this.#host = host;
    this.#localPort = localPort;
  }

  /** @throws {Error} when kubectl does not get there. */
  static async open(release: Release): Promise<StoreDoor> {
    const { name, namespace } = release;
    const authority = await release.look(`configmap/${name}-store-ca`, "{.data.ca\\.crt}");
    const words = ["--namespace", namespace, "port-forward", `service/${name}-store`, ":2379"];
    const forward = spawn("kubectl", words, { stdio: ["ignore", "pipe", "pipe"] });
    const localPort = await portOf(forward);
    const folder = mkdtempSync(join(tmpdir(), "davit-e2e-store-"));
    writeFileSync(join(folder, "ca.crt"), authority);
    return new StoreDoor(forward, folder, `${name}-store.${namespace}.svc`, localPort);
  }

  /** @param words further ones for curl. */
  async ask(path: string, token: string | undefined, words: readonly string[] = []): Promise<Answer> {
    const credentials = token === undefined ? [] : ["--header", `Authorization: Bearer ${token}`];
    const connect = ["--connect-to", `${this.#host}:2379:127.0.0.1:${this.#localPort}`];
    const trust = ["--cacert", join(this.#folder, "ca.crt")];
    return await curl([...trust, ...connect, ...credentials, ...words, this.url(path)]);
  }

  url(path: string): string {
    return `https://${this.#host}:2379${path}`;
  }

  async close(): Promise<void> {
    rmSync(this.#folder, { recursive: true });
    const ended = once(this.#forward, "close");
    this.#forward.kill();
    await ended;
  }
}

function portOf(forward: Forward): Promise<string> {
  return new Promise((resolve, reject) => {
    let written = "";
    forward.stdout.setEncoding("utf8").on("data", (text: string) => {
      written += text;
      const [, port] = /^Forwarding from 127\.0\.0\.1:(\d+)/m.exec(written) ?? [];
      if (port !== undefined) resolve(port);
    });
    let complaints = "";
    forward.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints += text;
    });
    forward.on("error", reject);
    forward.on("close", (code) => reject(new Error(`kubectl port-forward ended with ${code}\n${complaints}`)));
  });
}

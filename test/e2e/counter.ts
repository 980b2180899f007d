/** Clients in a pod of davit's image that count in the store, by its members' names and certificate: `counter-worker.ts`. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { Release } from "./release.ts";

const name = "counter";
const program = "counter-worker.ts";

export interface CounterOptions {
  readonly image: string;
  /** The names of the store's members: a client's endpoints. */
  readonly members: readonly string[];
  /** Whose token opens the store. */
  readonly account: string;
  /** With `ca.crt`, which signed the certificate of the store. */
  readonly secret: string;
}

export class Counter {
  readonly #release: Release;

  private constructor(release: Release) {
    this.#release = release;
  }

  /** Resolves when it counts. */
  static async start(release: Release, options: CounterOptions): Promise<Counter> {
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: [script(), pod(release, options)] });
    await release.kubectl(["apply", "--filename=-"], { input });
    const counter = new Counter(release);
    await expect.poll(() => counter.#kinds()).toContain("begin");
    return counter;
  }

  /** All that it printed so far. */
  async lines(): Promise<readonly JsonObject[]> {
    const text = await this.#release.kubectl(["logs", name]).catch(() => "");
    return text
      .split("\n")
      .map(parseJsonObject)
      .filter((line) => line !== undefined);
  }

  /** The member that leads. */
  async leader(): Promise<string> {
    return String((await this.lines()).findLast(({ kind }) => kind === "leader")?.name);
  }

  /** Stops the writers. @returns its last line. */
  async stop(): Promise<JsonObject> {
    const signal = ["--", "/nodejs/bin/node", "--eval", "process.kill(1, 'SIGUSR2')"];
    await this.#release.kubectl(["exec", name, ...signal]);
    await expect.poll(() => this.#kinds()).toContain("end");
    return (await this.lines()).at(-1) ?? {};
  }

  async #kinds(): Promise<readonly unknown[]> {
    return (await this.lines()).map(({ kind }) => kind);
  }
}

function script(): JsonObject {
  const text = readFileSync(join(import.meta.dirname, program), "utf8");
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { [program]: text } };
}

function pod(
  { namespace, name: releaseName }: Release,
  { image, members, account, secret }: CounterOptions,
): JsonObject {
  const token = { serviceAccountToken: { path: "token", audience: "davit", expirationSeconds: 7_200 } };
  const urls = members.map((member) => `https://${member}.${releaseName}-store.${namespace}.svc:2379`);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      restartPolicy: "Never",
      serviceAccountName: account,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 1,
      securityContext: { runAsNonRoot: true, fsGroup: 65_532, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          name,
          image,
          command: ["/nodejs/bin/node", "--disable-warning=ExperimentalWarning", `/counter/${program}`],
          env: [
            { name: "STORE_URLS", value: urls.join(",") },
            { name: "NODE_EXTRA_CA_CERTS", value: "/secrets/ca.crt" },
            { name: "TOKEN_FILE", value: "/secrets/token" },
          ],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          resources: { requests: { cpu: "50m", memory: "64Mi" } },
          volumeMounts: [
            { name: "script", mountPath: "/counter", readOnly: true },
            { name: "secrets", mountPath: "/secrets", readOnly: true },
          ],
        },
      ],
      volumes: [
        { name: "script", configMap: { name } },
        {
          name: "secrets",
          projected: {
            sources: [token, { secret: { name: secret, items: [{ key: "ca.crt", path: "ca.crt" }] } }],
          },
        },
      ],
    },
  };
}

/**
 * davit beside a test cluster, as its users run it: a process, a namespace of its own unless told, curl's view of what
 * comes out, and the status that kubectl shows.
 */

import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeFollowLine, followPath } from "../../src/model/follow-line.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitOptions, type DavitProcess, localAuthorization, startDavit } from "../../tools/davit-process.ts";
import { type Labels, sumOf } from "./metric.ts";

export interface ClusterObject {
  readonly kind: "Profile" | "Group" | "Machine" | "ConfigMap" | "Secret";
  readonly name: string;
  /** That of the suite's `Beside` unless told. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: JsonObject;
  readonly data?: JsonObject;
}

type Name = Pick<ClusterObject, "kind" | "name" | "namespace">;

export interface StartOptions extends Partial<DavitOptions> {
  /** Options that say which namespaces are read. */
  readonly scope?: readonly string[];
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

const paths = {
  Profile: { root: "/apis/davit.dev/v1alpha1", plural: "profiles" },
  Group: { root: "/apis/davit.dev/v1alpha1", plural: "groups" },
  Machine: { root: "/apis/davit.dev/v1alpha1", plural: "machines" },
  ConfigMap: { root: "/api/v1", plural: "configmaps" },
  Secret: { root: "/api/v1", plural: "secrets" },
} as const;

export class Beside {
  readonly cluster: ClusterAccess;
  readonly namespace: string;
  /** Of the store; a restart keeps it. */
  readonly dataDir: string;
  /** The processes that were started and not stopped, the newest last. */
  readonly #running: DavitProcess[] = [];

  private constructor(cluster: ClusterAccess, namespace: string, dataDir: string) {
    this.cluster = cluster;
    this.namespace = namespace;
    this.dataDir = dataDir;
  }

  /** Makes the namespace; davit is started by `start`. */
  static async make(cluster: ClusterAccess, namespace: string): Promise<Beside> {
    await cluster.ask({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
    return new Beside(cluster, namespace, await mkdtemp(join(tmpdir(), "davit-beside-")));
  }

  /** The newest process. */
  get davit(): DavitProcess {
    const davit = this.#running.at(-1);
    if (davit === undefined) throw new Error("davit was not started");
    return davit;
  }

  /** Starts davit on the namespace, or on another scope, and waits until it is ready. */
  async start(args: readonly string[] = [], how: StartOptions = {}): Promise<DavitProcess> {
    const { scope = ["--namespace", this.namespace], ...more } = how;
    const options = { kubeconfig: this.cluster.kubeconfig, dataDir: this.dataDir, ...more };
    const davit = await startDavit({ ...options, args: [...scope, ...args] });
    this.#running.push(davit);
    return davit;
  }

  /** Ends the newest process. */
  async end(): Promise<void> {
    await this.#running.pop()?.stop();
  }

  /** Ends every process and removes the stored data. */
  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((davit) => davit.stop()));
    await rm(this.dataDir, { recursive: true });
  }

  /** What a machine gets. */
  async get(path: string, davit = this.davit): Promise<Answer> {
    const response = await fetch(`${davit.bootUrl}${path}`);
    return { status: response.status, body: await response.text() };
  }

  /** What the operations listener says. */
  async ops(path: string, davit = this.davit): Promise<string> {
    return await (await fetch(`${davit.opsUrl}${path}`)).text();
  }

  /** A metric of davit's, see `sumOf`. */
  async metric(name: string, labels: Labels = {}, davit = this.davit): Promise<number> {
    return sumOf(await this.ops("/metrics", davit), name, labels);
  }

  /** Every document of the store by its path, secrets included: what a follower is told first. */
  async stored(davit = this.davit): Promise<ReadonlyMap<string, string>> {
    const response = await fetch(`${davit.storeUrl}${followPath}`, {
      headers: await localAuthorization(davit.dataDir),
    });
    const documents = new Map<string, string>();
    for (const line of (await untilCommit(response)).split("\n")) {
      const told = decodeFollowLine(line);
      if (told?.kind === "put") documents.set(told.path, told.text);
    }
    return documents;
  }

  /** Creates or changes objects, as `kubectl apply --server-side` does. */
  async put(...objects: readonly ClusterObject[]): Promise<void> {
    for (const object of objects) {
      const { kind, name, labels = {}, spec, data } = object;
      const apiVersion = paths[kind].root.replace(/^\/apis?\//, "");
      const body = { apiVersion, kind, metadata: { name, labels }, ...(spec && { spec }), ...(data && { data }) };
      const path = `${this.#path(object)}?fieldManager=test&force=true`;
      const answer = await this.cluster.ask({
        method: "PATCH",
        path,
        body,
        contentType: "application/apply-patch+yaml",
      });
      if (answer.status >= 300) throw new Error(`Applying ${kind} ${name}: ${JSON.stringify(answer.body)}`);
    }
  }

  /** Changes something of objects that davit does not look at. */
  async touch(...names: readonly Name[]): Promise<void> {
    const body = { metadata: { annotations: { touched: randomUUID() } } };
    for (const name of names) {
      const path = this.#path(name);
      await this.cluster.ask({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
    }
  }

  async delete(...names: readonly Name[]): Promise<void> {
    for (const name of names) await this.cluster.ask({ method: "DELETE", path: this.#path(name) });
  }

  /** The object as the API server has it. */
  async object(name: Name): Promise<JsonObject> {
    return (await this.cluster.ask({ path: this.#path(name) })).body;
  }

  /** The conditions of an object, such as `Ready: "False ProfileNotFound"`, once they are of its newest version. */
  async conditions(name: Name): Promise<Readonly<Record<string, string>>> {
    const conditions = await this.#conditions(name);
    return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
  }

  /** The message of a condition. */
  async message(name: Name, type = "Ready"): Promise<string> {
    const condition = (await this.#conditions(name)).find((each) => each.type === type);
    return String(condition?.message ?? "");
  }

  async #conditions(name: Name): Promise<readonly JsonObject[]> {
    const { metadata, status } = await this.object(name);
    if (!isJsonObject(status) || !isJsonObject(metadata) || !Array.isArray(status.conditions)) return [];
    return status.observedGeneration === metadata.generation ? status.conditions.filter(isJsonObject) : [];
  }

  #path({ kind, name, namespace = this.namespace }: Name): string {
    return `${paths[kind].root}/namespaces/${namespace}/${paths[kind].plural}/${name}`;
  }
}

/** The text of a follower's answer up to its first commit, which ends the dump. */
async function untilCommit({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (/^\{"kind":"commit".*\n/m.test(text)) break;
  }
  return text;
}

/** A Profile that starts a kernel with these arguments. */
export function profile(name: string, spec: JsonObject = {}): ClusterObject {
  return { kind: "Profile", name, spec: { boot: { kernel: `/assets/${name}` }, ...spec } };
}

/** A Group of one machine unless the spec says otherwise. */
export function group(name: string, mac: string, spec: JsonObject = {}): ClusterObject {
  return { kind: "Group", name, spec: { profileRef: { name: "web" }, selector: { matchLabels: { mac } }, ...spec } };
}

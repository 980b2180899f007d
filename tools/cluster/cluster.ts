/**
 * A real Kubernetes API server with its etcd, for one suite: on loopback, on ports of its own, with everything in one
 * temporary directory. `startCluster` returns when it answers; `stop` leaves no process and no file.
 *
 * It has an API, RBAC, admission, CRDs and ServiceAccount tokens. It has no controllers: nothing collects garbage,
 * empties a namespace, makes a default ServiceAccount, or becomes ready. Data survives `kill` and `restart`, not `stop`.
 *
 * The programs are those of tools/build; suites ask `missing("kube-apiserver", "kubectl")` of helpers/requirements.ts.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { isJsonObject } from "../../src/model/json.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { toolPath } from "../build/tools.ts";
import { type ApiAnswer, ApiClient, type ApiRequest } from "./api-client.ts";
import { ControlPlane } from "./control-plane.ts";
import { type Credentials, kubeconfigText, makeCredentials } from "./credentials.ts";
import { untilReady } from "./daemon.ts";

export interface ClusterOptions {
  /** Further flags of the API server, such as `--min-request-timeout=5`. */
  readonly flags?: readonly string[];
  /** True leaves the CRDs of davit out, until `installCrds`. */
  readonly withoutCrds?: boolean;
  /** Gives up the start, which then fails. A cluster that has started does not mind. */
  readonly signal?: AbortSignal;
}

/** How a run of kubectl ended. */
export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KubectlOptions {
  /** What it reads with `-f -`. */
  readonly input?: string;
  /** Of another user than the administrator. */
  readonly kubeconfig?: string;
}

/** The state of a cluster at a moment, to go back to. */
export interface EtcdCopy {
  readonly path: string;
}

/** @throws {Error} with the log's end, when a process does not start. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { flags = [], withoutCrds = false, signal } = options;
  const directory = await mkdtemp(join(tmpdir(), "davit-cluster-"));
  const credentials = makeCredentials(directory);
  const controlPlane = await ControlPlane.start({ directory, flags: [...credentials.flags, ...flags] });
  const cleanUp = async () => {
    await controlPlane.stop();
    await rm(directory, { recursive: true });
  };
  // Whatever is waited for then finds that a process has ended.
  const giveUp = () => void controlPlane.stop();
  signal?.addEventListener("abort", giveUp);
  try {
    if (signal?.aborted) giveUp();
    await controlPlane.untilCertified();
    const cluster = new Cluster({ directory, credentials, controlPlane, cleanUp });
    await cluster.untilServing();
    if (!withoutCrds) await cluster.installCrds();
    return cluster;
  } catch (error) {
    await cleanUp();
    throw error;
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

export interface ClusterAddress {
  /** `https://127.0.0.1:PORT`. */
  readonly server: string;
  /** The file with the authority of its certificate. */
  readonly caFile: string;
  /** Of a user who may do everything. */
  readonly adminToken: string;
  /** Where kubeconfig files are written. */
  readonly directory: string;
}

/** The administrator's way to an API server that somebody else starts and stops. */
export class ClusterAccess implements ClusterAddress {
  readonly server: string;
  readonly caFile: string;
  readonly adminToken: string;
  readonly directory: string;
  /** Where objects go that name no namespace. */
  readonly namespace: string;
  /** Path of the administrator's kubeconfig file. */
  readonly kubeconfig: string;
  #client: ApiClient;

  constructor({ server, caFile, adminToken, directory }: ClusterAddress, namespace = "default") {
    this.server = server;
    this.caFile = caFile;
    this.adminToken = adminToken;
    this.directory = directory;
    this.namespace = namespace;
    this.kubeconfig = this.kubeconfigFor("admin", adminToken);
    this.#client = this.#makeClient();
  }

  /** The authority of its certificate, PEM text. */
  get ca(): string {
    return readFileSync(this.caFile, "utf8");
  }

  /** Asks the API server, as the administrator by default. */
  ask(request: ApiRequest): Promise<ApiAnswer> {
    return this.#client.ask(request);
  }

  /** Runs kubectl, of the server's own version, and waits until it ends, well or not. */
  async kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<KubectlResult> {
    const env = { HOME: this.directory, KUBECONFIG: options.kubeconfig ?? this.kubeconfig, COLUMNS: "120" };
    const child = spawn(toolPath("kubectl"), args, { env });
    const ended = once(child, "close");
    // It may end before it has read everything; its exit code says why.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    const [[code], stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
    return { code: Number(code ?? -1), stdout, stderr };
  }

  /**
   * `kubectl apply` of a text.
   * @returns what it says: a line for each object.
   * @throws {Error} with what it complains of.
   */
  async apply(manifests: string): Promise<string> {
    const { code, stdout, stderr } = await this.kubectl(["apply", "-f", "-"], { input: manifests });
    if (code !== 0) throw new Error(`Applying manifests: kubectl ended with ${code}\n${stderr}`);
    return stdout;
  }

  /** A token of a ServiceAccount, which is created if need be. */
  async serviceAccountToken(namespace: string, name: string): Promise<string> {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    await this.ask({ method: "POST", path, body: { metadata: { name } } });
    const answer = await this.ask({ method: "POST", path: `${path}/${name}/token`, body: { spec: {} } });
    const token = isJsonObject(answer.body.status) ? answer.body.status.token : undefined;
    if (typeof token !== "string") throw new Error(`Asking for a token of ${namespace}/${name}: ${answer.status}`);
    return token;
  }

  /**
   * Writes a kubeconfig file for a token.
   * @param server another way to the API server, with plain HTTP.
   * @returns its path.
   */
  kubeconfigFor(name: string, token: string, server = this.server): string {
    const path = join(this.directory, `${name}.kubeconfig`);
    writeFileSync(path, kubeconfigText({ server, ca: this.ca, token, namespace: this.namespace }), { mode: 0o600 });
    return path;
  }

  /** Closes its connections. */
  async stop(): Promise<void> {
    this.#client.close();
  }

  /** Goes on with the certificate's authority as it is now. */
  protected reconnect(): void {
    this.#client.close();
    this.#client = this.#makeClient();
    this.kubeconfigFor("admin", this.adminToken);
  }

  #makeClient(): ApiClient {
    return new ApiClient({ server: this.server, ca: this.ca, token: this.adminToken });
  }
}

interface Parts {
  readonly directory: string;
  readonly credentials: Credentials;
  readonly controlPlane: ControlPlane;
  readonly cleanUp: () => Promise<void>;
}

export class Cluster extends ClusterAccess {
  readonly #parts: Parts;
  #copyCount = 0;

  constructor(parts: Parts) {
    const { directory, credentials, controlPlane } = parts;
    super({
      server: controlPlane.server,
      caFile: controlPlane.caFile,
      adminToken: credentials.adminToken,
      directory,
    });
    this.#parts = parts;
  }

  /**
   * Creates or updates the CRDs of `crds/` and waits until their objects can be written.
   * @returns what the API server warned of.
   */
  async installCrds(): Promise<readonly string[]> {
    const warnings: string[] = [];
    for (const body of await readCrds(packagedCrdsDirectory)) {
      const [, name] = /^ {2}name: (\S+)$/m.exec(body) ?? [];
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}?fieldManager=test&force=true`;
      const answer = await this.ask({ method: "PATCH", path, body, contentType: "application/apply-patch+yaml" });
      if (answer.status >= 300) throw new Error(`Installing ${name}: ${JSON.stringify(answer.body)}`);
      warnings.push(...answer.warnings);
    }
    const paths = ["", "/profiles", "/groups"].map((resource) => `/apis/davit.dev/v1alpha1${resource}`);
    await untilReady("the CRDs", this.#parts.controlPlane.daemons, () => this.#assertAnswers(paths));
    return warnings;
  }

  /** As `serviceAccountToken`, which lives an hour, with a life as short as wanted. */
  async shortToken(namespace: string, name: string, lifetimeSeconds: number): Promise<string> {
    return this.#parts.credentials.withLifetime(await this.serviceAccountToken(namespace, name), lifetimeSeconds);
  }

  /** Stops the API server where it is: its connections stay open, and nothing comes any more. */
  async pause(): Promise<void> {
    await this.#parts.controlPlane.api.pause();
  }

  /** Ends a pause. */
  resume(): void {
    this.#parts.controlPlane.api.resume();
  }

  /** The API server crashes: connections break, and new ones are refused. */
  async kill(): Promise<void> {
    await this.#parts.controlPlane.api.kill();
  }

  /**
   * The API server starts anew, on the same port, with the same data and certificate. It returns when it answers.
   * @param flags beside those of the first start, this time only.
   */
  async restart(flags: readonly string[] = []): Promise<void> {
    await this.kill();
    this.#parts.controlPlane.restartApi(flags);
    await this.untilServing();
  }

  /** As `restart`, with another certificate of another authority; the administrator's kubeconfig knows it then. */
  async rotateCertificate(): Promise<void> {
    await this.kill();
    await rm(dirname(this.caFile), { recursive: true });
    this.#parts.controlPlane.restartApi([]);
    await this.#parts.controlPlane.untilCertified();
    this.reconnect();
    await this.untilServing();
  }

  /** Keeps what etcd holds now; nobody notices but by a pause of some milliseconds. */
  async copyEtcd(): Promise<EtcdCopy> {
    const path = join(this.#parts.directory, `etcd-copy-${this.#copyCount++}`);
    await this.#parts.controlPlane.copyData(path);
    return { path };
  }

  /** A disaster's recovery: the API server ends, etcd goes back to a copy with older revisions, and both start anew. */
  async restoreEtcd(copy: EtcdCopy): Promise<void> {
    await this.#parts.controlPlane.restoreData(copy.path);
    await this.restart();
  }

  /** Waits until the API server says that it is ready. */
  async untilServing(): Promise<void> {
    await untilReady("the API server", this.#parts.controlPlane.daemons, () => this.#assertAnswers(["/readyz"]));
  }

  /** Ends everything and removes the directory. */
  override async stop(): Promise<void> {
    await super.stop();
    await this.#parts.cleanUp();
  }

  async #assertAnswers(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      const { status } = await this.ask({ path });
      if (status !== 200) throw new Error(`${path} answered ${status}`);
    }
  }
}

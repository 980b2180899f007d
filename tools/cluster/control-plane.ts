/** The two processes of a test cluster, etcd and kube-apiserver, on ports and with data that outlive each of them. */

import { constants } from "node:fs";
import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { toolPath } from "../build/tools.ts";
import { Daemon, untilReady } from "./daemon.ts";
import { freePorts } from "./ports.ts";

export interface ControlPlaneOptions {
  readonly directory: string;
  /** Of the API server, after its own. */
  readonly flags: readonly string[];
}

export class ControlPlane {
  readonly server: string;
  readonly #options: ControlPlaneOptions;
  readonly #ports: { readonly etcd: number; readonly peer: number; readonly api: number };
  #etcd: Daemon;
  #api: Daemon;

  private constructor(options: ControlPlaneOptions, [etcd = 0, peer = 0, api = 0]: readonly number[]) {
    this.#options = options;
    this.#ports = { etcd, peer, api };
    this.server = `https://127.0.0.1:${api}`;
    this.#etcd = this.#startEtcd();
    // It waits for its etcd by itself.
    this.#api = this.#startApi([]);
  }

  /** Starts both, and waits for neither. */
  static async start(options: ControlPlaneOptions): Promise<ControlPlane> {
    return new ControlPlane(options, await freePorts(3));
  }

  get daemons(): readonly Daemon[] {
    return [this.#etcd, this.#api];
  }

  /** The certificate that the API server makes for itself, with the authority that signed it; it keeps both. */
  get caFile(): string {
    return join(this.#options.directory, "pki/apiserver.crt");
  }

  /** Waits until the certificate is written: the API server makes its file first, and fills it then. */
  async untilCertified(): Promise<void> {
    await untilReady("the certificate", this.daemons, async () => {
      const text = await readFile(this.caFile, "utf8");
      if (!text.trimEnd().endsWith("-----END CERTIFICATE-----"))
        throw new Error(`${text.length} characters are written`);
    });
  }

  get api(): Daemon {
    return this.#api;
  }

  /** A new API server in place of one that has ended. */
  restartApi(flags: readonly string[]): void {
    this.#api = this.#startApi(flags);
  }

  async stop(): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => daemon.kill()));
  }

  /**
   * Copies etcd's data as it is at this moment. A process that is stopped leaves its files as one that is killed, and
   * those are what etcd recovers from.
   */
  async copyData(to: string): Promise<void> {
    await this.#etcd.pause();
    try {
      await cp(this.#dataDirectory, to, { recursive: true, mode: constants.COPYFILE_FICLONE });
    } finally {
      this.#etcd.resume();
    }
  }

  /** Ends both, and starts etcd on a copy. */
  async restoreData(from: string): Promise<void> {
    await this.stop();
    await rm(this.#dataDirectory, { recursive: true });
    await cp(from, this.#dataDirectory, { recursive: true });
    this.#etcd = this.#startEtcd();
  }

  get #dataDirectory(): string {
    return join(this.#options.directory, "etcd");
  }

  #startEtcd(): Daemon {
    const client = `http://127.0.0.1:${this.#ports.etcd}`;
    const peer = `http://127.0.0.1:${this.#ports.peer}`;
    const args = [
      `--data-dir=${this.#dataDirectory}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      // The data is thrown away, so no crash of the machine has to be survived.
      "--unsafe-no-fsync",
      "--log-level=warn",
    ];
    return this.#start("etcd", args);
  }

  #startApi(more: readonly string[]): Daemon {
    const { directory, flags } = this.#options;
    const args = [
      `--etcd-servers=http://127.0.0.1:${this.#ports.etcd}`,
      `--cert-dir=${join(directory, "pki")}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--secure-port=${this.#ports.api}`,
      "--endpoint-reconciler-type=none",
      "--service-cluster-ip-range=10.0.0.0/24",
      "--authorization-mode=RBAC",
      "--anonymous-auth=true",
      // Nobody makes default ServiceAccounts here, and pods without one would be refused.
      "--disable-admission-plugins=ServiceAccount",
      "--v=1",
      ...flags,
      ...more,
    ];
    return this.#start("kube-apiserver", args);
  }

  #start(name: "etcd" | "kube-apiserver", args: readonly string[]): Daemon {
    const logFile = join(this.#options.directory, `${name}.log`);
    return Daemon.start({ name, program: toolPath(name), args, logFile });
  }
}

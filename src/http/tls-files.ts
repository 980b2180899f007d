/** The certificate of a listener, from files that may change while it serves. The last good files count. */

import type { Clock } from "../lib/clock.ts";
import { WatchedFiles } from "../lib/files/watched-files.ts";
import type { Log } from "../lib/log.ts";
import { readTlsMaterial, ServerTls, type ServerTlsMaterial, type TlsClients } from "./server-tls.ts";

export interface TlsFilesOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCaFile?: string | undefined;
  readonly clients: TlsClients;
  /**
   * Judges the first files and each change. It may log.
   * @throws {FileError} for files that must not be used.
   */
  readonly accept: (material: ServerTlsMaterial, isFirst: boolean) => void;
  readonly clock: Clock;
  readonly log: Log;
}

export class TlsFiles {
  readonly tls: ServerTls;
  readonly #files: WatchedFiles<ServerTlsMaterial>;

  private constructor(tls: ServerTls, files: WatchedFiles<ServerTlsMaterial>) {
    this.tls = tls;
    this.#files = files;
  }

  /**
   * Reads the files, and follows them from then on.
   * @throws {StartError} when they cannot be used.
   */
  static async open({ certFile, keyFile, clientCaFile, clients, accept, clock, log }: TlsFilesOptions) {
    let tls: ServerTls | undefined;
    const files = new WatchedFiles({
      paths: [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])],
      secretPaths: [keyFile],
      parse: (texts) => {
        const material = readTlsMaterial(texts);
        accept(material, tls === undefined);
        return material;
      },
      changed: (material) => tls?.renew(material),
      clock,
      log,
    });
    tls = new ServerTls(await files.start(), clients);
    return new TlsFiles(tls, files);
  }

  /** A sentence that says why the newest files are not used; empty if they are. */
  get problem(): string {
    return this.#files.problem;
  }

  /** Stops following the files. Idempotent. */
  stop(): void {
    this.#files.stop();
  }
}

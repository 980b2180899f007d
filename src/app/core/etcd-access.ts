/** How davit reaches an etcd: from directories with files as Kubernetes mounts a Secret. */

import { existsSync, lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readSmallFile } from "../../lib/files/watched-files.ts";
import { StartError } from "../../lib/start-error.ts";
import type { EtcdLogOptions } from "../../store/etcd/etcd-log.ts";

/** The values of the options about access to etcd. */
interface EtcdDirectories {
  /** Has `ca.crt`, or `tls.crt` and `tls.key`, or all three. */
  readonly storeEtcdTls: string | undefined;
  /** Has `username` and `password`. */
  readonly storeEtcdAuth: string | undefined;
}

/** @throws {StartError} if a file is missing. A file that is there now must be there for each later connection. */
export function etcdAccess(directories: EtcdDirectories): Pick<EtcdLogOptions, "tls" | "credentials"> {
  const { storeEtcdTls, storeEtcdAuth } = directories;
  return { tls: tlsIn(storeEtcdTls), credentials: storeEtcdAuth === undefined ? undefined : loginIn(storeEtcdAuth) };
}

function tlsIn(directory: string | undefined): NonNullable<EtcdLogOptions["tls"]> {
  const find = (name: string) => {
    const path = directory === undefined ? undefined : join(directory, name);
    // A link that leads nowhere counts, too: without it, davit would trust the public authorities.
    return path !== undefined && lstatSync(path, { throwIfNoEntry: false }) !== undefined ? path : undefined;
  };
  const [ca, cert, key] = [find("ca.crt"), find("tls.crt"), find("tls.key")];
  const isWhole = (cert === undefined) === (key === undefined) && (ca ?? cert) !== undefined;
  if (directory !== undefined && !isWhole) {
    throw new StartError(
      `Files are missing in "${directory}": --store-etcd-tls needs ca.crt, or tls.crt with tls.key, or all three`,
    );
  }
  return { ca: textOf(ca), cert: textOf(cert), key: textOf(key) };
}

function loginIn(directory: string): NonNullable<EtcdLogOptions["credentials"]> {
  const [name, password] = [join(directory, "username"), join(directory, "password")];
  const missing = [name, password].find((path) => !existsSync(path));
  if (missing !== undefined)
    throw new StartError(`No file "${missing}": --store-etcd-auth needs username and password`);
  return {
    get username() {
      return firstLineOf(readFileSync(name, "utf8"));
    },
    password: async () => firstLineOf(await readSmallFile(password)),
  };
}

/** Reads the file anew for each connection, because certificates are replaced while davit runs. */
function textOf(path: string | undefined): () => string | undefined {
  return () => (path === undefined ? undefined : readFileSync(path, "utf8"));
}

function firstLineOf(text: string): string {
  return text.split(/\r?\n/, 1)[0] ?? "";
}

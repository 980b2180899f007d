/** How davit reaches an etcd, from its options. */

import { readFileSync } from "node:fs";
import { readSmallFile } from "../../lib/files/watched-files.ts";
import type { EtcdLogOptions } from "../../store/etcd/etcd-log.ts";

/** The values of the options about etcd, other than its endpoints. */
interface EtcdFiles {
  readonly storeEtcdCaFile: string | undefined;
  readonly storeEtcdCertFile: string | undefined;
  readonly storeEtcdKeyFile: string | undefined;
  readonly storeEtcdUsername: string | undefined;
  readonly storeEtcdPasswordFile: string | undefined;
}

export function etcdAccess(files: EtcdFiles): Pick<EtcdLogOptions, "tls" | "credentials"> {
  const { storeEtcdUsername: username, storeEtcdPasswordFile: passwordFile } = files;
  return {
    tls: {
      ca: textOf(files.storeEtcdCaFile),
      cert: textOf(files.storeEtcdCertFile),
      key: textOf(files.storeEtcdKeyFile),
    },
    credentials:
      username === undefined || passwordFile === undefined
        ? undefined
        : { username, password: async () => firstLineOf(await readSmallFile(passwordFile)) },
  };
}

/** Reads the file anew for each connection, because certificates are replaced while davit runs. */
function textOf(path: string | undefined): () => string | undefined {
  return () => (path === undefined ? undefined : readFileSync(path, "utf8"));
}

function firstLineOf(text: string): string {
  return text.split(/\r?\n/, 1)[0] ?? "";
}

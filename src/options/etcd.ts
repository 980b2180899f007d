/** The options of a store whose log is in etcd. */

import type { Option } from "./parsing.ts";
import { directoryOption, one, readKeyPrefix, readServerUrls, switchOption } from "./readers.ts";

const etcd = { name: "storeEtcdEndpoints", lack: "No etcd" };

export const etcdOptions = {
  storeEtcdEndpoints: {
    flag: "store-etcd-endpoints",
    value: "URL,URL",
    help:
      "keep the store in this etcd v3, such as https://etcd-0:2379, instead of --data-dir: several davits may then " +
      "share it; default: none",
    read: one(readServerUrls),
    excludes: {
      name: "storeOwnCertificate",
      excess: "Members need certificates by one authority, see --store-cert-file",
    },
  } satisfies Option<readonly URL[]>,
  storeEtcdPrefix: {
    flag: "store-etcd-prefix",
    value: "PREFIX",
    preset: "/davit/",
    help: "where the store's keys are in that etcd; members of one store have the same prefix",
    read: one(readKeyPrefix),
  } satisfies Option<string>,
  storeEtcdShared: {
    ...switchOption(
      "store-etcd-shared",
      "davit does not compact that etcd, because others use it too; then etcd needs --auto-compaction-retention",
    ),
    needs: [etcd],
  },
  storeEtcdTls: {
    ...directoryOption(
      "store-etcd-tls",
      "TLS with etcd: trust only the authorities in DIR/ca.crt, and show the client certificate DIR/tls.crt with its " +
        "key DIR/tls.key; without ca.crt, trust the public authorities; without tls.crt, show none",
    ),
    needs: [etcd],
  },
  storeEtcdAuth: {
    ...directoryOption(
      "store-etcd-auth",
      "a user of etcd: its name in DIR/username and its password in DIR/password, on the first lines; its role needs " +
        "the prefix for reading and writing",
    ),
    needs: [etcd],
  },
};

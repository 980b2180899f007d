/** The options of a store whose log is in etcd. */

import type { Option } from "./parsing.ts";
import { fileOption, one, readKeyPrefix, readServerUrls, readText, switchOption } from "./readers.ts";

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
  storeEtcdCaFile: { ...fileOption("store-etcd-ca-file", "trust only these authorities for etcd, PEM"), needs: [etcd] },
  storeEtcdCertFile: {
    ...fileOption("store-etcd-cert-file", "client certificate for etcd, PEM"),
    needs: [etcd, { name: "storeEtcdKeyFile" }],
  },
  storeEtcdKeyFile: {
    ...fileOption("store-etcd-key-file", "private key of that certificate, PEM"),
    needs: [etcd, { name: "storeEtcdCertFile" }],
  },
  storeEtcdUsername: {
    flag: "store-etcd-username",
    value: "NAME",
    help: "user of etcd; its role needs the prefix for reading and writing",
    read: one(readText),
    needs: [etcd, { name: "storeEtcdPasswordFile" }],
  } satisfies Option<string>,
  storeEtcdPasswordFile: {
    ...fileOption("store-etcd-password-file", "password of that user, on the first line"),
    needs: [etcd, { name: "storeEtcdUsername" }],
  },
};

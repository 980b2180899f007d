/**
 * Names of options that davit no longer has. It refuses them by name: a variable that silently counts for nothing could
 * open a store, or let machines install that must wait.
 */

interface FormerName {
  /** The option that replaces it. */
  readonly now: string;
  /** How its value is written. */
  readonly value?: string;
  /** An option of every command that had the former one, and of no other; by default `now`. */
  readonly of?: string;
}

/** By flag. */
export const formerNames: Readonly<Record<string, FormerName>> = {
  "allowed-host": { now: "store-allowed-host" },
  "max-staleness": { now: "install-max-source-age" },
  // davit serve has an --ops-token-file, too.
  "operations-token-file": { now: "ops-token-file", of: "ops-url" },
  "operations-url": { now: "ops-url" },
  "store-etcd-ca-file": { now: "store-etcd-tls", value: "DIR" },
  "store-etcd-cert-file": { now: "store-etcd-tls", value: "DIR" },
  "store-etcd-key-file": { now: "store-etcd-tls", value: "DIR" },
  "store-etcd-password-file": { now: "store-etcd-auth", value: "DIR" },
  "store-etcd-username": { now: "store-etcd-auth", value: "DIR" },
  "store-certificate-name": { now: "store-allowed-host" },
};

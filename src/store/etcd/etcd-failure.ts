/** What a failure of etcd means for the log, in sentences for clients and operators. */

import { WalError, type WalFailure } from "../core/log-port.ts";
import type { EtcdError, EtcdFailure } from "./client/etcd-error.ts";

const reasons: Readonly<Record<EtcdFailure, WalFailure>> = {
  unavailable: "readOnly",
  noSpace: "noSpace",
  denied: "unusable",
  compacted: "damaged",
  tooLarge: "unusable",
  leaseNotFound: "readOnly",
  other: "unusable",
};

/** The error for the state machine. @param doing such as "Writing the log". */
export function etcdFailure(doing: string, error: EtcdError): WalError {
  const outcome = error.mayBeDone ? "; the write may be there" : "";
  return new WalError(reasons[error.reason], `${doing}: ${error.message}${outcome}`, { cause: error });
}

/** The error of a member that has applied more than etcd has. */
export function wentBack(): WalError {
  const advice = "etcd was restored or emptied: restart all members, see docs/operate/several-members.md";
  return new WalError("damaged", `Reading the log in etcd: it lacks what this member has applied; ${advice}`);
}

/** See `LogPort.trouble`. */
export function troubleOf(error: EtcdError): string {
  if (error.reason === "noSpace") {
    return "etcd has reached its quota, so changes take no effect: defragment it, and raise --quota-backend-bytes";
  }
  return `${error.message}, so changes take no effect: see to etcd`;
}

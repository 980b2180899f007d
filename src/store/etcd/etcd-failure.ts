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

/** The controller's ports and settings. Each part of it picks those that it uses. */

import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Ports } from "../../lib/ports.ts";
import type { EditAudit } from "../../model/objects/audit.ts";
import type { AssetStates, MissingFiles } from "../../model/objects/profile.ts";
import type { SecretTexts } from "../../model/objects/secret-texts.ts";
import type { Source, StatusSink } from "../../model/objects/source.ts";

/** Creates and deletes Machines in the cluster. Both methods reject if the API server cannot do it now. */
export interface MachineMaker {
  create(machine: {
    readonly namespace: string;
    readonly name: string;
    readonly identity: { readonly uuid?: string; readonly macs?: readonly string[] };
  }): Promise<"created" | "exists">;
  /** Deletes a Machine that davit has created, unless somebody has changed it since. */
  deleteUntouched(name: { readonly namespace: string; readonly name: string }): Promise<unknown>;
}

export interface ControllerPorts extends Ports {
  readonly source: Source;
  readonly statusSink: StatusSink;
  /** Gets each change of what machines get; undefined without an audit log. */
  readonly audit?: EditAudit | undefined;
  readonly metrics: Metrics;
  readonly sha256: (text: string) => string;
  /** How texts of Secrets are stored. */
  readonly secretTexts: SecretTexts;
  /** Where machines reach davit. */
  readonly davitUrl?: string;
  /** How long a machine waits after its Group was removed: whole seconds, at least 1. */
  readonly tombstoneTtlSeconds: number;
  /** How far the assets of Profiles are; undefined without an assets directory. */
  readonly assets?: AssetStates | undefined;
  /** The missing files that keep machines from an install. */
  readonly missing?: MissingFiles | undefined;
  /** Undefined if the source has no place for Machines of unknown machines. */
  readonly machineMaker?: MachineMaker | undefined;
  /** The only namespace where matchAll, broad selectors and priority take effect; undefined if they do everywhere. */
  readonly adminNamespace?: string | undefined;
}

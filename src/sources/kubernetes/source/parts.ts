/** The parts of the cluster source. */

import type { HeldChanges } from "../watch/held-changes.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ConfigMaps } from "./config-maps.ts";
import type { LateGrants } from "./late-grants.ts";
import type { OwnWatches } from "./own-watches.ts";
import type { ShownReferences } from "./references.ts";
import type { ScopeNamespaces } from "./scope-namespaces.ts";
import type { Secrets } from "./secrets.ts";

export interface Parts {
  readonly view: ClusterView;
  readonly references: ShownReferences;
  readonly namespaces: ScopeNamespaces;
  readonly configMaps: ConfigMaps;
  readonly secrets: Secrets;
  readonly held: HeldChanges;
  readonly grants: LateGrants;
  readonly watches: OwnWatches;
}

/** The watches of all that the view shows. */
export function provable({ watches, configMaps, secrets, held: { lost } }: Parts) {
  return [...watches.reachable, ...configMaps.provable(lost), ...secrets.provable(lost)];
}

/** What `davit serve` serves when it begins to answer machines. */

import type { BootIndex } from "../boot/selection/boot-index.ts";
import type { Address } from "../lib/text/address.ts";
import type { MachineAddresses } from "./listener/boot-listener.ts";
import type { ObjectSource } from "./objects/object-source.ts";

/** Facts for the welcome text, which appears when davit begins to answer machines. */
export interface Served extends MachineAddresses {
  readonly version: string;
  readonly profiles: number;
  readonly groups: number;
  /** How many files and documents of the source cannot be used. */
  readonly problems: number;
  /** Where the objects come from. */
  readonly source: string;
  /** A command that adds the first objects; undefined if there are Groups. */
  readonly firstCommand: string | undefined;
  /** Undefined with `--store-address none`. */
  readonly storeAddress: Address | undefined;
  /** True if clients reach the store by HTTPS. */
  readonly storeTls: boolean;
  readonly opsAddress: Address;
}

type ListeningAddresses = MachineAddresses & Pick<Served, "storeAddress" | "storeTls" | "opsAddress">;

/** What the counts are of. */
interface CountedObjects {
  readonly version: string;
  readonly index: Pick<BootIndex, "groupCount" | "profileCount">;
  /** True if davit reads the source: then the counts are of the source. */
  readonly isReading: boolean;
}

export function served(
  listening: ListeningAddresses,
  { source: { view }, place, firstCommand }: ObjectSource,
  { version, index, isReading }: CountedObjects,
): Served {
  const count = (objects: Iterable<unknown>) => [...objects].length;
  const groups = isReading ? count(view.all("Group")) : index.groupCount;
  return {
    version,
    profiles: isReading ? count(view.all("Profile")) : index.profileCount,
    groups,
    problems: view.problems.length,
    source: place,
    firstCommand: groups === 0 ? firstCommand : undefined,
    ...listening,
  };
}

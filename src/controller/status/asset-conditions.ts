/**
 * The condition `AssetsReady` of Profiles with `spec.assets`, and of Profiles whose machines wait for a missing file.
 * Downloads and requests of machines change it between the controller's steps.
 */

import {
  type AssetState,
  type AssetStates,
  assetReasons,
  type MissingFiles,
  type ProfileAsset,
} from "../../model/objects/profile.ts";
import type { Condition, ObjectName, SourceView } from "../../model/objects/source.ts";

interface AssetFacts {
  readonly view: Pick<SourceView, "get">;
  /** Undefined if davit has no assets directory. */
  readonly states: AssetStates | undefined;
  /** Undefined if missing files are not recorded. */
  readonly missing: MissingFiles | undefined;
}

/** The message of a condition has at most 32 KiB. */
const maxListed = 10;

/** Returns the condition of an object now; undefined for an object that has none. */
export function assetsCondition(
  { kind, namespace, name }: ObjectName,
  { view, states, missing }: AssetFacts,
): Condition | undefined {
  if (kind !== "Profile") return undefined;
  const { assets = [] } = view.get("Profile", namespace, name)?.spec ?? {};
  const listed = assets.length === 0 ? undefined : conditionFor(assets, states);
  const files = missing?.of(`${namespace}/${name}`) ?? [];
  return files.length === 0 || listed?.status === "False" ? listed : missingCondition(files);
}

/** @param id `namespace/name` */
export function profileNamed(id: string): ObjectName {
  const [namespace = "", name = ""] = id.split("/");
  return { kind: "Profile", namespace, name };
}

function missingCondition(files: readonly string[]): Condition {
  const named = files.slice(0, maxListed).map((path) => `"${path}"`);
  const which = named.join(", ");
  const message = `Machines wait and claim no install, because these files are not below --assets-dir: ${which}`;
  return notReady("Missing", message);
}

const unknown: AssetState = { reason: "Waiting", message: "is not fetched before davit accepts the spec" };

const noDirectory = notReady("NoAssetsDirectory", "davit has no assets directory: start it with --assets-dir");

function conditionFor(assets: readonly ProfileAsset[], states: AssetStates | undefined): Condition {
  if (states === undefined) return noDirectory;
  const found = assets.map((asset) => ({ asset, state: states.stateOf(asset) ?? unknown }));
  const missing = found.filter(({ state }) => state.reason !== "Fetched");
  const [worst] = missing.toSorted((a, b) => rankOf(a.state) - rankOf(b.state));
  if (worst === undefined) {
    const message = "Every asset is in the assets directory, with its SHA-256";
    return { type: "AssetsReady", status: "True", reason: "Fetched", message };
  }
  const texts = missing.slice(0, maxListed).map(({ asset, state }) => `"${asset.name}" ${state.message}`);
  const others = missing.length > maxListed ? [`${missing.length - maxListed} more are missing`] : [];
  return notReady(worst.state.reason, [...texts, ...others].join("; "));
}

function notReady(reason: string, message: string): Condition {
  return { type: "AssetsReady", status: "False", reason, message };
}

function rankOf({ reason }: AssetState): number {
  return assetReasons.indexOf(reason);
}

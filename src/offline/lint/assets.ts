/**
 * Finds kernels and initrds below `/assets/` that are missing, or that have another SHA-256 than their location says.
 * It skips a path with a variable of the firmware, such as `${arch}`, because only the firmware knows the value.
 */

import type { JsonObject } from "../../model/json.ts";
import { decodeGroup, decodeProfile, documentAddress, profilePath } from "../../model/objects/documents.ts";
import { type GroupSpec, toGroup } from "../../model/objects/group.ts";
import { assetPath, type BootText, type KernelBoot, kernelTexts } from "../../model/objects/profile.ts";
import type { ObjectName } from "../../model/objects/source.ts";
import { renderBootText } from "../../render/boot/boot.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";
import { ownAsset } from "../../render/boot/named-assets.ts";
import { textOf } from "../../render/boot/pieces.ts";
import { RenderError } from "../../render/core/render-error.ts";
import { Bench } from "../../render/judge/bench.ts";
import { bootVariables } from "../../render/template/variables.ts";
import { type Manifests, sha256 } from "../load/load-manifests.ts";
import { davitUrl, findingAt, type LintFinding, objectText, placeOfField } from "./finding.ts";
import { forGroups } from "./trials.ts";

/**
 * Returns the SHA-256 of an asset, or an empty text if `hashes` is false; undefined if a server would not have it.
 * @param path percent-encoded and relative to `/assets/`.
 */
export type LookAt = (path: string, hashes: boolean) => Promise<string | undefined>;

/** An asset that a Profile's field names, and the Groups that use it. */
interface Wanted {
  readonly profile: ObjectName;
  readonly field: string;
  readonly asset: NamedAsset;
  readonly groups: ObjectName[];
}

interface NamedAsset {
  readonly path: string;
  /** Empty without a digest. */
  readonly sha256: string;
}

/** A Profile's boot section, and its default metadata. */
interface Kernel {
  readonly boot: KernelBoot;
  readonly defaults: JsonObject | undefined;
}

/** Returns a finding for each asset that machines of a Group would ask for and not get. davit fetches `spec.assets`. */
export async function assetFindings(manifests: Manifests, lookAt: LookAt): Promise<readonly LintFinding[]> {
  const known = new Map<string, string | undefined>();
  const findings: LintFinding[] = [];
  const fetched = fetchedAssets(manifests);
  for (const { profile, field, asset, groups } of wantedAssets(manifests)) {
    const { path, sha256: digest } = asset;
    const key = digest === "" ? path : `${path}?`;
    if (!known.has(key)) known.set(key, await lookAt(path, digest !== ""));
    const found = known.get(key) ?? fetched.get(path);
    const place = `${objectText(profile)}, ${field} ${forGroups(groups)}`;
    const at = placeOfField(manifests, profile, { field });
    if (found === undefined) {
      findings.push(findingAt(at, "missing-asset", `${place}: no asset "/assets/${path}": it is answered 404`));
    } else if (digest !== "" && found !== digest) {
      const message = `${place}: "/assets/${path}" has the SHA-256 ${found}: it is not sent`;
      findings.push(findingAt(at, "wrong-asset", message));
    }
  }
  return findings;
}

/** Returns the SHA-256 of each asset that davit fetches, by its path. */
function fetchedAssets({ documents }: Manifests): ReadonlyMap<string, string> {
  const profiles = documents.filter(([path]) => documentAddress(path)?.kind === "profile");
  const assets = profiles.flatMap(([, text]) => decodeProfile(text)?.content.assets ?? []);
  return new Map(assets.map(({ name, sha256: digest }) => [assetPath(name), digest]));
}

function wantedAssets({ documents }: Manifests): Iterable<Wanted> {
  const list = new WantedList(documents);
  for (const [path, text] of documents) {
    const address = documentAddress(path);
    const group = address?.kind === "group" ? decodeGroup(text) : undefined;
    if (address?.kind === "group" && group !== undefined && group.refused !== true) list.add(address, group.spec);
  }
  return list.all();
}

class WantedList {
  readonly #texts: ReadonlyMap<string, string>;
  readonly #bench = new Bench({ sha256, davitUrl });
  readonly #boots = new Map<string, Kernel | undefined>();
  readonly #wanted = new Map<string, Wanted>();

  constructor(documents: Manifests["documents"]) {
    this.#texts = new Map(documents);
  }

  all(): Iterable<Wanted> {
    return this.#wanted.values();
  }

  /** Adds the assets that the machines of a Group load. */
  add({ namespace, name }: Pick<ObjectName, "namespace" | "name">, spec: GroupSpec): void {
    const profile = { kind: "Profile", namespace, name: spec.profile } as const;
    const { boot, defaults } = this.#bootOf(profile) ?? {};
    if (boot === undefined) return;
    const variables = bootVariables({ group: toGroup(namespace, name, spec), defaults, davitUrl });
    for (const [field, source] of assetTexts(boot)) {
      const asset = assetOf(
        rendered(() => textOf(renderBootText(source, variables, (text) => this.#bench.template(text, undefined)))),
      );
      if (asset === undefined) continue;
      const key = JSON.stringify([namespace, spec.profile, field, asset]);
      const same = this.#wanted.get(key) ?? { profile, field: `spec.boot.${field}`, asset, groups: [] };
      same.groups.push({ kind: "Group", namespace, name });
      this.#wanted.set(key, same);
    }
  }

  #bootOf({ namespace, name }: ObjectName): Kernel | undefined {
    const path = profilePath(namespace, name);
    if (!this.#boots.has(path)) this.#boots.set(path, kernelBoot(this.#texts.get(path)));
    return this.#boots.get(path);
  }
}

function kernelBoot(text: string | undefined): Kernel | undefined {
  const { boot, metadata } = (text === undefined ? undefined : decodeProfile(text)?.content) ?? {};
  return boot?.kind === "kernel" ? { boot, defaults: metadata } : undefined;
}

function assetTexts(boot: KernelBoot): readonly BootText[] {
  return kernelTexts(boot).filter(([field]) => field === "kernel" || field.startsWith("initrd"));
}

/** Returns the rendered text; empty if rendering fails, because the trial reports that. */
function rendered(render: () => string): string {
  try {
    return render();
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    return "";
  }
}

/** Returns an asset below `/assets/`; undefined for another location, or for one with a variable of the firmware. */
function assetOf(text: string): NamedAsset | undefined {
  const own = ownAsset(parseInitrd(text).location, [davitUrl]);
  if (own === undefined) return undefined;
  const [, digest = ""] = /[?&]sha256=([^&#\s]*)/.exec(own) ?? [];
  return { path: own.slice("/assets/".length).replace(/[?#\s].*$/s, ""), sha256: digest.toLowerCase() };
}

/** Finds out whether the Profile of a Group has an `install`. */

import { decodeProfile, type GroupDocument, profilePath } from "../../model/objects/documents.ts";
import type { ProfileContent } from "../../model/objects/profile.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import type { StoredDocuments } from "../core/stored-documents.ts";
import type { LedgerFacts } from "./ledger-facts.ts";

export interface PlannedInstallsOptions {
  readonly documents: Pick<StoredDocuments, "textAt">;
  /** Undefined if there is none: then nothing asks for installs. */
  readonly ledger?: LedgerFacts | undefined;
}

export class PlannedInstalls {
  readonly #options: PlannedInstallsOptions;
  /** By the path of a Profile: whether its stored content has an `install`. */
  readonly #known = new Map<string, { readonly text: string; readonly hasInstall: boolean }>();

  constructor(options: PlannedInstallsOptions) {
    this.#options = options;
  }

  /** True if the Profile of a Group has an `install`. @param contents the planned contents, by the Profiles' keys. */
  has(
    { namespace }: ObjectName,
    document: GroupDocument | undefined,
    contents: ReadonlyMap<string, ProfileContent>,
  ): boolean {
    const name = document?.spec.profile;
    if (name === undefined || this.#options.ledger === undefined) return false;
    const planned = contents.get(objectKey({ kind: "Profile", namespace, name }));
    if (planned !== undefined) return planned.install !== undefined;
    // Thousands of Groups may have one Profile, and reading its document takes long.
    const path = profilePath(namespace, name);
    const text = this.#options.documents.textAt(path) ?? "";
    const known = this.#known.get(path);
    if (known !== undefined && known.text === text) return known.hasInstall;
    const hasInstall = text.includes('"install"') && decodeProfile(text)?.content.install !== undefined;
    this.#known.set(path, { text, hasInstall });
    return hasInstall;
  }
}

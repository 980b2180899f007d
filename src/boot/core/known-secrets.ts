/** The texts of Secrets as the boot service knows them: by their paths in the store, and decrypted. */

import { secretPath } from "../../model/objects/documents.ts";
import {
  fieldOf,
  type GenericFormat,
  isOfSecret,
  type ProfileContent,
  partsOf,
  type TemplatePart,
} from "../../model/objects/profile.ts";
import type { SecretReader, SecretText } from "../../model/objects/secret-texts.ts";
import { BootError } from "./boot-error.ts";

/** The text of a template, as its object has it. */
export interface TemplateText {
  readonly text: string;
  /** True if the text is served as it is, without rendering. */
  readonly raw: boolean;
  readonly format?: GenericFormat;
}

interface NamedProfile {
  /** `namespace/name`. */
  readonly id: string;
  readonly content: ProfileContent;
}

/** A machine's Group and Profile. */
interface ServedProfile {
  readonly group: { readonly id: string };
  readonly profile: NamedProfile;
}

interface KnownSecret {
  readonly stored: string;
  readonly read: SecretText;
}

export class KnownSecrets {
  readonly reader: SecretReader;
  /** By path. */
  readonly #secrets = new Map<string, KnownSecret>();

  constructor(reader: SecretReader) {
    this.reader = reader;
  }

  /** @param stored what the store has at a path. */
  learn(path: string, stored: string): void {
    this.#secrets.set(path, { stored, read: this.reader.decode(path, stored) });
  }

  forget(path: string): void {
    this.#secrets.delete(path);
  }

  /** Reads all texts again, with other keys. */
  readAgain(): void {
    for (const [path, { stored }] of [...this.#secrets]) this.learn(path, stored);
  }

  /**
   * Returns the text of one of a machine's templates, of a Secret or not.
   * @throws {BootError} noPart, broken, undecryptable.
   */
  template({ group, profile }: ServedProfile, part: TemplatePart): TemplateText {
    const subject = { group: group.id, profile: profile.id };
    const template = profile.content.templates[part];
    if (template === undefined) throw new BootError("noPart", subject);
    if (template.kind === "text") return template;
    const found = this.#textOf(profile, part);
    if (template.kind === "broken" || found === undefined) throw new BootError("broken", subject);
    if ("problem" in found) throw new BootError("undecryptable", { ...subject, ...found });
    return { text: found.text, raw: template.raw, ...(template.format && { format: template.format }) };
  }

  /** Returns why a text of a Profile cannot be decrypted; undefined if all can, or are missing. */
  problemOf(profile: NamedProfile): string | undefined {
    const texts = partsOf(profile.content.templates).map((part) => this.#textOf(profile, part));
    return texts.flatMap((text) => (text !== undefined && "problem" in text ? [text.problem] : []))[0];
  }

  /** Undefined for a part that is of no Secret, and if the store does not have its text. */
  #textOf({ id, content }: NamedProfile, part: TemplatePart): SecretText | undefined {
    const template = content.templates[part];
    if (!isOfSecret(template)) return undefined;
    const [namespace = "", name = ""] = id.split("/");
    const read = this.#secrets.get(secretPath(namespace, name, template.sha256))?.read;
    return read !== undefined && "problem" in read ? { problem: `spec.${fieldOf(part)}: ${read.problem}` } : read;
  }
}

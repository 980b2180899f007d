/**
 * The errors for a template or a result that cannot be used. Their messages appear in conditions and logs, and
 * templates and values may be secret. So a message is davit's own text: it never quotes a template, a value or a
 * library.
 */

import { shown } from "../../lib/text/visible.ts";
import type { TextPosition } from "./text-position.ts";

/**
 * Every reason with its message. A message begins with `Read ` if the mistake is in a result or a raw document:
 * `isOfResult` depends on it.
 */
export const renderReasons = {
  templateTooLarge: "Parse template: larger than 1 MiB or more than 10,000 expressions",
  templateTooDeep: "Parse template: blocks or sub-expressions are nested deeper than 100 levels",
  syntax: "Parse template: this is not allowed here",
  notClosed: "Parse template: an expression, a comment or a block is not closed",
  blockMismatch: "Parse template: the closing tag does not belong to the block that is open",
  tripleClose: "Parse template: }}} ends only what {{{ began, put a space before }",
  tripleOpen: "Parse template: {{{ is ended only by }}}, put a space after {",
  unsupported: "Parse template: partials, decorators, raw blocks and literals as names are not supported",
  unknownHelper: "Parse template: no helper has this name",
  unknownBlock: "Parse template: no block has this name, the blocks are if, unless, each and with",
  unknownData: "Parse template: no such name, the names with @ are @root, @index, @key, @first and @last",
  wrongArguments: "Parse template: wrong number or kind of arguments",
  undefinedVariable: "Render template: variable is not defined",
  badArgument: "Render template: this helper cannot use the value it was given",
  budget: "Render template: stopped after 100,000 block steps or as much other work",
  resultTooLarge: "Render template: result is larger than 8 MiB",
  stopped:
    "Render config: stopped after 10 s, or because its thread ran out of memory: make its text or metadata smaller",
  controlCharacter: "Render boot: kernel, initrd or argument has a control character",
  emptyKernel: "Render boot: kernel is empty",
  bootTooLarge: "Render boot: kernel, initrds and arguments take more than 64 KiB",
  valueInLocation: "Render boot: a value in kernel or initrd has white space, a quote or another mark of boot scripts",
  valueIsNoWord: "Render boot: blanks and double quotes of a value cannot stand in one argument of Linux",
  openQuote: "Render boot: a double quote in args is not closed, so that a value cannot be quoted",
  valueIsToken: "Render iPXE script: a value in args would be a token of iPXE, or a part of one",
  grubEscapes: "Render GRUB config: a value in args has a quote or a backslash, which GRUB does not hand on as it is",
  grubToken:
    "Render GRUB config: an iPXE token that GRUB does not know and that no label of the request fills: " +
    "set boot.grubScript",
  grubLocation:
    "Render GRUB config: GRUB cannot load this location: write http://HOST:PORT/PATH, tftp://HOST/PATH or a path, " +
    "or set boot.grubScript",
  grubInitrdWords:
    "Render GRUB config: GRUB cannot make a file of an initrd: put it into a cpio archive, or set boot.grubScript",
  grubSplits:
    "Render GRUB config: a value in args has a letter that Linux takes for a blank, and GRUB does not quote it",
  scriptValue: "Render script: a value has a line break or another control character",
  scriptControl: "Render script: a control character other than line feed and tab",
  scriptTooLarge: "Render script: larger than 1 MiB",
  noIpxeLine: "Read iPXE script result: first line is not #!ipxe",
  metadataTooDeep: "Render metadata: nested deeper than 64 levels",
  metadataTooLarge: "Render metadata: names and values take more than 8 MiB",
  notIgnition: "Read Ignition result: not an object with a text at ignition.version",
  notJson: "Read Ignition result: neither JSON nor YAML without outer braces",
  notRawJson: "Read raw Ignition document: not JSON",
  butane: "Read Ignition result: a Butane document in JSON, or with raw: true: write it as YAML, and remove raw",
  butaneVersion:
    "Read Butane result: variant and version must be fcos and 1.0.0 to 1.6.0, or flatcar and 1.0.0 or 1.1.0",
  butaneUnknown: "Read Butane result: this variant and version has no such field: correct the name, or raise version",
  butaneText: "Read Butane result: the value must be a text",
  butaneInteger: "Read Butane result: the value must be a whole number, without quotes",
  butaneBoolean: "Read Butane result: the value must be true or false, without quotes",
  butaneList: "Read Butane result: the value must be a list",
  butaneMapping: "Read Butane result: the value must be a mapping of fields",
  butanePath: "Read Butane result: the value must be a path that begins with a slash, without //, . and .. in it",
  butaneSource: "Read Butane result: no URL that Ignition reads: correct it, or write the text as inline",
  butaneUnitName: "Read Butane result: a unit ends in .service, .mount or another type of systemd, a drop-in in .conf",
  butaneChoice:
    "Read Butane result: unknown value: format is ext4, btrfs, xfs, vfat, swap or since Ignition 3.3.0 none, level " +
    "is linear, raid0, raid1, raid4, raid5, raid6 or raid10, compression is gzip",
  butaneGuid: "Read Butane result: a GUID has 32 hexadecimal digits, in groups of 8, 4, 4, 4 and 12",
  butaneLabel:
    "Read Butane result: the label of a partition has 36 bytes at most and no colon, one of LUKS 47 bytes, and a " +
    "name of LUKS no slash",
  butaneUrl: "Read Butane result: the value must begin with http:// or https://",
  butaneHash: "Read Butane result: hash is sha512- and 128 hexadecimal digits, or since Ignition 3.1.0 sha256- and 64",
  butaneMode: "Read Butane result: mode is from 0 to 07777",
  butaneMissing:
    "Read Butane result: a required field is missing here: add name, path, device, devices, format, level, number or " +
    "label, target, url, thumbprint, source or password_hash",
  butaneOwner: "Read Butane result: user and group have id or name, not both",
  butaneOverwrite: "Read Butane result: overwrite: true needs contents",
  butaneDuplicate:
    "Read Butane result: two entries have the same name, path, device, number or value: remove one of them",
  butaneAlias: "Read Butane result: an alias has no anchor, or its anchor is used more than 100 times",
  butaneSources: "Read Butane result: only one of inline, local and source may be set: remove the others",
  butaneLocal:
    "Read Butane result: no such local text: write the text itself, as inline, contents or ssh_authorized_keys; " +
    "local and contents_local may name a key of the ConfigMap that has this template",
  butaneTree: "Read Butane result: trees need a directory, which davit does not have: list each file in storage.files",
  butaneMerge: "Read Butane result: a config to merge or replace must be JSON with a text at ignition.version",
  butaneMount:
    "Read Butane result: with_mount_unit needs format, and path unless format is swap, all without control characters",
  butaneMountPath: "Read Butane result: since fcos 1.6.0, with_mount_unit needs a path below /etc or /var",
  butaneClevis: "Read Butane result: Flatcar has no Clevis: use key_file",
  butaneLayout:
    "Read Butane result: layout must be x86_64, aarch64, ppc64le, or since 1.6.0 s390x-eckd, -zfcp or -virt",
  butaneMirror: "Read Butane result: mirror needs two devices or more, and no layout of s390x",
  butaneLuks:
    "Read Butane result: cex needs a layout of s390x and neither tang nor tpm2; s390x-eckd needs a device " +
    "/dev/dasdX, s390x-zfcp a device /dev/sdX",
  butaneGrub: "Read Butane result: name and password_hash may only have letters, digits and . _ @ + = / -",
  butaneTooLarge: "Read Butane result: the Ignition config would be larger than 8 MiB",
  ambiguousYaml: "Read Ignition result: YAML versions differ about this plain value, quote it or write plain decimal",
  noCloudConfigLine: "Read cloud-config result: first line is neither #cloud-config nor begins with #!",
  notYaml: "Read cloud-config result: not YAML",
  notGenericJson: "Read generic result: not JSON, which its format says it is",
  yamlTooLarge: "Read result: larger than 1 MiB and not JSON",
} as const;

export type RenderReason = keyof typeof renderReasons;

interface RenderErrorDetails {
  readonly variable?: string | undefined;
  readonly field?: string | undefined;
}

/** A template or its result cannot be used. */
export class RenderError extends Error {
  override readonly name = "RenderError";
  readonly reason: RenderReason;
  /** The place in the template, or in its result if `isOfResult`. Undefined if the error has no single place. */
  readonly position: TextPosition | undefined;
  /**
   * The variable that is not defined. This name is part of the template, which may be secret. The field is private, so
   * that logs do not show it.
   */
  readonly #variable: string | undefined;

  /**
   * The field of a boot section that has the mistake, such as `args[2]`. Undefined for other texts, and for a mistake
   * of the whole section.
   */
  readonly field: string | undefined;

  constructor(reason: RenderReason, position?: TextPosition, { variable, field }: RenderErrorDetails = {}) {
    super(`${renderReasons[reason]}${placeText(reason, position)}`);
    this.reason = reason;
    this.position = position;
    this.#variable = variable;
    this.field = field;
  }

  /**
   * Returns the variable that is not defined, such as `disk.path`. Only the reason undefinedVariable has one. Call this
   * only if the template is not secret.
   */
  get variable(): string | undefined {
    return this.#variable;
  }

  /** True for a mistake in a template's result, or in a raw document. */
  get isOfResult(): boolean {
    return isOfResult(this.reason);
  }

  /** Returns the same error with the name of a boot section's field. */
  within(field: string): RenderError {
    return new RenderError(this.reason, this.position, { variable: this.#variable, field });
  }

  /**
   * Returns the message without its place.
   * @param isSecret true for a secret template. The message then leaves out the variable's name, which is part of it.
   */
  sentence(isSecret: boolean): string {
    const name = this.#variable === undefined || isSecret ? "" : `: "${shown(this.#variable)}"`;
    return `${renderReasons[this.reason]}${name}`;
  }

  /** Returns the message with its place. `isSecret` means the same as in `sentence`. */
  problem(isSecret: boolean): string {
    return `${this.sentence(isSecret)}${placeText(this.reason, this.position)}`;
  }
}

function isOfResult(reason: RenderReason): boolean {
  return renderReasons[reason].startsWith("Read ");
}

function placeText(reason: RenderReason, position: TextPosition | undefined): string {
  if (position === undefined) return "";
  const where = isOfResult(reason) ? " of the result" : "";
  return ` (line ${position.line}, column ${position.column}${where})`;
}

/**
 * Calls a renderer or a check. Returns the RenderError that it throws; undefined if it throws nothing. Other errors
 * pass through.
 */
export function renderErrorOf(run: () => void): RenderError | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof RenderError) return error;
    throw error;
  }
}

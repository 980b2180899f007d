/** A Profile: what a machine boots, and the templates of its configs. */

import type { JsonObject } from "./json.ts";

/** Where the kernel comes from. Texts are templates over the group's metadata, its selector and `davit.url`. */
export interface KernelBoot {
  readonly kernel: string;
  readonly initrd: readonly string[];
  readonly args: readonly string[];
  /** Append `initrd=<name>` for each initrd, which older UEFI iPXE needs. */
  readonly efiInitrd: boolean;
}

/** A text of a boot section, with its field, such as `args[2]`. */
export type BootText = readonly [field: string, text: string];

/** Every text of a boot section that has a kernel. */
export function kernelTexts({ kernel, initrd, args }: KernelBoot): readonly BootText[] {
  return [
    ["kernel", kernel],
    ...initrd.map((text, at) => [`initrd[${at}]`, text] as const),
    ...args.map((text, at) => [`args[${at}]`, text] as const),
  ];
}

/** Every template of a boot section, of any kind. */
export function bootTexts({ boot, grubScript }: Pick<ProfileContent, "boot" | "grubScript">): readonly BootText[] {
  const own: readonly BootText[] = grubScript === undefined ? [] : [["grubScript", grubScript]];
  if (boot?.kind === "kernel") return [...kernelTexts(boot), ...own];
  return boot?.kind === "script" ? [["script", boot.script], ...own] : own;
}

/** True for a field of `bootTexts` with the location of a file. */
export function isLocation(field: string): boolean {
  return field === "kernel" || field.startsWith("initrd[");
}

/** A boot section with further arguments after its own. */
export function withArguments<Kernel extends KernelBoot>(boot: Kernel, args: readonly string[]): Kernel {
  return args.length === 0 ? boot : { ...boot, args: [...boot.args, ...args] };
}

/** Boot from the machine's own disk instead: end iPXE, hand over by sanboot, or answer 404. */
export type LocalBoot = "exit" | "sanboot" | "notFound";

export type Boot =
  | ({ readonly kind: "kernel" } & KernelBoot)
  | { readonly kind: "local"; readonly local: LocalBoot }
  /** A whole script for iPXE, a template as kernel is. */
  | { readonly kind: "script"; readonly script: string };

/** The configs of a Profile that are templates: each one's field, and the path at which machines get it. */
const configParts = {
  ignition: { endpoint: "ignition" },
  cloudConfig: { endpoint: "cloud" },
  generic: { endpoint: "generic" },
} as const;
export type TemplateField = keyof typeof configParts;
type PartEndpoint = (typeof configParts)[TemplateField]["endpoint"];
export const templateParts = Object.keys(configParts) as readonly TemplateField[];
export const partEndpoints = templateParts.map((part) => configParts[part].endpoint);
/** One of `genericParts`, by its name; served at this path. */
export type GenericPart = `generic/${string}`;
/** The place of a template: also its key in a spec and in the store. */
export type TemplatePart = TemplateField | GenericPart;
export type Templates<Template> = Partial<Record<TemplateField, Template>> & Record<GenericPart, Template>;

const partPrefix = "generic/";

/** The generic part of this name. */
export function genericPart(name: string): GenericPart {
  return `${partPrefix}${name}`;
}

const longestPartName = 63;
const endingOfSignature = /\.(?:sig|asc)$/;

/** True for a name that the CRD admits for a generic part. A path with any other name is no part's path. */
export function isPartName(name: string): boolean {
  const isPlain = name.length <= longestPartName && /^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/.test(name);
  return isPlain && !endingOfSignature.test(name);
}

/** Every part that has a template: the fields first, then the generic parts as the object lists them. */
export function partsOf(templates: Readonly<Templates<unknown>>): readonly TemplatePart[] {
  return [...templateParts.filter((part) => part in templates), ...Object.keys(templates).filter(isGenericPart)];
}

/** True for a part of `genericParts`. */
export function isGenericPart(key: string): key is GenericPart {
  return key.startsWith(partPrefix);
}

/** The field of a part in the object, such as `generic` or `genericParts[user-data]`, in Kubernetes' notation. */
export function fieldOf(part: TemplatePart | "boot"): string {
  return isGenericPart(part) ? `genericParts[${part.slice(partPrefix.length)}]` : part;
}

/** The path at which machines get a part, without the slash. */
export function endpointOf(part: TemplatePart): string {
  return isGenericPart(part) ? part : configParts[part].endpoint;
}

/** The part at this path, without the slash; undefined for a path without a template. */
export function partAt(endpoint: PartEndpoint | GenericPart): TemplatePart;
export function partAt(endpoint: string): TemplatePart | undefined;
export function partAt(endpoint: string): TemplatePart | undefined {
  if (isGenericPart(endpoint)) return endpoint;
  return templateParts.find((part) => endpointOf(part) === endpoint);
}

/** What a generic config promises to be. */
export type GenericFormat = "json";

/** How a template is served. */
interface Serving {
  /** Byte for byte, not as a template. */
  readonly raw: boolean;
  /** The format of a generic config; absent if it may be any text. */
  readonly format?: GenericFormat;
}

/** The source of a template's text, from the object. */
export type TemplateSource = Serving &
  (
    | { readonly kind: "inline"; readonly text: string }
    | { readonly kind: "configMap" | "secret"; readonly name: string; readonly key: string }
  );

/** What booting a Profile does to the disks of a machine: `Install` overwrites them, `Boot` leaves them alone. */
export const effects = ["Install", "Boot"] as const;
export type Effect = (typeof effects)[number];

/** The readable part of a refused Profile: both members make its machines safer at once. */
export interface ProfileCaution {
  /** They boot from their own disk. */
  readonly local?: LocalBoot;
  /** Booting it overwrites disks. */
  readonly isInstall?: true;
}

/** A Profile's spec after admission. */
export interface ProfileSpec {
  readonly displayName?: string;
  /** Absent if the object does not set it; then the Profile is served like `Boot`. */
  readonly effect?: Effect;
  /** Defaults for a Group's metadata, by top-level names. */
  readonly metadata?: JsonObject;
  readonly boot?: Boot;
  /** A whole config for GRUB, a template like kernel; it replaces the one made from `boot`. */
  readonly grubScript?: string;
  readonly templates: Readonly<Templates<TemplateSource>>;
}

/**
 * A template as the store holds it: its text, the hash of a Secret's text, or `broken` when this Profile never had a
 * usable one. A broken part is answered with 500, so that a waiting machine continues once it is repaired.
 */
export type ResolvedTemplate =
  | (Serving & { readonly kind: "text"; readonly text: string })
  | SecretTemplate
  | BrokenTemplate;

/** `withdrawn`: its Secret's text was removed or is no longer allowed; the other content is good. */
export interface BrokenTemplate {
  readonly kind: "broken";
  readonly withdrawn?: true;
}

/** A template from a Secret; its name and key show later whether it is still allowed. */
export interface SecretTemplate extends Serving {
  readonly kind: "secret";
  readonly name: string;
  readonly key: string;
  readonly sha256: string;
}

/**
 * True for a template from a Secret. Neither the template nor its result is ever shown, not even names of its
 * variables: they are for its machines only.
 */
export function isOfSecret(template: ResolvedTemplate | undefined): template is SecretTemplate {
  return template?.kind === "secret";
}

/** A Profile's content with every reference resolved: complete in itself, and served as a whole or not at all. */
export interface ProfileContent {
  readonly displayName: string;
  readonly effect?: Effect;
  readonly metadata?: JsonObject;
  readonly grubScript?: string;
  readonly boot?: Boot | { readonly kind: "broken" };
  readonly templates: Readonly<Templates<ResolvedTemplate>>;
}

/** A boot from the machine's own disk is no install, whatever else the Profile says. */
export function installs({ effect, boot, grubScript }: ProfileContent): boolean {
  return effect === "Install" && !(boot?.kind === "local" && grubScript === undefined);
}

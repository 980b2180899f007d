/** A Profile: what a machine boots, and the templates of its configs. */

import type { JsonObject } from "../json.ts";
import type { DiskLoaders, InstallPlan, LocalBoot, ReportRules } from "../permits/permit.ts";

/** How to boot a kernel. All texts are templates that can use the Group's metadata, its selector and `davit.url`. */
export interface KernelBoot {
  readonly kernel: string;
  readonly initrd: readonly string[];
  readonly args: readonly string[];
  /** Append the argument `initrd=<name>` for each initrd. Older versions of iPXE for UEFI need it. */
  readonly efiInitrd: boolean;
}

/** A text of a boot section and its field, such as `args[2]`. */
export type BootText = readonly [field: string, text: string];

/** Lists every text of a boot section with a kernel. */
export function kernelTexts({ kernel, initrd, args }: KernelBoot): readonly BootText[] {
  return [
    ["kernel", kernel],
    ...initrd.map((text, at) => [`initrd[${at}]`, text] as const),
    ...args.map((text, at) => [`args[${at}]`, text] as const),
  ];
}

/** Lists every template of a boot section, and `grubScript`. */
export function bootTexts({ boot, grubScript }: Pick<ProfileContent, "boot" | "grubScript">): readonly BootText[] {
  const own: readonly BootText[] = grubScript === undefined ? [] : [["grubScript", grubScript]];
  if (boot?.kind === "kernel") return [...kernelTexts(boot), ...own];
  return boot?.kind === "script" ? [["script", boot.script], ...own] : own;
}

/** True for a field of `bootTexts` whose text is the location of a file. */
export function isLocation(field: string): boolean {
  return field === "kernel" || field.startsWith("initrd[");
}

/** Returns a boot section with further arguments appended. */
export function withArguments<Kernel extends KernelBoot>(boot: Kernel, args: readonly string[]): Kernel {
  return args.length === 0 ? boot : { ...boot, args: [...boot.args, ...args] };
}

/** How a machine boots from its own disk. */
export interface BootFromDisk {
  readonly local: LocalBoot;
  /** See `InstallPlan`. */
  readonly disk?: DiskLoaders;
}

export type Boot =
  | ({ readonly kind: "kernel" } & KernelBoot)
  | ({ readonly kind: "local" } & BootFromDisk)
  /** A whole script for iPXE. Like `kernel`, it is a template. */
  | { readonly kind: "script"; readonly script: string };

/** What boots a machine by a script of davit. The text is also the path at which it gets the script. */
export const loaders = ["ipxe", "grub"] as const;
export type Loader = (typeof loaders)[number];

/** True for the path (without the slash) of a script that boots a machine. */
export function isLoader(endpoint: string): endpoint is Loader {
  return (loaders as readonly string[]).includes(endpoint);
}

/** The fields of a Profile that are templates, and the path at which machines get each config. */
const configParts = {
  ignition: { endpoint: "ignition" },
  cloudConfig: { endpoint: "cloud" },
  generic: { endpoint: "generic" },
} as const;
export type TemplateField = keyof typeof configParts;
type PartEndpoint = (typeof configParts)[TemplateField]["endpoint"];
export const templateParts = Object.keys(configParts) as readonly TemplateField[];
export const partEndpoints = templateParts.map((part) => configParts[part].endpoint);
/** An entry of `genericParts`. The text is also the path at which machines get it. */
export type GenericPart = `generic/${string}`;
/** Which template of a Profile. The text is also the template's key in a spec and in the store. */
export type TemplatePart = TemplateField | GenericPart;
export type Templates<Template> = Partial<Record<TemplateField, Template>> & Record<GenericPart, Template>;

const partPrefix = "generic/";

/** Returns the generic part with this name. */
export function genericPart(name: string): GenericPart {
  return `${partPrefix}${name}`;
}

const longestPartName = 63;
// A path with such an ending serves the signature of a part, so no part may have such a name.
const endingOfSignature = /\.(?:sig|asc)$/;

/** True for a name that the CRD permits for a generic part. A path with any other name belongs to no part. */
export function isPartName(name: string): boolean {
  const isPlain = name.length <= longestPartName && /^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/.test(name);
  return isPlain && !endingOfSignature.test(name);
}

/** Lists every part that has a template: first the fields, then the generic parts in the object's order. */
export function partsOf(templates: Readonly<Templates<unknown>>): readonly TemplatePart[] {
  return [...templateParts.filter((part) => part in templates), ...Object.keys(templates).filter(isGenericPart)];
}

/** True for a part of `genericParts`. */
export function isGenericPart(key: string): key is GenericPart {
  return key.startsWith(partPrefix);
}

/** Returns the field of a part in the notation of Kubernetes, such as `generic` or `genericParts[user-data]`. */
export function fieldOf(part: TemplatePart | "boot"): string {
  return isGenericPart(part) ? `genericParts[${part.slice(partPrefix.length)}]` : part;
}

/** Returns the path at which machines get a part, without the slash. */
export function endpointOf(part: TemplatePart): string {
  return isGenericPart(part) ? part : configParts[part].endpoint;
}

/** Returns the part at this path (without the slash); undefined for a path that serves no part. */
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
  /** True if the text is served byte for byte, not rendered as a template. */
  readonly raw: boolean;
  /** The format of a generic config; absent if it may be any text. */
  readonly format?: GenericFormat;
}

/** When the text of a Secret is served. */
interface Sealing {
  /** Only inside an open install, and only to the address that has claimed it; absent for always. */
  readonly duringInstall?: true;
}

/** Where the object has the text of a template. */
export type TemplateSource = Serving &
  (
    | { readonly kind: "inline"; readonly text: string }
    | { readonly kind: "configMap"; readonly name: string; readonly key: string }
    | ({ readonly kind: "secret"; readonly name: string; readonly key: string } & Sealing)
  );

/** What booting a Profile does to the disks of a machine: `Install` overwrites them, `Boot` leaves them alone. */
export const effects = ["Install", "Boot"] as const;
export type Effect = (typeof effects)[number];

/**
 * What davit reads of a refused Profile. Its members take effect immediately, because they only make machines safer.
 */
export interface ProfileCaution {
  /** The refused version boots machines from their own disk. */
  readonly local?: LocalBoot;
  /** The refused version has the effect `Install`. */
  readonly isInstall?: true;
  /** The refused version demands HTTPS. */
  readonly requireTls?: true;
}

/** A Profile's spec after admission. */
export interface ProfileSpec {
  readonly displayName?: string;
  /** Absent if the object does not set it. davit then serves the Profile like one with `Boot`. */
  readonly effect?: Effect;
  /** With it, each config and script of the Profile needs a permit. The effect is `Install`. */
  readonly install?: InstallPlan;
  /** What machines may report about themselves. */
  readonly reports?: ReportRules;
  /** Files that davit fetches into the assets directory. */
  readonly assets?: readonly ProfileAsset[];
  /** True if davit serves the Profile's configs only by HTTPS; absent if not. */
  readonly requireTls?: true;
  /** Defaults for a Group's metadata. A top-level name of the Group replaces the default with this name. */
  readonly metadata?: JsonObject;
  readonly boot?: Boot;
  /** A whole config for GRUB, a template like `kernel`. It replaces the config that davit makes from `boot`. */
  readonly grubScript?: string;
  readonly templates: Readonly<Templates<TemplateSource>>;
}

/**
 * A template as the store holds it: its text, the name of a Secret's text, or `broken` if there is no usable text.
 * davit answers 500 for a broken part, so that a machine asks again and continues when the part is repaired.
 */
export type ResolvedTemplate =
  | (Serving & { readonly kind: "text"; readonly text: string })
  | SecretTemplate
  | BrokenTemplate;

/**
 * `withdrawn`: the Secret's text was removed, or templates may no longer use it. The Profile's other parts are good.
 */
export interface BrokenTemplate {
  readonly kind: "broken";
  readonly withdrawn?: true;
}

/** A template from a Secret. davit keeps the Secret's name and key to check later whether its text is still allowed. */
export interface SecretTemplate extends Serving, Sealing {
  readonly kind: "secret";
  readonly name: string;
  readonly key: string;
  /** The name of the text in the store. It is the text's SHA-256 only in the clear: see `secret-texts.ts`. */
  readonly sha256: string;
}

/**
 * True for a template from a Secret. Only machines may see it: davit shows people neither the template, nor its result,
 * nor the names of its variables.
 */
export function isOfSecret(template: ResolvedTemplate | undefined): template is SecretTemplate {
  return template?.kind === "secret";
}

/** True for the SHA-256 of a text. A text in the store may have a name that is none. */
export function isDigest(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}

/** True for a template that is served only to the address that has claimed an install. */
export function isSealed(template: ResolvedTemplate | undefined): boolean {
  return template?.kind === "secret" && template.duringInstall === true;
}

/** A Profile's content with every reference resolved. davit serves the whole content of one version, or none of it. */
export interface ProfileContent {
  readonly displayName: string;
  readonly effect?: Effect;
  /** See `ProfileSpec`. */
  readonly install?: InstallPlan;
  /** See `ProfileSpec`. */
  readonly reports?: ReportRules;
  /** See `ProfileSpec`. */
  readonly assets?: readonly ProfileAsset[];
  /** See `ProfileSpec`. */
  readonly requireTls?: true;
  readonly metadata?: JsonObject;
  readonly grubScript?: string;
  readonly boot?: Boot | { readonly kind: "broken" };
  readonly templates: Readonly<Templates<ResolvedTemplate>>;
}

/**
 * True for a Profile that overwrites disks. A boot from the machine's own disk does not, even with the effect
 * `Install`, unless the Profile has a `grubScript`.
 */
export function installs({ effect, boot, grubScript }: ProfileContent): boolean {
  return effect === "Install" && !(boot?.kind === "local" && grubScript === undefined);
}

/** An entry of `spec.assets`. */
export interface ProfileAsset {
  /** The path below `/assets/`. */
  readonly name: string;
  /** Where the file is. Its query may be a secret, so no message quotes it. */
  readonly url: string;
  /** 64 hexadecimal digits in lower case. */
  readonly sha256: string;
}

/** How far davit is with an asset. The reasons are those of the condition `AssetsReady`, the worst first. */
export const assetReasons = ["Conflict", "HostNotAllowed", "FetchFailed", "Waiting", "Fetching", "Fetched"] as const;

export interface AssetState {
  readonly reason: (typeof assetReasons)[number];
  /** What follows the name of the asset in a sentence. It changes at most every ten seconds. */
  readonly message: string;
}

export interface AssetStates {
  /** Undefined for an asset that davit does not know yet. */
  stateOf(asset: Pick<ProfileAsset, "name" | "sha256">): AssetState | undefined;
}

/** The files that davit lacked when a machine wanted to install, whether Profiles list them or not. */
export interface MissingFiles {
  /** Returns the paths, such as `/assets/linux`, that keep machines of a Profile (`namespace/name`) waiting now. */
  of(profile: string): readonly string[];
  /** The Profiles with such files. */
  readonly profiles: readonly string[];
}

/** The path of the store's listener below which followers get assets. */
export const storeAssetsPrefix = "/davit/v1/assets/";

/** Returns the name of an asset as a part of a URL. */
export function assetPath(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

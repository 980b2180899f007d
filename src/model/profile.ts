/** A Profile: what a machine boots, and the templates of its configs. */

/** Where the kernel comes from. Texts are templates over the group's metadata, its selector and `davit.url`. */
export interface KernelBoot {
  readonly kernel: string;
  readonly initrd: readonly string[];
  readonly args: readonly string[];
  /** Append `initrd=<name>` for each initrd, which older UEFI iPXE needs. */
  readonly efiInitrd: boolean;
}

/** Every text of a boot section, with the field that it stands in, such as `args[2]`. */
export function bootTexts({ kernel, initrd, args }: KernelBoot): readonly (readonly [field: string, text: string])[] {
  return [
    ["kernel", kernel],
    ...initrd.map((text, at) => [`initrd[${at}]`, text] as const),
    ...args.map((text, at) => [`args[${at}]`, text] as const),
  ];
}

/** Boot from the machine's own disk instead: end iPXE, hand over by sanboot, or answer 404. */
export type LocalBoot = "exit" | "sanboot" | "notFound";

export type Boot = ({ readonly kind: "kernel" } & KernelBoot) | { readonly kind: "local"; readonly local: LocalBoot };

/** The configs of a Profile that are templates. */
export const templateParts = ["ignition", "cloudConfig", "generic"] as const;
export type TemplatePart = (typeof templateParts)[number];

/** What a generic config promises to be. */
export type GenericFormat = "json";

/** How a template is served. */
interface Serving {
  /** Byte for byte, not as a template. */
  readonly raw: boolean;
  /** Of a generic config; absent for any text. */
  readonly format?: GenericFormat;
}

/** Where a template's text is, as the object says it. */
export type TemplateSource = Serving &
  (
    | { readonly kind: "inline"; readonly text: string }
    | { readonly kind: "configMap" | "secret"; readonly name: string; readonly key: string }
  );

/** A Profile's spec after admission. */
export interface ProfileSpec {
  readonly displayName?: string;
  readonly boot?: Boot;
  readonly templates: Readonly<Partial<Record<TemplatePart, TemplateSource>>>;
}

/**
 * A template as the store holds it: its text, the hash under which a secret's text lies, or `broken` when this Profile
 * never had a usable one. A broken part is answered 500, so that a waiting machine goes on once it is repaired.
 */
export type ResolvedTemplate =
  | (Serving & { readonly kind: "text"; readonly text: string })
  | SecretTemplate
  | BrokenTemplate;

/** `withdrawn`: its Secret was taken away from content that is good otherwise. */
export interface BrokenTemplate {
  readonly kind: "broken";
  readonly withdrawn?: true;
}

/** A template that came from a Secret; its name and key tell later whether it is still allowed. */
export interface SecretTemplate extends Serving {
  readonly kind: "secret";
  readonly name: string;
  readonly key: string;
  readonly sha256: string;
}

/** A Profile's content with every reference resolved: complete in itself, and served as a whole or not at all. */
export interface ProfileContent {
  readonly displayName: string;
  readonly boot?: Boot | { readonly kind: "broken" };
  readonly templates: Readonly<Partial<Record<TemplatePart, ResolvedTemplate>>>;
}

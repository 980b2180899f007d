/**
 * Gives advice on specs that are valid but probably unintended. The status reports it, and no machine waits because of
 * it. Pure.
 */

import type { JsonObject } from "../../model/json.ts";
import { toRequirement } from "../../model/labels/expression.ts";
import { isOwnUuid } from "../../model/labels/hardware-ids.ts";
import { type GroupSpec, isBroad } from "../../model/objects/group.ts";
import {
  type BootText,
  bootTexts,
  fieldOf,
  isLocation,
  type KernelBoot,
  kernelTexts,
  type ProfileSpec,
  partsOf,
} from "../../model/objects/profile.ts";
import { lacksInitrdArgument, parseInitrd } from "../../render/boot/initrd.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { renderErrorOf, renderReasons } from "../../render/core/render-error.ts";
import { foreignLocation } from "../../render/grub/locations.ts";
import { foreignToken } from "../../render/grub/words.ts";
import { chainOnlyLabels } from "../../render/ipxe/ipxe.ts";
import { sharedNames } from "../../render/metadata/metadata.ts";
import type { Advice } from "../status/conditions.ts";
import { effectCure, installerCommandIn, installerIn } from "./installers.ts";

/** Advice on a Profile. */
export function profileAdvice(spec: ProfileSpec): readonly Advice[] {
  const { boot, metadata = {} } = spec;
  const ofBoot = boot?.kind === "kernel" ? kernelAdvice(boot) : [];
  const ofGrub = boot?.kind === "kernel" && spec.grubScript === undefined ? grubAdvice(boot) : [];
  return [...ofBoot, ...ofGrub, ...effectAdvice(spec), ...emptiedAdvice(textsOf(spec)), ...metadataAdvice(metadata)];
}

/** Advice on a Group. */
export function groupAdvice(spec: GroupSpec): readonly Advice[] {
  const { args = [], metadata } = spec;
  const texts = args.map((text, at) => [`args[${at}]`, text] as const);
  return [
    ...selectorAdvice(spec),
    ...argumentAdvice("args", args),
    ...emptiedAdvice(texts),
    ...metadataAdvice(metadata),
  ];
}

function selectorAdvice(spec: GroupSpec): readonly Advice[] {
  return [
    ...uuidAdvice(spec),
    ...unsentAdvice(spec),
    ...(isBroad(spec) ? [broadAdvice] : []),
    ...(isContradictory(spec) ? [contradictionAdvice] : []),
  ];
}

/** Advice on labels that iPXE sends only after `/chain.ipxe`. Without them, a machine falls to another Group. */
function unsentAdvice({ selector, expressions = [] }: GroupSpec): readonly Advice[] {
  const keys = [...Object.keys(selector), ...expressions.map(({ key }) => key)];
  const unsent = keys.find((key) => chainOnlyLabels.has(key));
  if (unsent === undefined) return [];
  const text = `machines send ${unsent} only after /chain.ipxe, not after /boot.ipxe: let DHCP name /chain.ipxe`;
  return [{ code: "unsent-label", field: "spec.selector", text }];
}

function uuidAdvice({ selector, expressions = [] }: GroupSpec): readonly Advice[] {
  const lists = expressions.filter(({ key, operator }) => key === "uuid" && operator === "In");
  if (selector.uuid !== undefined && !isOwnUuid(selector.uuid)) return [noUuid("spec.selector.matchLabels.uuid")];
  const isInList = lists.some(({ values }) => !values.every(isOwnUuid));
  return isInList ? [noUuid("spec.selector.matchExpressions")] : [];
}

/** True if a label has a value that an expression rules out. */
function isContradictory({ selector, expressions = [] }: GroupSpec): boolean {
  const labels = new Map(Object.entries(selector));
  return expressions.some((expression) => {
    const value = labels.get(expression.key);
    return value !== undefined && !toRequirement(expression).accepts(value);
  });
}

function noUuid(field: string): Advice {
  const text = "a uuid of the selector is invalid, or shared by many boards: it selects no machine";
  return { code: "nameless-uuid", field, text };
}

const broadAdvice: Advice = {
  code: "broad-selector",
  field: "spec.selector",
  text: "the selector asks for no value, and its patterns fix few characters: nearly every machine may meet it",
};

const contradictionAdvice: Advice = {
  code: "contradictory-selector",
  field: "spec.selector",
  text: "the labels of the selector do not meet its expressions: no machine gets this Group",
};

// A status message has at most 32 KiB by the CRDs. A name of `/metadata` contains all keys on its path, so it can be
// long.
const maxNames = 10;
const maxNameLength = 253;

function metadataAdvice(metadata: JsonObject): readonly Advice[] {
  const field = "spec.metadata";
  let names: readonly string[] = [];
  const error = renderErrorOf(() => {
    names = sharedNames(metadata);
  });
  if (error !== undefined) {
    return [{ code: reasonCodes[error.reason], field, text: `/metadata is answered 500: ${error.message}` }];
  }
  const shown = names.slice(0, maxNames).map((name) => {
    const shown = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}...` : name;
    return `metadata has more than one ${shown}, and /metadata shows one of them`;
  });
  const texts = names.length > maxNames ? [...shown, `so it is with ${names.length - maxNames} other names`] : shown;
  return texts.map((text) => ({ code: "shared-metadata-name", field, text }));
}

// iPXE splits a line into words, and some words end the command or begin a comment (measured with iPXE 1.0.0+).
function argumentAdvice(list: string, args: readonly string[]): readonly Advice[] {
  return args.flatMap((arg, at) => {
    const text = endOf(arg);
    const field = `${list}[${at}]`;
    return text === undefined ? [] : [{ code: "ended-command", field: `spec.${field}`, text: `${field} ${text}` }];
  });
}

function endOf(arg: string): string | undefined {
  if (arg.startsWith("#")) return "begins with #: iPXE takes the rest of the line for a comment";
  return ["||", "&&", ";"].includes(arg) ? `is ${arg}: iPXE ends the command there` : undefined;
}

/** Advice on a Profile that boots an installer but does not set `effect`. It reports only the first match. */
function effectAdvice(spec: ProfileSpec): readonly Advice[] {
  if (spec.effect !== undefined) return [];
  for (const [field, text] of bootTexts(spec)) {
    const found = installerIn(argumentsIn(field, text));
    if (found === undefined) continue;
    const what = `boot.${field} has ${found.argument} of ${found.installer}, and the Profile no effect`;
    return [{ code: "unmarked-installer", field: `spec.boot.${field}`, text: `${what}: ${effectCure}` }];
  }
  for (const part of partsOf(spec.templates)) {
    const template = spec.templates[part];
    const command = template?.kind === "inline" ? installerCommandIn(template.text) : undefined;
    if (command === undefined) continue;
    const text = `${fieldOf(part)} runs ${command}, and the Profile has no effect: ${effectCure}`;
    return [{ code: "unmarked-installer", field: `spec.${fieldOf(part)}`, text }];
  }
  return [];
}

/** The words that the kernel gets as arguments. Those after an initrd name no installer. */
function argumentsIn(field: string, text: string): string {
  return isLocation(field) ? parseInitrd(text).rest : text;
}

function kernelAdvice(boot: KernelBoot): readonly Advice[] {
  return [...argumentAdvice("boot.args", boot.args), ...initrdAdvice(boot), ...digestAdvice(boot)];
}

function grubAdvice(boot: KernelBoot): readonly Advice[] {
  return kernelTexts(boot).flatMap(([field, text]) => {
    const place = `spec.boot.${field}`;
    const reason = isLocation(field) ? foreignLocation(text, field) : undefined;
    if (reason !== undefined) {
      const what = `boot.${field}: /grub answers 500: ${renderReasons[reason]}`;
      return [{ code: reasonCodes[reason], field: place, text: what }];
    }
    if (foreignToken(text) === undefined) return [];
    const what = `boot.${field} has a token of iPXE that GRUB does not know: /grub answers 500`;
    return [{ code: "foreign-token", field: place, text: `${what}, set boot.grubScript` }];
  });
}

function textsOf(spec: ProfileSpec): readonly BootText[] {
  const ofParts = partsOf(spec.templates).flatMap((part): readonly BootText[] => {
    const template = spec.templates[part];
    return template?.kind === "inline" ? [[fieldOf(part), template.text]] : [];
  });
  return [...bootTexts(spec).map(([field, text]): BootText => [`boot.${field}`, text]), ...ofParts];
}

/** Advice on labels without a value in a URL: davit cannot identify a machine that sends them. */
function emptiedAdvice(texts: readonly BootText[]): readonly Advice[] {
  return texts.flatMap(([field, text]) => {
    const [, name] = /[?&](uuid|mac|serial)=(?:[&\s"']|$)/.exec(text) ?? [];
    if (name === undefined) return [];
    const cure = `if a tool has replaced \${${name}}, exclude the object from it, or write $\${${name}} for Flux`;
    return [{ code: "emptied-token", field: `spec.${field}`, text: `${field} has ${name}= without a value: ${cure}` }];
  });
}

/** Advice on digests that nothing checks: davit checks only what it sends. */
function digestAdvice(boot: KernelBoot): readonly Advice[] {
  const foreign = kernelTexts(boot).filter(([field, text]) => isLocation(field) && isUnchecked(text));
  return foreign.map(([field]) => {
    const text = `boot.${field} has a sha256 that nothing checks: put the file below /assets/`;
    return { code: "unchecked-digest", field: `spec.boot.${field}`, text };
  });
}

function isUnchecked(text: string): boolean {
  const { location } = parseInitrd(text);
  return /[?&]sha256=/i.test(location) && !/^(\{\{\s*davit\.url\s*\}\})?\/assets\//.test(location);
}

function initrdAdvice(boot: KernelBoot): readonly Advice[] {
  if (!lacksInitrdArgument(boot)) return [];
  const text = "boot.initrd is not found by kernels that an older UEFI iPXE starts: set boot.efiInitrd";
  return [{ code: "unnamed-initrd", field: "spec.boot.initrd", text }];
}

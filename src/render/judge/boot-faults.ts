/** Finds the faults in what iPXE and GRUB would get from a Profile, for one Group. Pure. */

import { unreachable } from "../../lib/errors.ts";
import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import {
  isLocation,
  type KernelBoot,
  kernelTexts,
  type Loader,
  type ProfileContent,
  withArguments,
} from "../../model/objects/profile.ts";
import { type FilledKernel, renderBoot, renderBootText } from "../boot/boot.ts";
import { hasOpenQuote } from "../boot/kernel-words.ts";
import { renderGrubScript, renderIpxeScript } from "../boot/own-scripts.ts";
import { type Filled, textOf } from "../boot/pieces.ts";
import { RenderError, renderErrorOf } from "../core/render-error.ts";
import { renderGrub } from "../grub/grub.ts";
import { foreignLocation } from "../grub/locations.ts";
import { chainLabels, foreignToken } from "../grub/words.ts";
import { renderIpxe } from "../ipxe/ipxe.ts";
import type { Template, Variables } from "../template/template.ts";

/** Which clients a fault affects: one of them, or both for `boot`. */
export type BootClient = "boot" | Loader;

/** Where a fault is. */
interface FaultPlace {
  readonly client: BootClient;
  /** The faulty field, such as `spec.boot.args[2]`. */
  readonly field: string;
  /** Set if the field belongs to the Group and not to its Profile. */
  readonly isOfGroup?: true;
}

interface BootFault extends FaultPlace {
  readonly error: RenderError;
  /** Set if only machines that boot by GRUB meet the fault, and none by iPXE. */
  readonly isAdvice?: true;
}

/** The inputs: a Profile's boot section, and a machine of a Group. */
interface BootTrial {
  readonly content: Pick<ProfileContent, "boot" | "grubScript">;
  /** The Group's own arguments. */
  readonly args: readonly string[];
  readonly variables: Variables;
  /** What the machine reports about itself. */
  readonly labels: Labels;
  readonly compile: (text: string) => Template;
}

/** Returns every fault in each text. A broken boot section has no texts to check. */
export function bootFaults(trial: BootTrial): readonly BootFault[] {
  const { content, variables, compile } = trial;
  const { boot, grubScript } = content;
  const ofGrub =
    grubScript === undefined
      ? []
      : faultOf({ client: "grub", field: "spec.boot.grubScript" }, () =>
          renderGrubScript(grubScript, variables, compile),
        );
  switch (boot?.kind) {
    case undefined:
    case "broken":
    case "local":
      return ofGrub;
    case "script":
      return [
        ...faultOf({ client: "ipxe", field: "spec.boot.script" }, () =>
          renderIpxeScript(boot.script, variables, compile),
        ),
        ...ofGrub,
      ];
    case "kernel":
      return [...kernelFaults(boot, trial), ...ofGrub];
    default:
      return unreachable(boot);
  }
}

function kernelFaults(
  boot: { readonly kind: "kernel" } & KernelBoot,
  { content, args, variables, labels, compile }: BootTrial,
): readonly BootFault[] {
  // If a Profile has its own GRUB script, only iPXE uses its kernel.
  const isForGrub = content.grubScript === undefined;
  const client = isForGrub ? "boot" : "ipxe";
  const texts = [
    ...kernelTexts(boot).map(([field, text]) => [{ client, field: `spec.boot.${field}` }, text] as const),
    ...args.map((text, at) => [{ client, field: `spec.args[${at}]`, isOfGroup: true }, text] as const),
  ];
  const found = texts.flatMap(([place, text]) => faultOf(place, () => renderBootText(text, variables, compile)));
  if (found.length > 0) return found;
  let faults: readonly BootFault[] = [];
  const ofAll = faultOf({ client, field: "spec.boot" }, () => {
    const filled = renderBoot(withArguments(boot, args), variables, compile);
    const parts = texts
      .filter(([{ field }]) => field.includes("args["))
      .map(([place, text]) => [place, renderBootText(text, variables, compile)] as const);
    // Only GRUB lacks tokens and locations of iPXE, so the machines that boot by iPXE do not wait because of one.
    const grubLabels = new Map([...chainLabels.map((name) => [name, ""] as const), ...sentLabels(labels)]);
    const asGrub = (each: FilledKernel) => renderGrub({ ...sampleGrub, labels: grubLabels, boot: forGrub(each) });
    const locations = isForGrub ? locationFaults(texts, variables, compile) : [];
    faults = [
      ...locations,
      ...argumentFaults("ipxe", filled, parts, renderIpxe),
      ...(isForGrub ? argumentFaults("grub", filled, parts, asGrub) : []),
    ];
  });
  return [...ofAll, ...faults];
}

/** Replaces what only iPXE knows. Advice reports it. */
function forGrub(boot: FilledKernel): FilledKernel {
  const plain = (field: string) => (text: string) =>
    foreignToken(text) === undefined && foreignLocation(text, field) === undefined ? text : "/";
  return {
    ...boot,
    kernel: plain("kernel")(boot.kernel),
    initrd: boot.initrd.map(plain("initrd")),
    args: boot.args.filter((arg) => foreignToken(textOf(arg)) === undefined),
  };
}

/** The locations foreign to GRUB that only a template's result shows. The Profile's status has the other ones. */
function locationFaults(
  texts: readonly (readonly [FaultPlace, string])[],
  variables: Variables,
  compile: BootTrial["compile"],
): readonly BootFault[] {
  return texts.flatMap(([{ field }, text]) => {
    const name = field.slice("spec.boot.".length);
    if (!(isLocation(name) && text.includes("{{")) || foreignLocation(text, name) !== undefined) return [];
    const result = textOf(renderBootText(text, variables, compile)).trim();
    const reason = result === "" ? undefined : foreignLocation(result, name);
    return reason === undefined ? [] : [{ client: "grub", field, error: new RenderError(reason), isAdvice: true }];
  });
}

const sampleGrub = { title: "", authority: "", separator: "auto", commands: "auto", isGrubClient: false } as const;

/**
 * The faults in what a client would get: one for each faulty argument. If davit cannot find the faulty arguments, one
 * for the whole boot section.
 */
function argumentFaults(
  client: BootClient,
  filled: FilledKernel,
  args: readonly (readonly [FaultPlace, Filled])[],
  write: (boot: FilledKernel) => unknown,
): readonly BootFault[] {
  const [whole] = faultOf({ client, field: "spec.boot" }, () => write(filled));
  if (whole === undefined) return [];
  if (whole.error.reason === "openQuote") {
    const open = args.filter(([, arg]) => hasOpenQuote(arg));
    return open.map(([place]) => ({ ...place, client, error: whole.error }));
  }
  const alone = args.flatMap(([place, arg]) => faultOf({ ...place, client }, () => write({ ...filled, args: [arg] })));
  return alone.length > 0 ? alone : [whole];
}

function faultOf(place: FaultPlace, render: () => unknown): readonly BootFault[] {
  const error = renderErrorOf(render);
  return error === undefined ? [] : [{ ...place, error }];
}

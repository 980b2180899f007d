/** Finds the Groups that the identities and labels of Machines select. */

import { decodeGroup, groupPath, machinePath } from "../../model/objects/documents.ts";
import { type Group, toGroup } from "../../model/objects/group.ts";
import { decodeMachine, type MachineSpec } from "../../model/objects/machine.ts";
import type { GroupObject, MachineObject } from "../../model/objects/source.ts";
import { SelectorIndex } from "../../model/selection/selector-index.ts";
import type { Manifests } from "../load/load-manifests.ts";

/** An accepted Machine and its Groups. */
export interface PlacedMachine {
  readonly machine: MachineObject;
  /** True if the labels of the Machine select no Group: see `MachineDocument.tenant`. */
  readonly isTenant: boolean;
  /** The Groups that its macs select, nearly always one. Empty if no Group selects the Machine. */
  readonly groups: readonly GroupObject[];
}

/** Returns the accepted Machines of manifests, with the Groups that their machines get if they send no other labels. */
export function placedMachines({ view, documents }: Pick<Manifests, "view" | "documents">): readonly PlacedMachine[] {
  const machines = [...view.all("Machine")].filter(({ refusal }) => refusal === undefined);
  if (machines.length === 0) return [];
  const texts = new Map(documents);
  const index = new SelectorIndex([...view.all("Group")].flatMap((group) => readyGroup(group, texts)));
  return machines.map((machine) => {
    const { namespace, name, spec } = machine;
    const isTenant = decodeMachine(texts.get(machinePath(namespace, name)) ?? "")?.tenant === true;
    const found = requestsOf(spec, isTenant ? {} : spec.labels).map((labels) => index.find(labels)?.id);
    const groups = [...new Set(found)].flatMap((id) => groupOf(view, id));
    const counting = groups.filter((group) => !isTenant || group.namespace === namespace);
    return { machine, isTenant, groups: counting.filter(({ refusal }) => refusal === undefined) };
  });
}

function readyGroup({ namespace, name }: GroupObject, texts: ReadonlyMap<string, string>): readonly Group[] {
  const document = decodeGroup(texts.get(groupPath(namespace, name)) ?? "");
  return document === undefined ? [] : [toGroup(namespace, name, document.spec, document)];
}

/** The labels of the Machine's requests: a machine sends its uuid and the mac of the card by which it boots. */
function requestsOf(
  { identities }: MachineSpec,
  labels: MachineSpec["labels"],
): readonly ReadonlyMap<string, string>[] {
  const split = identities.map(
    (text) => [text.slice(0, text.indexOf("/")), text.slice(text.indexOf("/") + 1)] as const,
  );
  const uuid = split.filter(([label]) => label === "uuid");
  const macs = split.filter(([label]) => label === "mac");
  const requests = macs.length === 0 ? [uuid] : macs.map((mac) => [...uuid, mac]);
  return requests.map((identity) => new Map([...identity, ...Object.entries(labels)]));
}

function groupOf(view: Manifests["view"], id: string | undefined): readonly GroupObject[] {
  if (id === undefined) return [];
  const at = id.indexOf("/");
  return [view.get("Group", id.slice(0, at), id.slice(at + 1))].filter((group) => group !== undefined);
}

/**
 * Tries a manifest that is not applied: lints it, and previews what a machine would get, over the present objects. It
 * uses the code of `davit lint` and `davit render`. It runs in a thread of its own (`try-worker.ts`).
 */

import { BootConfigs, type BootConfigsOptions } from "../../boot/boot-configs.ts";
import type { TriedManifest } from "../../http/console/pages/context.ts";
import { type Preview, Previews } from "../../http/ops/preview.ts";
import { systemClock } from "../../lib/clock.ts";
import { objectKey, referencesOf, type SourceObject } from "../../model/objects/source.ts";
import { lint } from "../../offline/lint/lint.ts";
import { bootIndexOf, type Manifests, planManifests } from "../../offline/load/load-manifests.ts";
import { ObjectPlaces } from "../../offline/load/object-places.ts";
import { Admission } from "../../sources/admission/admission.ts";
import { readCrds } from "../../sources/admission/crds.ts";
import { Holdings } from "../../sources/directory/holdings.ts";
import {
  type Definition,
  type FileContent,
  markCount,
  readText,
  unusableFile,
} from "../../sources/directory/read-file.ts";
import { textBegin } from "../../sources/directory/yaml-documents.ts";

/** What the thread needs to try a manifest. */
export interface TryJob {
  readonly manifest: string;
  readonly rawQuery: string | undefined;
  /** The present objects, each as JSON. */
  readonly objects: readonly string[];
  readonly adminNamespace: string | undefined;
  readonly rendering: Pick<BootConfigsOptions, "authority" | "grub" | "isSigned">;
}

/** The manifest's name in findings. No file of the source is among the files of a job. */
const pastedFile = "pasted";
const presentFile = "present";
/** A third of what a file may have: each can become a node of 1 KB. */
const maxMarks = 150_000;
/** More Groups of a pasted Profile are not rendered. */
const maxGroups = 200;

export async function tryManifest({ manifest, rawQuery, objects, adminNamespace, rendering }: TryJob) {
  const pasted = readPasted(manifest, new Admission(await readCrds()));
  const present = objects.map((text) => JSON.parse(text) as SourceObject);
  const names = pasted.definitions.map((each) => (each.kind === "accepted" ? each.object : each.name));
  const pastedKeys = new Set(names.map(objectKey));
  const rest = presentContent(present.filter((object) => !pastedKeys.has(objectKey(object))));
  const manifests = manifestsOf([rest, pasted], adminNamespace);
  const { view, places } = manifests;
  places.add({ file: pastedFile, start: textBegin, read: () => manifest }, pasted);
  places.add({ file: presentFile, start: textBegin, read: () => "" }, rest);
  const presentKeys = new Set(present.map(objectKey));
  return {
    kind: "tried",
    objects: [...pastedKeys].map((key) => ({ key, isPresent: presentKeys.has(key) })),
    findings: await findingsOf(manifests, pastedKeys),
    ...(rawQuery === undefined || view.problems.length > 0
      ? {}
      : {
          before: await preview(manifestsOf([presentContent(present)], adminNamespace), { rawQuery, rendering }),
          preview: await preview(manifests, { rawQuery, rendering }),
        }),
  } satisfies TriedManifest;
}

function manifestsOf(files: readonly FileContent[], adminNamespace: string | undefined) {
  const view = new Holdings();
  view.take({ files, problems: [], isAtRest: true });
  const plan = planManifests(view, { log: { error: () => undefined }, adminNamespace });
  return { view, advice: [], places: new ObjectPlaces(), ...plan } satisfies Manifests;
}

function readPasted(text: string, admission: Admission): FileContent {
  if (markCount(text) > maxMarks) {
    return unusableFile(pastedFile, "too-large", `The manifest has more than ${maxMarks} lines and values: split it`);
  }
  const read = readText({ path: pastedFile, text, start: textBegin }, admission);
  return read ?? unusableFile(pastedFile, "no-document", "The manifest holds no document: give Profiles and Groups");
}

function presentContent(objects: readonly SourceObject[]): FileContent {
  return { definitions: objects.map(definitionOf), problems: [], ignored: [] };
}

/** A stand-in of a refused object stays one. */
function definitionOf(object: SourceObject): Definition {
  const place = { file: presentFile, at: { line: 1, column: 1 }, document: 1, path: [] };
  const isStandIn = (object.kind === "Group" || object.kind === "Machine") && object.refusal !== undefined;
  if (!isStandIn) return { kind: "accepted", object, place };
  const { kind, namespace, name, origin, refusal: text = "" } = object;
  return { kind: "refused", name: { kind, namespace, name }, origin, text, place, standIn: object };
}

/** Lints the pasted objects, and the present ones that use them. Only what is wrong with the manifest is returned. */
async function findingsOf(manifests: Manifests, pasted: ReadonlySet<string>): Promise<TriedManifest["findings"]> {
  const { view, planned } = manifests;
  const profiles = [...view.all("Profile")].filter(
    (profile) => pasted.has(objectKey(profile)) || referencesOf(profile).some((each) => pasted.has(objectKey(each))),
  );
  const profileKeys = new Set(profiles.map(objectKey));
  const groups = [...view.all("Group")]
    .filter(({ namespace, spec }) => profileKeys.has(objectKey({ kind: "Profile", namespace, name: spec.profile })))
    .slice(0, maxGroups);
  const concerned = new Set([...pasted, ...profileKeys, ...groups.map(objectKey)]);
  const shown = planned.filter(({ name }) => concerned.has(objectKey(name)));
  const options = {
    directories: [],
    readsInput: false,
    lookAt: undefined,
    nowMs: systemClock.nowMs(),
    progress: () => undefined,
  };
  const found = await lint({ ...manifests, planned: shown }, options);
  return found
    .filter(({ file }) => file === pastedFile)
    .map(({ line, column, severity, code, message }) => ({ line, column, severity, code, message }));
}

/** As `davit render`: no ledger is asked, and each install is shown as if its permit were open. */
async function preview(
  manifests: Manifests,
  { rawQuery, rendering }: { readonly rawQuery: string; readonly rendering: TryJob["rendering"] },
): Promise<Preview> {
  const previews = new Previews({
    index: bootIndexOf(manifests),
    configsOver: (index) => new BootConfigs({ ...rendering, index, permits: "assumed" }),
  });
  const { refused, ...found } = await previews.of(rawQuery);
  const isPermit = refused?.reason === "noPermit";
  const permit =
    found.permit === undefined && !isPermit ? {} : { permit: "no ledger is asked: shown as if it were open" };
  return { ...found, refused: isPermit ? undefined : refused, ...permit };
}

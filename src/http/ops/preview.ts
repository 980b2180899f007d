/**
 * Shows what a machine with given labels would get, and why. It explains the selection, and renders every config with
 * the code that also answers machines. All of this comes from one state of the store. A preview stores, counts and logs
 * nothing.
 *
 * A preview does not show the body of a config that is made from a Secret. Slow work runs in slices, and machines are
 * answered between two slices.
 */

import { type BootConfigs, type ConfigName, configNames } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { BootGroup } from "../../boot/core/known-documents.ts";
import type { BootMachine } from "../../boot/core/known-machines.ts";
import type { ShownLabel } from "../../boot/explaining/boot-snapshot.ts";
import { BootSnapshot } from "../../boot/explaining/boot-snapshot.ts";
import { type Contenders, findContenders } from "../../boot/explaining/contenders.ts";
import { type Explanation, explain, permitText } from "../../boot/explaining/explain.ts";
import { type Warning, warningsOf } from "../../boot/explaining/warnings.ts";
import type { BootIndex, BootView } from "../../boot/selection/boot-index.ts";
import { Turns } from "../../lib/slices.ts";
import { type Labels, labelsFromQuery, sentLabels } from "../../model/labels/labels.ts";
import { isGenericPart, isOfSecret, partAt, partsOf } from "../../model/objects/profile.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import { answerError } from "../errors.ts";

interface PreviewsOptions {
  readonly index: BootIndex;
  /**
   * Returns a `BootConfigs` that reads this view of the objects.
   * @throws {BootError} before the boot listener is open.
   */
  readonly configsOver: (view: BootView) => Pick<BootConfigs, "answer">;
}

/** A machine's answer at one path. */
export interface Rendering {
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  /** The length of the whole body in UTF-8. */
  readonly bytes: number;
  /** The first 64 Ki characters of the body; absent if the body is made from a Secret. */
  readonly body?: string;
  readonly isCut: boolean;
  readonly isSecret: boolean;
  /** For a 500, the problem as the log would show it. It quotes no value. */
  readonly problem?: string;
}

interface PreviewedConfig {
  readonly rendering: Rendering;
  /** True for a config part that has data from the request. */
  readonly usesRequest: boolean;
}

export interface Preview extends Explanation {
  /** The labels as davit reads them from the query. */
  readonly labels: Readonly<Record<string, string>>;
  /** The Machine objects that the request names. Absent if there are none. */
  readonly machines?: readonly PreviewedMachine[];
  /** The labels by which Groups select, with their origins. Absent if the request has all of them. */
  readonly selectedBy?: readonly ShownLabel[];
  /** What opens or refuses the install. Absent if the machine needs no permit, or is refused before. */
  readonly permit?: string;
  readonly warnings: readonly Warning[];
  readonly renderings: readonly Rendering[];
}

interface PreviewedMachine {
  /** `namespace/name`. */
  readonly machine: string;
  readonly approved: boolean;
  readonly hold: boolean;
  /** True if the newest version is refused: it approves and grants nothing. */
  readonly refused: boolean;
}

/** The most losing Groups, and the most Groups that nearly match, in a preview. */
const shownGroups = 10;
/**
 * The most characters of a body in a preview: more than a person reads. A preview has six bodies, and one more for each
 * generic part.
 */
const maxShownLength = 64 * 1024;

/**
 * The user agent for each config, if it matters. For other clients than GRUB, davit spells locations in `/grub`
 * differently.
 */
const userAgents: Readonly<Partial<Record<ConfigName, string>>> = { grub: "GRUB preview" };

export class Previews {
  readonly #options: PreviewsOptions;
  /** All previews share these turns, so machines wait for one slice at most. */
  readonly #turns = new Turns();

  constructor(options: PreviewsOptions) {
    this.#options = options;
  }

  /**
   * Previews a machine that sends this query, without the `?`.
   * @throws {LabelError} for more labels than a machine may send.
   */
  async of(rawQuery: string): Promise<Preview> {
    const labels = labelsFromQuery(rawQuery);
    const moment = new BootSnapshot(this.#options.index, labels);
    const { seen } = moment;
    const contenders = await this.#contenders(moment, seen.labels);
    const previewed: PreviewedConfig[] = [];
    for (const name of configsOf(moment)) {
      await this.#turns.next();
      previewed.push(await this.#render(name, moment, { labels, rawQuery }));
    }
    const renderings = previewed.map(({ rendering }) => rendering);
    const { chosen, profile } = moment;
    const warnings = warningsOf({
      labels: seen.labels,
      selectorLabels: contenders.selectorLabels,
      chosen,
      profile,
      usesRequest: previewed.filter(({ usesRequest }) => usesRequest).map(({ rendering: { path } }) => path),
    });
    return {
      labels: Object.fromEntries(sentLabels(labels)),
      ...explain(moment, seen.labels, contenders),
      ...machineOf(moment),
      warnings,
      renderings,
    };
  }

  async #contenders(moment: BootSnapshot, labels: Labels): Promise<Contenders<BootGroup>> {
    // Before the first complete list, some Groups can be missing, so none is shown.
    const groups = moment.refusal?.reason === "notReady" ? [] : moment.groups;
    const work = findContenders({ groups, labels, limit: shownGroups });
    for (;;) {
      const slice = work.next();
      if (slice.done === true) return slice.value;
      await this.#turns.next();
    }
  }

  async #render(
    name: ConfigName,
    moment: BootSnapshot,
    asked: { readonly labels: Labels; readonly rawQuery: string },
  ): Promise<PreviewedConfig> {
    const path = `/${name}`;
    try {
      const configs = this.#options.configsOver(moment);
      const { rendered } = await configs.answer(name, { ...asked, userAgent: userAgents[name] ?? "" });
      // davit marks a part as shared if its template has read nothing of the request.
      const usesRequest = partAt(name) !== undefined && rendered.isShared !== true;
      return { rendering: answered(path, rendered, showsSecret(name, moment)), usesRequest };
    } catch (error) {
      // Any other error is a bug.
      if (!(error instanceof BootError)) throw error;
      return { rendering: refused(path, error), usesRequest: false };
    }
  }
}

/** Returns what davit knows of the machine besides the request. */
function machineOf({ seen, permit }: BootSnapshot): Pick<Preview, "machines" | "selectedBy" | "permit"> {
  const { machines, origins } = seen;
  return {
    ...(machines.length > 0 && { machines: machines.map(previewedMachine) }),
    ...(origins.some(({ origin }) => origin !== "query") && { selectedBy: origins }),
    ...(permit && { permit: permitText(permit) }),
  };
}

function previewedMachine({ id, isApproved, isRefused, isHeld }: BootMachine): PreviewedMachine {
  return { machine: id, approved: isApproved, hold: isHeld, refused: isRefused };
}

function answered(path: string, { body, contentType }: Rendered, isSecret: boolean): Rendering {
  const isCut = !isSecret && body.length > maxShownLength;
  const bytes = Buffer.byteLength(body);
  return { path, status: 200, contentType, bytes, ...(!isSecret && { body: startOf(body) }), isCut, isSecret };
}

function refused(path: string, error: BootError): Rendering {
  const { status, headers, body, report = {} } = answerError(error, path);
  const problem = "problem" in report && typeof report.problem === "string" ? report.problem : undefined;
  const contentType = headers["content-type"] ?? "";
  const shown = { bytes: Buffer.byteLength(body), body, isCut: false, isSecret: false };
  return { path, status, contentType, ...shown, ...(problem !== undefined && { problem }) };
}

/** Copies the start of a long body: V8 keeps a whole text in memory as long as a slice of it exists. */
function startOf(body: string): string {
  return body.length > maxShownLength ? Buffer.from(body.slice(0, maxShownLength)).toString() : body;
}

function showsSecret(name: ConfigName, { profile }: BootSnapshot): boolean {
  const part = partAt(name);
  return part !== undefined && isOfSecret(profile?.content.templates[part]);
}

/** The six configs of every machine, and the generic parts of this machine's Profile. */
function configsOf({ profile }: BootSnapshot): readonly ConfigName[] {
  const parts = profile === undefined ? [] : partsOf(profile.content.templates).filter(isGenericPart);
  return [...configNames, ...parts];
}

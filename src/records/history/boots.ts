/** Splits a machine's requests into boots, and finds each boot's stages and end. Pure. */

import { assert } from "../../lib/errors.ts";
import { isLoader } from "../../model/objects/profile.ts";
import { beginsBoot, isScriptGiven } from "./boot-rule.ts";
import type { PastRequest } from "./history-view.ts";
import { firstRefusal } from "./request.ts";

/** One boot of a machine. */
export interface PastBoot {
  /** Sorted by start time; never empty. */
  readonly requests: readonly PastRequest[];
  /** The numbers of the boot, as in `SeenRequest`: several if several davits answered, and none if none is known. */
  readonly numbers: readonly number[];
  /** The Group of the boot's last answer that has a Group. */
  readonly group: string | undefined;
  /** Stages in order, such as `boot.ipxe -> ipxe -> kernel -> initrd -> ignition`. */
  readonly line: string;
  readonly end: BootEnd;
}

/** How the last request of a boot ended. */
export type BootEnd =
  /** The last request got its whole answer, and no request followed. */
  | { readonly kind: "answered"; readonly stage: string }
  | {
      readonly kind: "refused";
      readonly stage: string;
      readonly status: number;
      /** As in `SeenRequest`. */
      readonly refusal: string | undefined;
      /** See `missingOf`. */
      readonly missing: string | undefined;
    }
  /** The client disconnected before it had the whole answer. */
  | {
      readonly kind: "cut";
      readonly stage: string;
      readonly sentBytes: number;
      readonly ofBytes: number | undefined;
    };

/**
 * Returns the name of a request's stage. For an asset this is `kernel` or `initrd` if the Group's machines boot it as
 * such.
 * @param group the boot's Group, `namespace/name`.
 */
export type StageOf = (request: PastRequest, group: string | undefined) => string;

/** Splits requests into boots, the latest boot last. @param requests sorted by start time. */
export function bootsOf(requests: readonly PastRequest[], stageOf: StageOf): readonly PastBoot[] {
  const boots: PastRequest[][] = [];
  for (const request of requests) {
    const current = boots.at(-1);
    if (current === undefined || begins(request, current)) boots.push([request]);
    else current.push(request);
  }
  return boots.map((boot) => toBoot(boot, stageOf));
}

/** Returns the endpoint's name, or the path for an asset, a generic part, or a path that is no endpoint. */
export function plainStage({ endpoint, path }: PastRequest): string {
  return path === undefined || isLoader(endpoint) ? endpoint : path.replace(/^\//, "");
}

/** Returns the path of the file for which an install waits; undefined if it waits for none. */
export function missingOf({ endpoint, path }: Pick<PastRequest, "endpoint" | "path">): string | undefined {
  return isLoader(endpoint) ? path : undefined;
}

function begins(request: PastRequest, boot: readonly PastRequest[]): boolean {
  const last = boot.at(-1);
  if (last === undefined) return true;
  // davit knew this when it answered, such as of a report after a long install.
  if (request.boot !== 0 && boot.some((each) => each.boot === request.boot)) return false;
  const silentMs = request.startedAtMs - last.lastStartedAtMs - last.durationMs;
  return beginsBoot(request.endpoint, { silentMs, hasScript: boot.some(isScriptGiven) });
}

function toBoot(requests: readonly PastRequest[], stageOf: StageOf): PastBoot {
  const group = requests.findLast((request) => request.group !== undefined)?.group;
  const staged = requests.map((request) => ({ ...request, stage: stageOf(request, group) }));
  const numbers = [...new Set(requests.map(({ boot }) => boot))].filter((boot) => boot !== 0);
  return { requests, numbers, group, line: lineOf(staged), end: endOf(staged.at(-1)) };
}

interface StagedRequest extends PastRequest {
  readonly stage: string;
}

function lineOf(requests: readonly StagedRequest[]): string {
  const stages: { readonly text: string; times: number }[] = [];
  for (const request of requests) {
    const text = stageText(request);
    const last = stages.at(-1);
    if (last?.text === text) last.times += request.times;
    else stages.push({ text, times: request.times });
  }
  return stages.map(({ text, times }) => (times > 1 ? `${text} x${times}` : text)).join(" -> ");
}

/** Returns the text of a stage. It has the status or `cut` only if the request failed. */
function stageText({ stage, isHead, status, isCut }: StagedRequest): string {
  const name = isHead ? `HEAD ${stage}` : stage;
  if (status >= firstRefusal) return `${name} ${status}`;
  return isCut ? `${name} cut` : name;
}

function endOf(last: StagedRequest | undefined): BootEnd {
  assert(last !== undefined, "a boot has a request");
  const { stage, status, refusal, sentBytes, ofBytes } = last;
  if (status >= firstRefusal) return { kind: "refused", stage, status, refusal, missing: missingOf(last) };
  return last.isCut ? { kind: "cut", stage, sentBytes, ofBytes } : { kind: "answered", stage };
}

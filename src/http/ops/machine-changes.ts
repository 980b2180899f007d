/**
 * `POST /machines/adopt` and `POST /machines/forget`: an operator corrects the ledger. Neither can open an install by
 * itself. The guard admits them only with the header `X-Davit-Action` (`guard/ops-guard.ts`).
 */

import type { FastifyPluginAsync } from "fastify";
import { toRfc3339 } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ActionAudit } from "../../model/objects/audit.ts";
import { RequestError } from "../errors.ts";
import type { LedgerOffice, MachineBook } from "./machine-book.ts";
import { findMachine, identityOf, type MachineSubject } from "./machine-report.ts";
import { jsonBodies, show } from "./server.ts";

export interface MachineChangesOptions {
  readonly book: MachineBook;
  /** Undefined in a follower, which never writes. */
  readonly office: LedgerOffice | undefined;
  readonly log: Log;
  /** Undefined without an audit log. */
  readonly audit?: ActionAudit | undefined;
}

const maxBodyBytes = 64 * 1024;
const hourMs = 3_600_000;
/** Longer adoptions are probably a mistake: until then, unknown machines of the Group boot their disks. */
const maxAdoptionMs = 90 * 24 * hourMs;

export const machineChanges: FastifyPluginAsync<MachineChangesOptions> = async (app, { book, office, log, audit }) => {
  jsonBodies(app, maxBodyBytes);
  for (const action of ["adopt", "forget"] as const) {
    app.post(`/machines/${action}`, async ({ body }, reply) => {
      if (!isJsonObject(body)) throw new RequestError("badBody");
      if (office === undefined) throw new RequestError("notTheWriter");
      const done = await correctLedger(action, body, { book, office });
      log.info({ action, ...done }, "an operator changed the ledger");
      audit?.acted({ action, via: "operations", done });
      return show(reply, { json: () => done });
    });
  }
};

/**
 * Corrects the ledger. @returns what was done, for the answer and the log.
 * @throws {RequestError} if it is not done.
 */
export async function correctLedger(
  action: "adopt" | "forget",
  body: JsonObject,
  { book, office }: { readonly book: MachineBook; readonly office: LedgerOffice },
): Promise<object> {
  return await { adopt, forget }[action](body, book, office);
}

/** Makes a change, and returns what was done. */
type LedgerChange = (body: JsonObject, book: MachineBook, office: LedgerOffice) => Promise<object>;

const adopt: LedgerChange = async (body, book, office) => {
  const { group, machine, hours, until, ...others } = body;
  if (Object.keys(others).length > 0) throw new RequestError("adoptQuestion");
  if (typeof group === "string" && machine === undefined)
    return await adoptGroup({ group, hours, until }, book, office);
  if (typeof machine !== "string" || (group ?? hours ?? until) !== undefined) throw new RequestError("adoptQuestion");
  return await adoptMachine(machine, book, office);
};

async function adoptGroup(
  { group, hours, until }: { readonly group: string; readonly hours: unknown; readonly until: unknown },
  { grantOf, ledger: { nowMs } }: Pick<MachineBook, "grantOf" | "ledger">,
  office: LedgerOffice,
): Promise<object> {
  const untilMs = timeOf(hours, until, nowMs);
  if (untilMs === undefined || untilMs <= nowMs) throw new RequestError("adoptQuestion");
  if (untilMs - nowMs > maxAdoptionMs) throw new RequestError("adoptedTooLong");
  if (grantOf(`group/${group}`).kind === "missing") throw new RequestError("noSuchGroup");
  if ((await office.adopt(group, untilMs)) === "late") throw new RequestError("ledgerLate");
  return { group, until: toRfc3339(untilMs) };
}

/** Reads `hours` or `until`; undefined unless exactly one of them is given and has its form. */
function timeOf(hours: unknown, until: unknown, nowMs: number): number | undefined {
  if (typeof hours === "number" && until === undefined) return Math.ceil(nowMs + hours * hourMs);
  if (typeof until !== "string" || hours !== undefined || !rfc3339.test(until)) return undefined;
  const untilMs = Date.parse(until);
  return Number.isNaN(untilMs) ? undefined : untilMs;
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

async function adoptMachine(name: string, book: MachineBook, office: LedgerOffice): Promise<object> {
  const { object, identities, entries } = findMachine(book, name) ?? newcomer(name);
  const group = book.bootOf(identities)?.group ?? entries[0]?.group ?? "";
  const outcome = await office.adoptMachine(identities, group, object !== undefined);
  if (outcome !== "adopted") throw new RequestError(adoptionRefusals[outcome]);
  return { machine: name, identities };
}

const adoptionRefusals = { ambiguous: "severalMachines", full: "ledgerFull", late: "ledgerLate" } as const;

/** Takes a MAC address or uuid that davit does not know for a new machine. */
function newcomer(name: string): Pick<MachineSubject, "object" | "identities" | "entries"> {
  const identity = identityOf(name);
  if (identity === undefined) throw new RequestError("noSuchMachine");
  return { object: undefined, identities: [identity], entries: [] };
}

const forget: LedgerChange = async (body, book, office) => {
  const { machine, group, ...others } = body;
  const [name, ...more] = [machine, group].filter((each) => each !== undefined);
  if (Object.keys(others).length > 0 || typeof name !== "string" || more.length > 0) {
    throw new RequestError("forgetQuestion");
  }
  return machine === undefined ? await endAdoption(name, book, office) : await forgetMachine(name, book, office);
};

async function forgetMachine(name: string, book: MachineBook, office: LedgerOffice): Promise<object> {
  const { identities } = findMachine(book, name) ?? {};
  if (identities === undefined) throw new RequestError("notInLedger");
  const outcome = await office.forget(identities);
  if (outcome === "forgotten" || outcome === "closed") return { machine: name, isRemoved: outcome === "forgotten" };
  throw new RequestError(forgettingRefusals[outcome]);
}

const forgettingRefusals = { unknown: "notInLedger", crowded: "crowdedGrants", late: "ledgerLate" } as const;

async function endAdoption(group: string, { ledger }: MachineBook, office: LedgerOffice): Promise<object> {
  if (ledger.adoptedUntilMs(group) === 0) throw new RequestError("notAdopted");
  if ((await office.adopt(group, 0)) === "late") throw new RequestError("ledgerLate");
  return { group };
}

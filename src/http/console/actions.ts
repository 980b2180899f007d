/**
 * `POST /console/actions`: changes the machines that a form names. The API server changes objects as the visitor, who
 * may do there what the cluster's roles allow. The ledger is corrected as by `davit machine adopt` and `forget`.
 */

import { RequestError } from "../errors.ts";
import { correctLedger } from "../ops/machine-changes.ts";
import { html } from "./html/html.ts";
import { consolePath, type Page } from "./html/layout.ts";
import {
  type LedgerAction,
  ledgerActions,
  type ObjectAction,
  objectActions,
  readChoice,
} from "./pages/actions-form.ts";
import type { ConsoleContext } from "./pages/context.ts";
import type { Visitor } from "./state/visitors.ts";

/** More machines than a person chooses at once. */
const maxMachines = 200;

/**
 * Does what a form asks for, machine by machine.
 * @returns a page with the outcome for each machine, with status 403 if the visitor may make none of the changes.
 * @throws {RequestError} for a form that no page of davit has made.
 */
export async function doActions(form: URLSearchParams, visitor: Visitor, context: ConsoleContext): Promise<Page> {
  const action = form.get("action") ?? "";
  const choices = form.getAll("machine").slice(0, maxMachines);
  const back = form.get("back") ?? "";
  const outcomes: (ActionOutcome & { readonly machine: string })[] = [];
  for (const choice of choices) {
    const { machine } = readChoice(choice);
    outcomes.push({ machine, ...(await outcomeOf(action, choice, visitor, context)) });
  }
  const isForbidden = outcomes.length > 0 && outcomes.every((outcome) => outcome.isForbidden === true);
  const title = isForbidden ? "Not allowed" : "Done";
  const list = outcomes.map(({ machine, text }) => html`<li><code>${machine}</code> ${text}</li>\n`);
  const body = html`<h1>${title}</h1>
${choices.length === 0 ? html`<p>No machine was chosen.</p>` : html`<ul id="outcomes">\n${list}</ul>`}
<p><a href="${back.startsWith(`${consolePath}/`) ? back : `${consolePath}/`}">Back</a></p>`;
  return { title, body, ...(isForbidden && { status: 403 }) };
}

/** What became of one machine. */
interface ActionOutcome {
  readonly text: string;
  readonly isForbidden?: boolean;
}

async function outcomeOf(
  action: string,
  choice: string,
  visitor: Visitor,
  context: ConsoleContext,
): Promise<ActionOutcome> {
  if (isObjectAction(action)) return await changeObject(action, choice, visitor, context);
  if (isLedgerAction(action)) return await changeLedger(action, readChoice(choice).machine, visitor, context);
  throw new RequestError("badRequest");
}

async function changeObject(
  action: ObjectAction,
  choice: string,
  { clusterToken, name }: Visitor,
  { callers, log, audit }: ConsoleContext,
): Promise<ActionOutcome> {
  if (clusterToken === undefined || callers === undefined) throw new RequestError("mayNotChangeObjects");
  const { spec, done, isForSeen } = objectActions[action];
  const { machine, seen } = readChoice(choice);
  if (isForSeen && seen === undefined) return { text: "is not changed: load the page again, and look at the machine" };
  const patch = { machine, spec, seen: isForSeen ? seen : undefined };
  const refusal = await callers.patchMachine(clusterToken, patch);
  if (refusal !== undefined) return { text: `is not changed: ${refusal.why}`, isForbidden: refusal.isForbidden };
  log.info({ action, machine, by: name }, "an operator changed a Machine");
  audit?.acted({ action, via: "console", by: name, done: { machine } });
  return { text: done };
}

async function changeLedger(
  action: LedgerAction,
  machine: string,
  { mayChangeLedger, name }: Visitor,
  { book, office, log, audit }: ConsoleContext,
): Promise<ActionOutcome> {
  if (!mayChangeLedger || book === undefined || office === undefined) throw new RequestError("mayNotChangeLedger");
  try {
    const done = await correctLedger(action, { machine }, { book, office });
    log.info({ action, by: name, ...done }, "an operator changed the ledger");
    audit?.acted({ action, via: "console", by: name, done });
    return { text: ledgerActions[action].done };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { text: `is not changed: ${error.message}` };
  }
}

function isObjectAction(action: string): action is ObjectAction {
  return Object.hasOwn(objectActions, action);
}

function isLedgerAction(action: string): action is LedgerAction {
  return Object.hasOwn(ledgerActions, action);
}

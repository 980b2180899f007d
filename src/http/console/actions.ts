/**
 * `POST /console/actions`: changes the machines that a form names. The API server changes objects as the visitor, who
 * may do there what the cluster's roles allow. The ledger is corrected as by `davit machine adopt` and `forget`.
 */

import { RequestError } from "../errors.ts";
import { correctLedger } from "../ops/machine-changes.ts";
import { type LedgerAction, ledgerActions, type ObjectAction, objectActions } from "./actions-form.ts";
import type { ConsoleContext } from "./context.ts";
import { html } from "./html.ts";
import { consolePath, type Page } from "./layout.ts";
import type { Visitor } from "./visitors.ts";

/** More machines than a person chooses at once. */
const maxMachines = 200;

/**
 * Does what a form asks for, machine by machine.
 * @returns a page with the outcome for each machine.
 * @throws {RequestError} for a form that no page of davit has made.
 */
export async function doActions(form: URLSearchParams, visitor: Visitor, context: ConsoleContext): Promise<Page> {
  const action = form.get("action") ?? "";
  const machines = form.getAll("machine").slice(0, maxMachines);
  const back = form.get("back") ?? "";
  const outcomes: { readonly machine: string; readonly text: string }[] = [];
  for (const machine of machines) outcomes.push({ machine, text: await outcomeOf(action, machine, visitor, context) });
  const list = outcomes.map(({ machine, text }) => html`<li><code>${machine}</code> ${text}</li>\n`);
  const body = html`<h1>Done</h1>
${machines.length === 0 ? html`<p>No machine was chosen.</p>` : html`<ul id="outcomes">\n${list}</ul>`}
<p><a href="${back.startsWith(`${consolePath}/`) ? back : `${consolePath}/`}">Back</a></p>`;
  return { title: "Done", body };
}

async function outcomeOf(action: string, machine: string, visitor: Visitor, context: ConsoleContext): Promise<string> {
  if (isObjectAction(action)) return await changeObject(action, machine, visitor, context);
  if (isLedgerAction(action)) return await changeLedger(action, machine, visitor, context);
  throw new RequestError("badRequest");
}

async function changeObject(
  action: ObjectAction,
  machine: string,
  { clusterToken, name }: Visitor,
  { callers, log }: ConsoleContext,
): Promise<string> {
  if (clusterToken === undefined || callers === undefined) throw new RequestError("mayNotChange");
  const { spec, done } = objectActions[action];
  const why = await callers.patchMachine(clusterToken, machine, spec);
  if (why !== undefined) return `is not changed: ${why}`;
  log.info({ action, machine, by: name }, "an operator changed a Machine");
  return done;
}

async function changeLedger(
  action: LedgerAction,
  machine: string,
  { mayChangeLedger, name }: Visitor,
  { book, office, log }: ConsoleContext,
): Promise<string> {
  if (!mayChangeLedger || book === undefined || office === undefined) throw new RequestError("mayNotChange");
  try {
    const done = await correctLedger(action, { machine }, { book, office });
    log.info({ action, by: name, ...done }, "an operator changed the ledger");
    return ledgerActions[action].done;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return `is not changed: ${error.message}`;
  }
}

function isObjectAction(action: string): action is ObjectAction {
  return Object.hasOwn(objectActions, action);
}

function isLedgerAction(action: string): action is LedgerAction {
  return Object.hasOwn(ledgerActions, action);
}

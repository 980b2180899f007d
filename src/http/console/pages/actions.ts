/** The buttons and the commands that change a machine. Who has no right gets no button, and sees the command. */

import type { SeenVersion } from "../../../model/cluster-callers.ts";
import { RequestError } from "../../errors.ts";
import { correctLedger } from "../../ops/machine-changes.ts";
import type { MachineSubject } from "../../ops/machine-report.ts";
import { type Html, type HtmlValue, html, lines } from "../html/html.ts";
import { consolePath, machinePath, type Page } from "../html/layout.ts";
import type { FleetRow } from "../state/fleet.ts";
import type { Visitor } from "../state/visitors.ts";
import type { ConsoleContext } from "./context.ts";

/** Changes of a Machine object, which the API server makes for the visitor. */
const objectActions = {
  approve: { title: "Approve", spec: { approved: true }, done: "is approved", isForSeen: true },
  // Whatever the object has become meanwhile, a hold makes it safer.
  hold: { title: "Hold", spec: { hold: true }, done: "is held", isForSeen: false },
  release: { title: "Release", spec: { hold: false }, done: "is released", isForSeen: true },
} as const;
type ObjectAction = keyof typeof objectActions;

/** Corrections of the ledger. Neither can open an install. */
const ledgerActions = {
  adopt: { title: "Count as installed", done: "counts as installed" },
  forget: { title: "Forget its installs", done: "counts as never installed" },
} as const;
type LedgerAction = keyof typeof ledgerActions;

interface ActionSubject {
  readonly row: FleetRow | undefined;
  readonly subject: MachineSubject | undefined;
  readonly visitor: Visitor;
}

/** Returns the section of a machine's page that changes it. */
export async function actionsOf({ row, subject, visitor }: ActionSubject, context: ConsoleContext): Promise<Html> {
  const { office } = context;
  const machine = row?.machine ?? subject?.object?.name ?? "";
  const { approved, hold } = subject?.object?.document.spec ?? {};
  const fitting = subject?.object === undefined ? [] : fittingActions(approved === true, hold === true);
  const mayPatch = fitting.length > 0 && (await visitor.mayPatch(namespaceOf(machine)));
  const ledger = visitor.mayChangeLedger && office !== undefined ? ledgerButtons(subject) : [];
  const buttons = [...(mayPatch ? fitting.map(objectButton) : []), ...ledger];
  const chosen = html`<input type="hidden" name="machine" value="${choiceOf(machine, subject?.object?.document)}">`;
  return html`<h2>Actions</h2>
${buttons.length > 0 && actionForm(visitor, machinePath(machine), [chosen, buttons])}
${commandsOf(subject, machine, fitting, context)}`;
}

/**
 * Returns the value by which a form names a machine, with the version of its object that the page shows. Blanks of the
 * name are encoded: a machine can choose its name, and must not name another one.
 */
export function choiceOf(machine: string, seen: SeenVersion | undefined): string {
  const name = encodeURI(machine.toWellFormed());
  return seen === undefined ? name : [name, seen.uid, seen.generation].join(" ");
}

/** Reads the value that `choiceOf` has made. Any other value names no machine, or the one of that name. */
export function readChoice(choice: string): { readonly machine: string; readonly seen: SeenVersion | undefined } {
  const [, name = choice, uid = "", generation = ""] = /^(\S+) (\S+) (\d{1,15})$/.exec(choice) ?? [];
  return { machine: decoded(name), seen: uid === "" ? undefined : { uid, generation: Number(generation) } };
}

function decoded(name: string): string {
  try {
    return decodeURI(name);
  } catch {
    return name;
  }
}

/** @param name `namespace/name`. */
export function namespaceOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf("/")));
}

/** Returns a form that sends actions. @param back the page to return to. */
export function actionForm({ formToken }: Visitor, back: string, content: HtmlValue): Html {
  return html`<form method="post" action="${consolePath}/actions" class="actions">
<input type="hidden" name="form" value="${formToken}">
<input type="hidden" name="back" value="${back}">
${content}
</form>`;
}

export function objectButton(action: ObjectAction): Html {
  return html`<button name="action" value="${action}">${objectActions[action].title}</button>\n`;
}

function fittingActions(isApproved: boolean, isHeld: boolean): readonly ObjectAction[] {
  return [...(isApproved ? [] : (["approve"] as const)), isHeld ? "release" : "hold"];
}

function ledgerButtons(subject: MachineSubject | undefined): readonly Html[] {
  const actions: readonly LedgerAction[] = (subject?.entries.length ?? 0) > 0 ? ["adopt", "forget"] : ["adopt"];
  return actions.map(
    (action) => html`<button name="action" value="${action}">${ledgerActions[action].title}</button>\n`,
  );
}

/** Returns the commands that do the same from a terminal; for a machine without an object, its manifest. */
function commandsOf(
  subject: MachineSubject | undefined,
  machine: string,
  fitting: readonly ObjectAction[],
  { callers, office }: ConsoleContext,
): HtmlValue {
  const name = subject?.object?.name;
  const [namespace = "", plain = ""] = name?.split("/") ?? [];
  const patches = fitting.map((action) => {
    const patch = JSON.stringify({ spec: objectActions[action].spec });
    return callers === undefined
      ? `davit machine ${action} ${name} --print`
      : `kubectl patch machines.davit.dev ${plain} --namespace ${namespace} --type merge --patch '${patch}'`;
  });
  const ledger = office === undefined ? [] : [`davit machine adopt ${machine}`, `davit machine forget ${machine}`];
  const commands = isSafe(machine) ? [`davit machine show ${machine}`, ...patches, ...ledger] : [unsafeName];
  return html`<details id="commands"><summary>Commands that do the same</summary>
<pre tabindex="0">${lines(commands.join("\n"))}</pre></details>
${name === undefined && newObject(subject?.identities ?? [], subject?.pending?.group)}`;
}

/** False for a name that a shell could take for more than one word, or a command for an option. */
function isSafe(name: string): boolean {
  return /^[\w.:/][\w.:/-]*$/.test(name);
}

const unsafeName = "# This machine has no name that is safe in a shell.";

function newObject(identities: readonly string[], group: string | undefined): HtmlValue {
  if (identities.length === 0) return undefined;
  return html`<details id="new-object"><summary>A Machine object for it</summary>
<pre tabindex="0">${lines(machineManifest(identities, group?.split("/")[0]))}</pre></details>`;
}

/** Returns the manifest of an approved Machine with these identities. */
function machineManifest(identities: readonly string[], namespace = "default"): string {
  const valuesOf = (kind: string) =>
    identities.filter((each) => each.startsWith(`${kind}/`)).map((each) => each.slice(kind.length + 1));
  const [uuid] = valuesOf("uuid");
  const macs = valuesOf("mac");
  const name = `machine-${(macs[0] ?? uuid ?? "").replaceAll(":", "-")}`;
  return [
    "apiVersion: davit.dev/v1alpha1",
    "kind: Machine",
    "metadata:",
    `  name: ${name}`,
    `  namespace: ${namespace}`,
    "spec:",
    "  identity:",
    ...(uuid === undefined ? [] : [`    uuid: "${uuid}"`]),
    ...(macs.length === 0 ? [] : [`    macs: [${macs.map((mac) => `"${mac}"`).join(", ")}]`]),
    "  approved: true",
    "",
  ].join("\n");
}

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

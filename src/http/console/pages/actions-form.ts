/** The buttons and the commands that change a machine. Who has no right gets no button, and sees the command. */

import type { SeenVersion } from "../../../model/cluster-callers.ts";
import type { MachineSubject } from "../../ops/machine-report.ts";
import { type Html, type HtmlValue, html, lines } from "../html/html.ts";
import { consolePath } from "../html/layout.ts";
import type { FleetRow } from "../state/fleet.ts";
import type { Visitor } from "../state/visitors.ts";
import type { ConsoleContext } from "./context.ts";
import { machinePath } from "./fleet-page.ts";

/** Changes of a Machine object, which the API server makes for the visitor. */
export const objectActions = {
  approve: { title: "Approve", spec: { approved: true }, done: "is approved", isForSeen: true },
  // Whatever the object has become meanwhile, a hold makes it safer.
  hold: { title: "Hold", spec: { hold: true }, done: "is held", isForSeen: false },
  release: { title: "Release", spec: { hold: false }, done: "is released", isForSeen: true },
} as const;
export type ObjectAction = keyof typeof objectActions;

/** Corrections of the ledger. Neither can open an install. */
export const ledgerActions = {
  adopt: { title: "Count as installed", done: "counts as installed" },
  forget: { title: "Forget its installs", done: "counts as never installed" },
} as const;
export type LedgerAction = keyof typeof ledgerActions;

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
export function machineManifest(identities: readonly string[], namespace = "default"): string {
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

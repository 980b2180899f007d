/** The waiting room: machines that no Group selects, that are held, or that need approval. */

import { type Html, type HtmlValue, html, lines } from "../html/html.ts";
import { age, consolePath, table } from "../html/layout.ts";
import type { FleetRow } from "../state/fleet.ts";
import type { Visitor } from "../state/visitors.ts";
import { actionForm, choiceOf, namespaceOf, objectButton } from "./actions-form.ts";
import type { ConsoleContext, Screen } from "./context.ts";
import { machineLink, stateHtml } from "./fleet-page.ts";

/** More machines than a person looks at together. */
const maxRows = 200;

export const waitingScreen: Screen = {
  url: `${consolePath}/waiting`,
  page: async ({ visitor }, context) => {
    const { rows } = await context.fleet.now();
    const waiting = rows.filter(isWaiting);
    const body = html`<h1>Waiting room</h1>
<p id="found">${countText(waiting.length)}</p>
${waiting.length > 0 && (await roomHtml(waiting.slice(0, maxRows), visitor, context))}`;
    return { title: "Waiting room", screen: "/console/waiting", isLive: true, body };
  },
};

function isWaiting({ state, isUnapproved, isPending }: FleetRow): boolean {
  return state === "unknown" || state === "held" || isUnapproved || isPending;
}

function countText(count: number): string {
  if (count === 0) return "No machine waits for a person.";
  const shown = count > maxRows ? `; the last ${maxRows} are shown` : "";
  return `${count === 1 ? "1 machine waits" : `${count} machines wait`} for a person${shown}.`;
}

async function roomHtml(
  rows: readonly FleetRow[],
  visitor: Visitor,
  { clock, callers }: ConsoleContext,
): Promise<HtmlValue> {
  const nowMs = clock.nowMs();
  const namespaces = new Set(rows.flatMap(({ object }) => (object === undefined ? [] : [namespaceOf(object)])));
  const asked = [...namespaces].map(async (each) => ((await visitor.mayPatch(each)) ? [each] : []));
  const changeable = new Set((await Promise.all(asked)).flat());
  const mayPatch = changeable.size > 0;
  const list = table(
    "Machines that wait for a person, the last seen first",
    ["Machine", "Host name", "State", "Group", "Seen", "Address"],
    rows.map((row) => rowHtml(row, changeable, nowMs)),
  );
  const buttons = (["approve", "hold", "release"] as const).map(objectButton);
  const room = mayPatch
    ? actionForm(visitor, `${consolePath}/waiting`, [list, html`<p>With the chosen machines: ${buttons}</p>`])
    : list;
  const hint = callers !== undefined && namespaces.size > 0 && !mayPatch && hintHtml(visitor);
  return [room, hint, manifestsOf(rows)];
}

function hintHtml({ clusterToken }: Visitor): Html {
  if (clusterToken !== undefined) {
    return html`<p>There are no buttons, because your account may not change these machines.</p>`;
  }
  return html`<p>To approve, hold or release here,
<a href="${consolePath}/sign-in">sign in with your Kubernetes token</a>. Each machine's page has the commands.</p>`;
}

function rowHtml(row: FleetRow, changeable: ReadonlySet<string>, nowMs: number): Html {
  const { machine, object, version, mac, hostname, group, seenAtMs, address } = row;
  const box =
    object !== undefined &&
    changeable.has(namespaceOf(object)) &&
    html`<input type="checkbox" name="machine" value="${choiceOf(object, version)}" id="choose-${machine}"
aria-label="Choose ${machine}"> `;
  return html`<tr id="m-${machine}">
<th scope="row">${box}${machineLink(machine, mac ?? machine)}</th>
<td>${hostname}</td>
<td>${stateHtml(row)}</td>
<td>${group}</td>
<td>${age(seenAtMs, nowMs)}</td>
<td>${address}</td>
</tr>
`;
}

/** A Group to copy, for each machine that no Group selects. */
function manifestsOf(rows: readonly FleetRow[]): HtmlValue {
  const unknown = rows.filter(({ state, mac }) => state === "unknown" && mac !== undefined);
  if (unknown.length === 0) return undefined;
  return html`<h2>A Group for a machine that no Group selects</h2>
${unknown.map(
  ({ machine, mac = "" }) => html`<details id="group-${machine}"><summary>${machine}</summary>
<pre tabindex="0">${lines(groupManifest(mac))}</pre></details>
`,
)}`;
}

/** Returns the manifest of a Group that selects one machine. */
export function groupManifest(mac: string): string {
  return [
    "apiVersion: davit.dev/v1alpha1",
    "kind: Group",
    "metadata:",
    `  name: machine-${mac.replaceAll(":", "-")}`,
    "spec:",
    "  profileRef:",
    "    name: PROFILE # the Profile that the machine must boot",
    "  selector:",
    "    matchLabels:",
    `      mac: "${mac}"`,
    "",
  ].join("\n");
}

/**
 * The Try screen: what a machine with some labels would get, beside another machine, or beside the same machine with a
 * manifest that is not applied. Nothing is stored.
 */

import { LabelError } from "../../../model/labels/labels.ts";
import type { Preview, Rendering } from "../../ops/preview.ts";
import { type Html, type HtmlValue, html, lines } from "../html/html.ts";
import { consolePath, type Page, table, tableRow } from "../html/layout.ts";
import { type PreviewPlace, previewHtml } from "../html/preview-html.ts";
import type { Visitor } from "../state/visitors.ts";
import type { ConsoleContext, Screen, TriedManifest, TryOutcome } from "./context.ts";
import { machineQuery } from "./machine-page.ts";

const url = `${consolePath}/try`;
/** The longest manifest in UTF-16 units. */
const maxManifestLength = 1024 * 1024;
/** More than the query of a machine may have. */
const maxLabelsLength = 8 * 1024;
/** A browser spells most characters of a form with three. */
const maxFormBytes = 3 * maxManifestLength + 64 * 1024;
/** More findings than a person reads. */
const maxFindings = 200;

export const tryScreen: Screen = {
  url,
  page: async ({ query, visitor }, context) => {
    const asked = askedIn(query);
    const first = await previewOf(asked.labels, context);
    const second = await secondOf(asked, context);
    const names = {
      first: "first machine",
      second: asked.machine === "" ? "second machine" : `machine ${asked.machine}`,
    };
    return page({ asked, manifest: "" }, visitor, context, [resultHtml({ first, second, names })]);
  },
  post: {
    maxBytes: maxFormBytes,
    page: async (form, { visitor }, context) => {
      const asked = askedIn(form);
      // A browser ends lines with CRLF.
      const manifest = (form.get("manifest") ?? "").replaceAll("\r\n", "\n");
      const tried = await triedOf(manifest, asked, context);
      const [first, second] = "kind" in tried && tried.kind === "tried" ? [tried.before, tried.preview] : [];
      const names = { first: "machine without the manifest", second: "machine with the manifest" };
      const result = resultHtml({ first: first && { preview: first }, second: second && { preview: second }, names });
      return page({ asked, manifest }, visitor, context, [triedHtml(tried), result]);
    },
  },
};

/** What a form asks for: lines of `name=value`, and the name of a machine. */
interface AskedLabels {
  readonly labels: string;
  readonly other: string;
  readonly machine: string;
}

/** A preview, or why there is none. */
type PreviewOrProblem = { readonly preview: Preview } | { readonly problem: string };

function askedIn(form: URLSearchParams): AskedLabels {
  const textOf = (name: string) => (form.get(name) ?? "").replaceAll("\r\n", "\n").slice(0, maxLabelsLength);
  return { labels: textOf("labels"), other: textOf("other"), machine: textOf("machine").trim() };
}

/** Returns the query that a machine with these labels sends; undefined without labels. */
function queryIn(labels: string): string | undefined {
  const query = new URLSearchParams();
  for (const line of labels.split("\n").map((each) => each.trim())) {
    const at = line.indexOf("=");
    const [name, value] = at === -1 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    if (line !== "") query.append(name.trim(), value.trim());
  }
  return query.size === 0 ? undefined : query.toString();
}

async function previewOf(labels: string, context: ConsoleContext): Promise<PreviewOrProblem | undefined> {
  const query = queryIn(labels);
  return query === undefined ? undefined : await previewBy(query, context);
}

async function previewBy(query: string, { previews }: ConsoleContext): Promise<PreviewOrProblem> {
  try {
    return { preview: await previews.of(query) };
  } catch (error) {
    if (!(error instanceof LabelError)) throw error;
    return { problem: `No machine can send these labels: ${error.message}.` };
  }
}

async function secondOf(
  { other, machine }: AskedLabels,
  context: ConsoleContext,
): Promise<PreviewOrProblem | undefined> {
  if (machine === "") return await previewOf(other, context);
  const query = await machineQuery(machine, context);
  if (query !== undefined) return await previewBy(query, context);
  return { problem: `davit knows no machine with the name ${machine}.` };
}

async function triedOf(manifest: string, { labels }: AskedLabels, context: ConsoleContext): Promise<TriedOrProblem> {
  if (manifest.trim() === "") return { problem: "Paste a manifest first." };
  if (manifest.length > maxManifestLength) return { problem: "The manifest has more than 1 MiB: split it." };
  const query = queryIn(labels);
  const first = query === undefined ? undefined : await previewBy(query, context);
  return first !== undefined && "problem" in first ? first : await context.tryManifest(manifest, query);
}

type TriedOrProblem = TryOutcome | { readonly problem: string };

function page(
  { asked, manifest }: { readonly asked: AskedLabels; readonly manifest: string },
  visitor: Visitor,
  context: ConsoleContext,
  results: HtmlValue,
): Page {
  const { labels, other, machine } = asked;
  const body = html`<h1>Try</h1>
<p>Nothing here is stored, and no machine notices it.</p>
<h2>What would a machine get?</h2>
<form class="try" method="get" action="${url}">
<div class="pair">
<label>Labels of the first machine, a line for each: <code>mac=52:54:00:00:00:01</code>
<textarea name="labels" rows="3" spellcheck="false">${lines(`\n${labels}`)}</textarea></label>
<label>Labels of a second machine
<textarea name="other" rows="3" spellcheck="false">${lines(`\n${other}`)}</textarea></label>
</div>
<label>Or the name of the second machine <input name="machine" value="${machine}" autocomplete="off"></label>
<button>Compare</button>
</form>
${manifestForm(labels, manifest, visitor, context)}
${results}`;
  return { title: "Try", screen: "/console/try", body };
}

function manifestForm(labels: string, manifest: string, { formToken }: Visitor, { objects }: ConsoleContext): Html {
  const title = html`<h2>What would a manifest change?</h2>`;
  if (!objects.isReading) {
    return html`${title}
<p>Only the davit that reads the source can try a manifest: look there.</p>`;
  }
  // A Secret's text comes back in no page, not even to who sent it.
  const isKept = !/\bSecret\b/.test(manifest);
  return html`${title}
<details id="paste"${(labels === "" || manifest !== "") && html` open`}><summary>Paste a manifest</summary>
<form class="try" method="post" action="${url}">
<input type="hidden" name="form" value="${formToken}">
<label>Labels of a machine, a line for each
<textarea name="labels" rows="3" spellcheck="false">${lines(`\n${labels}`)}</textarea></label>
<label>Manifest: Profiles, Groups, Machines, ConfigMaps and Secrets, as YAML
<textarea name="manifest" rows="12" spellcheck="false">${lines(`\n${isKept ? manifest : ""}`)}</textarea></label>
<button>Try the manifest</button>
</form>
</details>
${!isKept && html`<p>The manifest has a Secret, so it is not shown again.</p>`}`;
}

const failures: Readonly<Record<Exclude<TryOutcome["kind"], "tried">, string>> = {
  busy: "Another manifest is tried now: try again in some seconds.",
  late: "davit stopped: the manifest took too long.",
  lost:
    "davit ended the attempt: with the present objects, the manifest needs too much memory. " +
    "Try fewer objects at a time, or check it with davit lint.",
  notReading: "Only the davit that reads the source can try a manifest: look there.",
};

function triedHtml(tried: TriedOrProblem): Html {
  const title = html`<h2 id="manifest">The manifest</h2>`;
  if ("problem" in tried) return html`${title}\n<p class="problem">${tried.problem}</p>`;
  if (tried.kind !== "tried") return html`${title}\n<p class="problem">${failures[tried.kind]}</p>`;
  const objects = tried.objects.map(
    ({ key, isPresent }) => html`<li><code>${key}</code> ${isPresent ? "replaces the present one" : "is new"}</li>\n`,
  );
  return html`${title}
${objects.length > 0 && html`<ul>\n${objects}</ul>`}
${findingsHtml(tried)}`;
}

function findingsHtml({ findings, preview }: TriedManifest): Html {
  if (findings.length === 0) return html`<p id="findings">davit finds nothing wrong with it.</p>`;
  const rows = findings.slice(0, maxFindings).map(({ line, column, severity, code, message }) => {
    const shown = html`<span class="state ${severity === "error" ? "failed" : "waiting"}">${severity}</span>`;
    return tableRow([`${line}:${column}`, shown, message, html`<code>${code}</code>`], { head: -1 });
  });
  const hasError = findings.some(({ severity }) => severity === "error");
  return html`${table("What davit finds in the manifest", ["Line", "Severity", "Finding", "Code"], rows)}
${hasError && preview === undefined && html`<p>Correct the manifest to see what it changes.</p>`}`;
}

interface Compared {
  readonly first: PreviewOrProblem | undefined;
  readonly second: PreviewOrProblem | undefined;
  readonly names: { readonly first: string; readonly second: string };
}

function resultHtml({ first, second, names }: Compared): HtmlValue {
  const [one, other] = [previewIn(first), previewIn(second)];
  return html`${one && other && comparisonHtml(one, other, names)}
<div class="pair">
${first && shownHtml(first, { name: names.first, idPrefix: "a-" })}
${second && shownHtml(second, { name: names.second, idPrefix: "b-" })}
</div>`;
}

function previewIn(shown: PreviewOrProblem | undefined): Preview | undefined {
  return shown !== undefined && "preview" in shown ? shown.preview : undefined;
}

function shownHtml(shown: PreviewOrProblem, place: PreviewPlace): HtmlValue {
  const content = "problem" in shown ? html`<p class="problem">${shown.problem}</p>` : undefined;
  const found = previewIn(shown);
  return html`<section aria-label="${place.name}">
<p class="which">${place.name}</p>
${content}
${found && previewHtml(found, place)}
</section>`;
}

function comparisonHtml(one: Preview, other: Preview, names: Compared["names"]): Html {
  const facts = [
    ["Group", one.chosen?.group ?? "none", other.chosen?.group ?? "none"],
    ["Profile", one.chosen?.profile ?? "none", other.chosen?.profile ?? "none"],
    ["Effect", one.effect ?? "none", other.effect ?? "none"],
    ["Refused", one.refused?.reason ?? "no", other.refused?.reason ?? "no"],
  ] as const;
  const paths = [...new Set([...one.renderings, ...other.renderings].map(({ path }) => path))];
  const rows = [
    ...facts.map(([what, left, right]) => rowHtml(what, { left, right, isSame: left === right })),
    ...paths.map((path) => pathRow(path, one, other)),
  ];
  return html`<h2 id="difference">What differs</h2>
${table("The two side by side", ["What", names.first, names.second, "Same?"], rows)}`;
}

interface Pair {
  readonly left: string;
  readonly right: string;
  /** Undefined if davit does not compare the two. */
  readonly isSame: boolean | undefined;
}

function pathRow(path: string, one: Preview, other: Preview): Html {
  const [left, right] = [one, other].map(({ renderings }) => renderings.find((each) => each.path === path));
  return rowHtml(path, { left: renderingText(left), right: renderingText(right), isSame: areSame(left, right) });
}

function rowHtml(what: string, { left, right, isSame }: Pair): Html {
  const verdict = isSame === undefined ? "not compared" : isSame ? "same" : html`<b>differs</b>`;
  return tableRow([what, left, right, verdict]);
}

function renderingText(rendering: Rendering | undefined): string {
  return rendering === undefined ? "none" : `${rendering.status}, ${rendering.bytes} bytes`;
}

/** The texts of Secrets are not compared, and neither are parts that are not shown. */
function areSame(left: Rendering | undefined, right: Rendering | undefined): boolean | undefined {
  if (left === undefined || right === undefined) return left === right;
  if (left.status !== right.status || left.bytes !== right.bytes) return false;
  if (left.isSecret || right.isSecret || (left.isCut && left.body === right.body)) return undefined;
  return left.body === right.body && left.contentType === right.contentType;
}

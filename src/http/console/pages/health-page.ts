/** The screen of davit's own health: `/readyz` in words, the store and its followers, requests, and last errors. */

import { toRfc3339 } from "../../../lib/clock.ts";
import type { HistoryView } from "../../../records/history/history-view.ts";
import type { LogStatus } from "../../../store/core/log-port.ts";
import { type Html, type HtmlValue, html } from "../html/html.ts";
import { age, ageText, consolePath, facts, table, tableRow } from "../html/layout.ts";
import type { RateSample } from "../state/request-rates.ts";
import type { ConnectedFollower, ConsoleContext, FollowedStore, Health, Screen, StoreHealth } from "./context.ts";

export const healthScreen: Screen = {
  url: `${consolePath}/health`,
  page: async (_visit, context) => {
    const { health, followed, history } = context;
    const body = html`<h1>Health</h1>
${readyHtml(health)}
<h2>Requests of machines in the last hour</h2>
${requestsHtml(health.rates)}
${health.store && storeHtml(health.store, context)}
${followed && followedHtml(followed, context)}
${ledgerHtml(context)}
<h2>History of boots</h2>
${historyHtml(await history.current(), history.sizeBytes)}
<h2>Last warnings and errors</h2>
${linesHtml(context)}`;
    return { title: "Health", screen: "/console/health", isLive: true, body };
  },
};

function readyHtml({ version, checks, attention }: Health): Html {
  const found = checks.map(({ name, check }) => ({ name, failure: check() }));
  const isReady = found.every(({ failure }) => failure === undefined);
  const verdict = isReady
    ? html`<span class="state booting">ready</span>: machines are answered`
    : html`<span class="state failed">not ready</span>: machines are not answered`;
  const items = found.map(
    ({ name, failure }) =>
      html`<li>${name}: ${failure === undefined ? "ok" : html`<span class="problem">${failure}</span>`}</li>\n`,
  );
  const notes = attention().map((line) => html`<li>${line}</li>\n`);
  return html`<p>davit ${version} is ${verdict}.</p>
<ul>
${items}</ul>
<h2>What needs a person</h2>
${notes.length === 0 ? html`<p>Nothing.</p>` : html`<ul id="attention">\n${notes}</ul>`}`;
}

function requestsHtml(samples: readonly RateSample[]): Html {
  const last = samples.at(-1);
  if (last === undefined) return html`<p>The first numbers come ten seconds after the start.</p>`;
  const rates = samples.map(({ rate }) => rate);
  const failed = samples.map(({ failedRate }) => failedRate);
  const slowest = samples.map(({ p99Seconds }) => p99Seconds);
  const most = Math.max(0, ...slowest.filter((seconds) => seconds !== undefined));
  return html`${figure("Requests", `${rateText(last.rate)} now, at most ${rateText(largestOf(rates))}`, rates)}
${figure("Answers with 5xx", `${rateText(last.failedRate)} now, at most ${rateText(largestOf(failed))}`, failed)}
${figure(
  "99 % of the answers, without assets, took at most",
  `${secondsText(last.p99Seconds)} now, ${secondsText(most === 0 ? undefined : most)} in the slowest ten seconds`,
  slowest,
)}`;
}

/** Of a plot, in samples: right after the start a plot shows the last six minutes. */
const leastWidth = 36;

function figure(name: string, numbers: string, values: readonly (number | undefined)[]): Html {
  const title = `${name}: ${numbers}`;
  const width = Math.max(leastWidth, values.length);
  return html`<figure>${plotHtml({ title, values, width })}<figcaption>${title}</figcaption></figure>`;
}

function rateText(rate: number): string {
  return `${rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate)}/s`;
}

function secondsText(seconds: number | undefined): string {
  if (seconds === undefined) return "no request";
  if (!Number.isFinite(seconds)) return "more than 10 s";
  return seconds < 1 ? `${Math.round(seconds * 10_000) / 10} ms` : `${seconds} s`;
}

const statusWords: Readonly<Record<LogStatus, string>> = {
  writable: "writable",
  full: "full: only deletions are taken",
  readOnly: "not writable now",
  lost: "lost: another process may be writing, so davit writes no more",
  closed: "closed",
};

function storeHtml({ store, quotaBytes, followers }: StoreHealth, { clock }: ConsoleContext): Html {
  const { status, trouble, bytes, indexes, membership, watcherCount } = store;
  const share = quotaBytes === undefined ? undefined : Math.round((bytes / quotaBytes) * 100);
  const size = html`${sizeText(bytes)}${
    quotaBytes !== undefined &&
    html` of ${sizeText(quotaBytes)}, ${share} %
<meter min="0" max="${quotaBytes}" high="${Math.round(quotaBytes * 0.8)}" value="${Math.min(bytes, quotaBytes)}"
aria-label="Size of the store">${share} %</meter>`
  }`;
  return html`<h2>Store</h2>
${facts([
  ["State", statusWords[status]],
  ["Trouble", trouble],
  ["Size", size],
  ["Index", String(indexes.storeIndex)],
  ["Watches", String(watcherCount)],
])}
${memberTable(membership, clock.monotonicMs())}
${followerTable(followers(), clock)}`;
}

function memberTable(
  { members, leaderId, completeAtMs }: StoreHealth["store"]["membership"],
  nowMs: number,
): HtmlValue {
  if (members.length === 0) return html`<h3>Members</h3>\n<p>This davit alone writes the store.</p>`;
  const lag = completeAtMs === undefined ? undefined : ageText(nowMs - completeAtMs);
  const rows = members.map(({ id, name, clientUrls }, at) =>
    tableRow([
      [name === "" ? id : name, at === 0 && " (this one)"],
      id === leaderId ? "leads" : "follows the leader",
      at === 0 ? (lag ?? "-") : "known to itself only",
      clientUrls.join(", "),
    ]),
  );
  return html`<h3>Members</h3>
${leaderId === undefined && html`<p class="problem">No member leads now: nothing is written.</p>`}
${table("Members of the store that run", ["Member", "Role", "Last had everything", "Clients reach it at"], rows)}`;
}

function followerTable(followers: readonly ConnectedFollower[], clock: ConsoleContext["clock"]): Html {
  if (followers.length === 0) return html`<h3>Followers</h3>\n<p>No davit boot follows this davit now.</p>`;
  const [nowMs, monotonicMs] = [clock.nowMs(), clock.monotonicMs()];
  const rows = followers.map(({ name, address, sinceMs, behind, isReading }) =>
    tableRow([
      name ?? "without a name",
      address,
      age(nowMs - (monotonicMs - sinceMs), nowMs),
      behindText(behind),
      isReading ? "yes" : html`<span class="problem">no: it has not taken what was sent</span>`,
    ]),
  );
  return html`<h3>Followers</h3>
${table(
  "Followers that are connected; each connects anew from time to time",
  ["Follower", "Address", "Connected since", "Changes not sent yet", "Reads"],
  rows,
)}`;
}

function behindText(behind: number | undefined): string {
  return behind === undefined ? "it gets everything now" : String(behind);
}

function followedHtml({ place, status }: FollowedStore, { clock }: ConsoleContext): Html {
  const { isConnected, isWithheld, index, ageSeconds, provenAtMs } = status();
  const state = isConnected
    ? html`<span class="state booting">connected</span>`
    : html`<span class="state failed">not connected</span>: machines are answered from the last copy`;
  const proven = provenAtMs === undefined ? "not yet" : `${ageText(clock.monotonicMs() - provenAtMs)} ago`;
  return html`<h2>The davit that this one follows</h2>
${facts([
  ["Store", place],
  ["State", state],
  ["Withheld", isWithheld && "the store has not read everything from its source, so the older copy is served"],
  ["Copy", index === undefined ? "none" : `index ${index}`],
  ["Copy was current", ageSeconds === undefined ? "never" : `${ageText(ageSeconds * 1_000)} ago`],
  ["Source has confirmed the copy", proven],
])}
<p>Its own console shows its members and its other followers.</p>`;
}

function ledgerHtml({ book }: ConsoleContext): HtmlValue {
  if (book === undefined) return undefined;
  const { id, entries, isFull } = book.ledger;
  const { problems } = book;
  return html`<h2>Ledger of installs</h2>
${facts([
  ["Ledger", id ?? html`<span class="problem">none is known: nothing installs</span>`],
  ["Machines", String(entries.size)],
  ["Room", isFull ? html`<span class="problem">full: no further machine may install</span>` : "enough"],
  ["Trouble", problems.length > 0 && html`<ul>${problems.map((line) => html`<li>${line}</li>`)}</ul>`],
])}`;
}

function historyHtml({ unrecorded }: HistoryView, sizeBytes: number): Html {
  const lost = unrecorded && `${unrecorded.count}, the last at ${toRfc3339(unrecorded.lastAtMs)}`;
  return facts([
    ["Memory", sizeText(sizeBytes)],
    ["Requests that are not in it", lost ?? "none"],
  ]);
}

function linesHtml({ health, clock }: ConsoleContext): Html {
  const { latestFirst } = health.lines;
  if (latestFirst.length === 0) return html`<p>None since davit started.</p>`;
  const nowMs = clock.nowMs();
  const rows = latestFirst.map(({ atMs, level, part, message, data }) =>
    tableRow([age(atMs, nowMs), level, part, message, data], { head: 3 }),
  );
  return table(
    "The last lines of the log with the level warn or error",
    ["Age", "Level", "Part", "Line", "Data"],
    rows,
  );
}

function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 102.4) / 10} KiB`;
  return `${Math.round(bytes / (1024 * 102.4)) / 10} MiB`;
}

interface PlotOptions {
  /** What the plot shows, in words: its text alternative. */
  readonly title: string;
  /** The latest value is last. Nothing is drawn for an undefined one. */
  readonly values: readonly (number | undefined)[];
  /** How many values are as wide as the plot. */
  readonly width: number;
}

const height = 60;

/**
 * Draws a series of numbers as a small SVG. Its numbers are beside it in words, for those who cannot see it. The
 * largest finite value is as high as the plot; what is not finite is drawn at its top.
 */
export function plotHtml({ title, values, width }: PlotOptions): Html {
  const most = largestOf(values);
  const left = width - values.length;
  let path = "";
  let isDrawing = false;
  for (const [at, value] of values.entries()) {
    if (value !== undefined) {
      const share = most === 0 ? 0 : Math.min(1, value / most);
      path += `${isDrawing ? "L" : "M"}${left + at} ${Math.round((1 - share) * height * 10) / 10}h1`;
    }
    isDrawing = value !== undefined;
  }
  return html`<svg class="plot" role="img" aria-label="${title}" viewBox="0 -2 ${width} ${height + 4}"
preserveAspectRatio="none"><path d="${path}"/></svg>`;
}

/** Returns the largest finite value; 0 without one. */
function largestOf(values: readonly (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined && Number.isFinite(value)).map(Number));
}

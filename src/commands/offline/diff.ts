/** `davit diff`: what manifests would change, for which machines, before they are applied. */

import { systemClock } from "../../lib/clock.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import { applied, secretDigests } from "../../offline/diff/apply.ts";
import { compare } from "../../offline/diff/compare.ts";
import { type DiffReport, hasDifferences, jsonReport, textReport } from "../../offline/diff/report.ts";
import { markdownReport } from "../../offline/diff/report-markdown.ts";
import { readManifests } from "../../offline/load/load-manifests.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { assertReadable, inputOf, readsInput } from "../core/load-input.ts";
import { paintOf } from "../core/paint.ts";
import { ProgressLine } from "../core/progress.ts";
import { readBefore } from "./diff-before.ts";
import { type DiffConfig, diffHelp, readDiffConfig } from "./diff-options.ts";

const sameCode = 0;
const differentCode = 1;
const troubleCode = 2;

export const diff = workCommand({
  name: "diff",
  endsAtOnce: true,
  help: diffHelp,
  readConfig: readDiffConfig,
  failureCode: troubleCode,
  work: async (config, host) => {
    const report = await makeReport(config, host);
    for (const piece of printed(report, config, host)) host.write(piece);
    return config.exitCode && hasDifferences(report) ? differentCode : sameCode;
  },
});

async function makeReport(config: DiffConfig, host: Host): Promise<DiffReport> {
  const { manifests: places, partial: isPartial } = config;
  const log = createLog({ level: "error", format: "json", destination: { write: host.writeError } });
  const line = new ProgressLine(host, systemClock);
  const manifests = await readManifests({
    ...(await inputOf(places, host)),
    progress: (count, total) => line.show(`read ${count} of ${total}`),
  });
  line.clear();
  assertReadable(manifests.view.problems, host);
  const before = await readBefore(config, { log, host, secrets: secretDigests(manifests.view) });
  const { adminNamespace } = before;
  const { documents, unready, unchecked } = applied({
    before: before.documents,
    manifests: manifests.view,
    isPartial,
    log,
    adminNamespace,
  });
  const comparison = await compare({
    before: before.documents,
    after: documents,
    recorded: before.recorded ?? [],
    nowMs: systemClock.nowMs(),
    progress: (count, total) => line.show(`compared ${count} of ${total} machines`),
  });
  line.clear();
  return {
    before: before.place,
    after: readsInput(places) ? ["standard input", ...places.slice(1)].join(", ") : places.join(", "),
    comparison,
    unready,
    unchecked,
    hasRecorded: before.recorded !== undefined,
  };
}

function* printed(report: DiffReport, { output }: DiffConfig, host: Host): Iterable<string> {
  if (output === "json") yield `${JSON.stringify(jsonReport(report), undefined, 2)}\n`;
  else if (output === "markdown") yield markdownReport(report);
  else yield* textReport(report, paintOf(host));
}

import { openAsset } from "../../http/assets/file.ts";
import { systemClock } from "../../lib/clock.ts";
import { digestPieces, sha256Of } from "../../lib/files/file-digest.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import type { LintFinding } from "../../offline/lint/finding.ts";
import { lint as lintManifests } from "../../offline/lint/lint.ts";
import { countsOf, countsText, type LintFormat, lintFormats, reportOf } from "../../offline/lint/report.ts";
import type { Manifests } from "../../offline/load/load-manifests.ts";
import { type CommandHelp, type Environment, type Option, readTable, type Values } from "../../options/parsing.ts";
import { directoryOption, one, readChoice, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, ruleProblems } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { loadInput, readsInput } from "../core/load-input.ts";
import { inputMark, offlineOptions } from "../core/offline-options.ts";
import { ProgressLine } from "../core/progress.ts";

const goodCode = 0;
const badCode = 1;
const unreadCode = 2;

const lintOptions = {
  ...offlineOptions,
  assetsDir: directoryOption(
    "assets-dir",
    "also report kernels and initrds that are missing there, or not as their sha256 says",
  ),
  format: {
    flag: "format",
    value: "text|json|github",
    preset: "text",
    help: "a line for each finding, JSON, or annotations of a pull request on GitHub",
    read: one(readChoice(lintFormats)),
  } satisfies Option<LintFormat>,
  strict: switchOption("strict", "warnings fail, too"),
};

const lintHelp: CommandHelp = {
  usage: "lint FILE... | lint --manifests DIR | kubectl get ... -o yaml | davit lint",
  purpose:
    "Reports mistakes in Profiles, Groups and Machines, and in what they name, before a machine boots.\n" +
    "Exit code 0: no errors. 1: errors. 2: something could not be read. docs/reference/findings.md has every finding.",
  options: lintOptions,
};

/** `davit lint`: checks manifests without a server. */
export const lint = workCommand({
  name: "lint",
  endsAtOnce: true,
  help: lintHelp,
  readConfig: readLintConfig,
  failureCode: unreadCode,
  work: async (config, host) => {
    const { findings, failures } = await findAll(config, host);
    for (const piece of reportOf(findings, config.format)) host.write(piece);
    host.writeError(`davit lint: ${countsText(countsOf(findings))}\n`);
    if (failures > 0) host.writeError(`davit lint: davit failed on ${failures} objects, so more may be wrong\n`);
    return failures > 0 ? unreadCode : exitCodeOf(findings, config);
  },
});

async function findAll({ manifests, assetsDir, adminNamespace }: LintConfig, host: Host) {
  const log = createLog({ level: "error", format: "json", destination: { write: (line) => host.writeError(line) } });
  const line = new ProgressLine(host, systemClock);
  const loaded = await loadInput(
    { manifests, adminNamespace, log, progress: (count, total) => line.show(`read ${count} of ${total}`) },
    host,
  );
  const findings = await lintManifests(loaded, {
    directories: manifests.filter((path) => path !== inputMark),
    readsInput: readsInput(manifests),
    lookAt: assetsDir === undefined ? undefined : (path, hashes) => lookAt(assetsDir, path, hashes),
    nowMs: systemClock.nowMs(),
    progress: (count, total) => line.show(`tried ${count} of ${total} Groups`),
  });
  line.clear();
  return { findings, failures: loaded.planned.filter(hasFailed).length };
}

/** True for an object on which davit failed by a bug. The log has the reason; no finding shows it. */
function hasFailed({ status }: Manifests["planned"][number]): boolean {
  return status?.conditions.some(({ reason }) => reason === "InternalError") === true;
}

async function lookAt(root: string, path: string, hashes: boolean): Promise<string | undefined> {
  const asset = await openAsset(root, path);
  if (asset === undefined) return undefined;
  const { handle } = asset;
  try {
    return hashes ? await sha256Of(handle.createReadStream({ ...digestPieces, autoClose: false })) : "";
  } finally {
    await handle.close();
  }
}

function exitCodeOf(findings: readonly LintFinding[], { strict }: LintConfig): number {
  if (findings.some(({ code }) => code === "unreadable-file")) return unreadCode;
  const counts = countsOf(findings);
  return counts.error > 0 || (strict && counts.warning > 0) ? badCode : goodCode;
}

/** The options, parsed. */
type LintConfig = Values<typeof lintOptions>;

/**
 * Reads the options of `davit lint`.
 * @throws {ConfigError} with every problem.
 */
function readLintConfig(args: readonly string[], environment: Environment, paths: Paths): LintConfig {
  const at = args.findIndex((arg) => arg.startsWith("-") && arg !== inputMark);
  const files = at < 0 ? args : args.slice(0, at);
  const read = readTable(lintOptions, args.slice(files.length), environment, true);
  const { values } = read;
  const absent = files.filter((path) => path !== inputMark && !paths.isFile(path) && !paths.isDirectory(path));
  const problems = [
    ...read.problems,
    ...ruleProblems(lintOptions, read, paths),
    ...absent.map((path) => `No file "${path}": give files and directories that exist, before the options`),
  ];
  return configWithout(problems, { ...values, manifests: [...files, ...values.manifests] });
}

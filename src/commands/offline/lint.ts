import { openAsset } from "../../http/assets/file.ts";
import { systemClock } from "../../lib/clock.ts";
import { unreachable } from "../../lib/errors.ts";
import { digestPieces, sha256Of } from "../../lib/files/file-digest.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import { visible } from "../../lib/text/visible.ts";
import { type FindingSeverity, severities } from "../../model/objects/findings.ts";
import type { LintFinding } from "../../offline/lint/finding.ts";
import { lint as lintManifests } from "../../offline/lint/lint.ts";
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

const lintFormats = ["text", "json", "github"] as const;
type LintFormat = (typeof lintFormats)[number];

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

/** The number of findings of each severity. */
type Counts = Readonly<Record<FindingSeverity, number>>;

/** Counts findings by severity. */
function countsOf(findings: readonly LintFinding[]): Counts {
  const count = (severity: FindingSeverity) => findings.filter((finding) => finding.severity === severity).length;
  return { error: count("error"), warning: count("warning"), advice: count("advice") };
}

/**
 * Writes findings as text for people and editors, as JSON for programs, and as annotations of a pull request on GitHub.
 * @returns the output in pieces: one for each finding, or one for the whole JSON.
 */
function reportOf(findings: readonly LintFinding[], format: LintFormat): readonly string[] {
  switch (format) {
    case "text":
      return findings.map(textLine);
    case "json":
      return [`${JSON.stringify({ counts: countsOf(findings), findings }, undefined, 2)}\n`];
    case "github":
      return findings.map(githubLine);
    default:
      return unreachable(format);
  }
}

/** Returns the counts as a text: `2 errors, 1 warning, no advice`. */
function countsText(counts: Counts): string {
  return severities.map((severity) => countText(counts[severity], severity)).join(", ");
}

function countText(count: number, severity: FindingSeverity): string {
  const noun = severity === "advice" || count === 1 ? severity : `${severity}s`;
  return `${count === 0 ? "no" : count} ${noun}`;
}

function textLine({ file, line, column, severity, message, code }: LintFinding): string {
  return `${visible(file)}:${line}:${column}: ${severity}: ${visible(message)} (${code})\n`;
}

const githubLevels: Readonly<Record<FindingSeverity, string>> = {
  error: "error",
  warning: "warning",
  advice: "notice",
};

function githubLine({ file, line, column, severity, message, code }: LintFinding): string {
  const properties = `file=${property(file)},line=${line},col=${column},title=${property(code)}`;
  return `::${githubLevels[severity]} ${properties}::${escaped(message)}\n`;
}

/** Escapes as GitHub's own tools do. */
function escaped(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return escaped(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

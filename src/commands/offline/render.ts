import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { diskFailure } from "../../lib/files/disk-sentence.ts";
import { createLog } from "../../lib/logging/create-log.ts";
import { workCommand } from "../core/command-line.ts";
import type { Host } from "../core/host.ts";
import { loadInput, problemLine } from "../core/load-input.ts";
import { machineOf, type RenderedAnswer, type RenderedMachine } from "./render-answer.ts";
import { type RenderConfig, readRenderConfig, renderHelp } from "./render-options.ts";

/** `davit render`: shows what a server would answer a machine, from manifests alone. */
export const render = workCommand({
  name: "render",
  endsAtOnce: true,
  help: renderHelp,
  readConfig: readRenderConfig,
  work: renderAll,
});

async function renderAll(config: RenderConfig, host: Host): Promise<number> {
  const { manifests: places, adminNamespace, endpoint: asked, output } = config;
  const log = createLog({ level: "error", format: "json", destination: { write: host.writeError } });
  const manifests = await loadInput({ manifests: places, adminNamespace, log }, host);
  for (const problem of manifests.view.problems) host.writeError(problemLine(problem));
  const { endpoints, ask, winner, warnings } = machineOf(manifests, config);
  // The boot scripts are the same for every machine.
  if (asked !== "boot.ipxe" && asked !== "chain.ipxe") describe({ winner, warnings }, host);
  if (asked !== "all") return (await give(asked, ask(asked), { output, host })).kind === "body" ? 0 : 1;
  let exitCode = 0;
  for (const endpoint of endpoints) {
    const answer = await give(endpoint, ask(endpoint), { output, host });
    // `all` asks for every part, but a Profile need not have every part.
    if (answer.kind === "refused" && !answer.isPartMissing) exitCode = 1;
  }
  return exitCode;
}

function describe({ winner, warnings }: Pick<RenderedMachine, "winner" | "warnings">, host: Host): void {
  if (winner !== undefined) host.writeError(`Group ${winner.group}, Profile ${winner.profile}\n`);
  for (const { code, text } of warnings) host.writeError(`warning: ${text} (${code})\n`);
}

/** Writes an answer to standard output or a file, or prints why there is none. */
async function give(
  endpoint: string,
  answer: RenderedAnswer,
  { output, host }: Pick<RenderConfig, "output"> & { readonly host: Host },
): Promise<RenderedAnswer> {
  if (output !== undefined) await writeAnswer(output, endpoint, answer);
  else if (answer.kind === "body") host.write(answer.body);
  if (answer.kind === "refused") {
    host.writeError(`${[`${endpoint}: ${answer.words}`, ...answer.details].join("\n  ")}\n`);
  }
  return answer;
}

/**
 * Writes an answer to a file. Before that, it removes any old file of this name. The old file may be a link that davit
 * must not follow, or an answer that the machine no longer gets.
 */
async function writeAnswer(directory: string, endpoint: string, answer: RenderedAnswer): Promise<void> {
  const path = join(directory, endpoint.replace("/", "-"));
  try {
    await mkdir(directory, { recursive: true });
    await rm(path, { force: true });
    // The mode keeps texts of Secrets from other users. The flag refuses a link that someone puts there meanwhile.
    if (answer.kind === "body") await writeFile(path, answer.body, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw diskFailure("Writing", path, error);
  }
}

/** Finds a Go that can build a module of this folder; an old one, as Debian 12 has, fetches a newer one for that. */

import { execFile } from "node:child_process";
import { chmod, copyFile, readdir, readFile } from "node:fs/promises";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The `go` command, and the environment in which it builds. */
export interface Go {
  readonly command: string;
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const run = promisify(execFile);

// Not on the PATH of every shell: where Go's own archives and Debian's packages put it.
const commands = ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"];

/**
 * Finds Go, or fetches it.
 * @param report takes a line of progress.
 * @param module the folder whose go.mod says which version it has to be.
 * @throws {Error} when there is none at all, or it cannot be fetched.
 */
export async function findGo(report: (line: string) => void, module: string): Promise<Go> {
  const wanted = await wantedVersions(module);
  const installed: { readonly command: string; readonly version: string }[] = [];
  for (const command of commands) {
    const version = await versionOf(command);
    if (version !== undefined) installed.push({ command, version });
  }
  const fitting = installed.find(({ version }) => isAtLeast(version, wanted.least));
  if (fitting !== undefined) return { ...fitting, environment: environment() };
  const [old] = installed;
  if (old === undefined) throw new Error("Looking for Go: none found; apt-get install golang-go");
  report(`${old.command} is ${old.version}, ${wanted.least} is needed: fetching go${wanted.best} as a Go module`);
  const command = await fetchToolchain(old.command, wanted.best);
  // A GOROOT that was set is the old one's.
  return { command, version: `go${wanted.best}`, environment: { ...environment(), GOROOT: undefined } };
}

/** True when `version` (such as `go1.26.8`) is `least` (such as `1.25.0`) or later. */
export function isAtLeast(version: string, least: string): boolean {
  const [have, want] = [version, least].map((text) => /^(?:go)?(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number));
  if (have === undefined || want === undefined) return false;
  const [major = 0, minor = 0] = have;
  const [wantedMajor = 0, wantedMinor = 0] = want;
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

/** What go.mod asks for (`go`) and what it is built with where that is not there (`toolchain`). */
async function wantedVersions(module: string): Promise<{ readonly least: string; readonly best: string }> {
  const text = await readFile(join(module, "go.mod"), "utf8");
  const [, least] = /^go (\S+)$/m.exec(text) ?? [];
  const [, best] = /^toolchain go(\S+)$/m.exec(text) ?? [];
  if (least === undefined || best === undefined) throw new Error("Reading go.mod: it names no go and no toolchain");
  return { least, best };
}

/** Outside of a module, where an old Go finds no go.mod that is too new for it. */
async function versionOf(command: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(command, ["env", "GOVERSION"], { cwd: tmpdir(), env: environment() });
    return stdout.trim();
  } catch {
    // Not installed here.
    return undefined;
  }
}

/** The user's own, without what would change the result: it has to be the same wherever it is built. */
function environment(): Readonly<Record<string, string | undefined>> {
  // An empty GOFLAGS would not do: Go then looks into the user's settings.
  return { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=readonly", GOWORK: "off", GOTOOLCHAIN: "local" };
}

/**
 * Fetches a Go release as the module golang.org/toolchain, whose sum the checksum database of modules vouches for. From
 * Go 1.21 on the go command does this itself; the steps are those of its own cmd/go/internal/toolchain/select.go.
 * @returns the path of its go command.
 */
async function fetchToolchain(command: string, version: string): Promise<string> {
  const platform = `linux-${arch() === "arm64" ? "arm64" : "amd64"}`;
  const module = `golang.org/toolchain@v0.0.1-go${version}.${platform}`;
  const { stdout } = await run(command, ["mod", "download", "-json", module], { cwd: tmpdir(), env: environment() });
  const [, directory] = /"Dir": "(.+)"/.exec(stdout) ?? [];
  if (directory === undefined) throw new Error(`Fetching ${module}: go mod download names no directory`);
  await makeExecutable(directory);
  return join(directory, "bin/go");
}

/** Modules carry neither executable files nor a go.mod within. */
async function makeExecutable(directory: string): Promise<void> {
  for (const folder of ["bin", "pkg/tool"].map((name) => join(directory, name))) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    await Promise.all(files.map((file) => chmod(join(file.parentPath, file.name), 0o755)));
  }
  await chmod(join(directory, "src"), 0o755);
  await copyFile(join(directory, "src/_go.mod"), join(directory, "src/go.mod"));
}

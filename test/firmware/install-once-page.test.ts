/** docs/use/install-once.md as a new user does it: its commands, its objects, and its machine in QEMU. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { blocksOf, examplesOf, readPage } from "../helpers/page-examples.ts";
import { missing } from "../helpers/requirements.ts";
import { BootLine } from "./boot-line.ts";
import { diskGreeting } from "./bootable-disk.ts";
import { linesWith } from "./guest-checks.ts";
import { bootTestLimitMs } from "./machine-boot.ts";

const root = join(import.meta.dirname, "../..");
const isLeftOut = missing("all-firmware") || missing("qemu", "ipxe-rom", "cloud-kernel", "busybox-static", "curl");

// A run of a machine that restarts.
const runLimitMs = 2 * bootTestLimitMs;

const page = readPage("use/install-once.md");
const [write = "", serve = "", grant = "", boot = ""] = blocksOf(page, "sh");
const [before, opened, after] = examplesOf(page);

describe.skipIf(isLeftOut)("docs/use/install-once.md", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-tutorial-"));
  let davit: DavitProcess;
  let line: BootLine;

  beforeAll(async () => {
    await run(write);
    expect(serve).toBe(
      "davit serve --manifests installs --data-dir installs-data --assets-dir assets --log-format pretty",
    );
    const at = (name: string) => join(folder, name);
    // The machine reaches only this computer's loopback, at a port that is known before davit starts.
    line = await BootLine.start();
    const args = ["--assets-dir", at("assets"), "--advertise-address", line.authoritySeenByMachine];
    davit = await startDavit({ manifests: at("installs"), dataDir: at("installs-data"), args });
    line.leadTo(new URL(davit.bootUrl).host);
    return async () => {
      await line.close();
      await davit.stop();
      rmSync(folder, { recursive: true });
    };
  }, runLimitMs);

  it("leads from nothing to the second boot from the disk", { timeout: 2 * runLimitMs }, async () => {
    expect(await answerTo(before?.command)).toBe(before?.answer);
    await run(grant);
    // davit reads the file within seconds.
    await expect.poll(() => answerTo(opened?.command), { timeout: 30_000, interval: 500 }).toBe(opened?.answer);

    const first = await run(boot);

    expect(linesWith(first, "Install")).toEqual([expect.stringContaining("Installing by http"), "Installed"]);
    expect(linesWith(first, diskGreeting)).toEqual([diskGreeting]);
    expect(await answerTo(after?.command)).toBe(after?.answer);
    const second = await run(boot);
    expect(linesWith(second, diskGreeting)).toEqual([diskGreeting]);
    expect(linesWith(second, "Install")).toEqual([]);
  });

  /** Runs a block of the page in the folder, against this davit. */
  async function run(block: string): Promise<string> {
    const { opsUrl = "" } = davit ?? {};
    const port = line?.authoritySeenByMachine.split(":")[1] ?? "";
    const davitCommand = `davit() {
  if [ "$1" = machine ]; then set -- "$@" --ops-url "${opsUrl}"; fi
  "${root}/bin/davit" "$@"
}`;
    const makeCommand = `make() {
  case $1 in
    boot-assets) "${root}/tools/firmware/boot-assets.sh" "$PWD/assets/quickstart" ;;
    boot) PORT=${port} "${process.execPath}" "${root}/tools/firmware/boot.ts" ;;
  esac
}`;
    const script = ["set -eu -o pipefail", davitCommand, makeCommand, block].join("\n");
    // It ends what the commands have started, too.
    const limited = ["--kill-after=5", String(runLimitMs / 1_000), "bash", "-c", `(${script}\n) </dev/null`];
    const { stdout } = await promisify(execFile)("timeout", limited, { cwd: folder });
    return stdout.replaceAll("\r", "");
  }

  /** What a command of the page prints, `curl` of this davit. */
  async function answerTo(command = ""): Promise<string> {
    const { bootUrl, opsUrl } = davit;
    expect(command).toMatch(/^\$ curl .*'http:\/\/127\.0\.0\.1:808[01]\//);
    const here = command.slice(2).replace("http://127.0.0.1:8080", bootUrl).replace("http://127.0.0.1:8081", opsUrl);
    return (await run(here)).trimEnd();
  }
});

/**
 * The examples' reports, by the shells and programs that installers run them with: each snippet is cut out of the
 * config that davit serves, and run as it is.
 */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import { cloudInitPackages, missing } from "../helpers/requirements.ts";
import { ExampleDavit, readExamples } from "./example-davit.ts";

type Command = readonly string[];

interface Report {
  readonly file: string;
  /** The config that has the snippet. */
  readonly endpoint: string;
  readonly state: "installed" | "failed" | "booted";
  /** Cuts the snippet out of the config. */
  readonly commandIn: (config: string) => Command;
}

// Of Debian's busybox-static.
const busybox = "/bin/busybox";
const reportPath = "/report/";

const reports: readonly Report[] = [
  { file: "debian-preseed.yaml", endpoint: "generic", state: "installed", commandIn: lateCommand },
  { file: "fedora-coreos.yaml", endpoint: "ignition", state: "failed", commandIn: unit("install-failed.service") },
  { file: "fedora-coreos.yaml", endpoint: "ignition", state: "installed", commandIn: unit("installed.service") },
  { file: "fedora-coreos.yaml", endpoint: "generic/installed.ign", state: "booted", commandIn: unit("booted.service") },
  { file: "flatcar.yaml", endpoint: "ignition", state: "failed", commandIn: unit("install-failed.service") },
  { file: "flatcar.yaml", endpoint: "ignition", state: "installed", commandIn: unit("install.service") },
  { file: "kickstart.yaml", endpoint: "generic", state: "failed", commandIn: section("%onerror") },
  { file: "kickstart.yaml", endpoint: "generic", state: "installed", commandIn: section("%post --nochroot") },
  {
    file: "ubuntu-autoinstall.yaml",
    endpoint: "generic/user-data",
    state: "failed",
    commandIn: ubuntu("error-commands"),
  },
  {
    file: "ubuntu-autoinstall.yaml",
    endpoint: "generic/user-data",
    state: "installed",
    commandIn: ubuntu("late-commands"),
  },
  { file: "ubuntu-autoinstall.yaml", endpoint: "generic/user-data", state: "booted", commandIn: runCommandOf },
];

const installers = (await readExamples()).filter(({ needsPermit }) => needsPermit);
const phases = { installed: "Installed", failed: "Failed", booted: "Booted" } as const;

describe.skipIf(missing("curl", "busybox-static"))("the reports of the examples", () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-snippets-"));
  let server: ExampleDavit;

  beforeAll(async () => {
    // The only wget of Debian's installer.
    symlinkSync(busybox, join(folder, "wget"));
    symlinkSync(busybox, join(folder, "sleep"));
    return () => rmSync(folder, { recursive: true });
  });

  it("are those of every installer", () => {
    expect(new Set(reports.map(({ file }) => file))).toEqual(new Set(installers.map(({ file }) => file)));
    const ends = reports.filter(({ state }) => state === "installed").map(({ file }) => file);
    expect(ends).toEqual(installers.map(({ file }) => file));
  });

  describe.each(["failed", "installed"] as const)("of an install that ends as %s", (end) => {
    beforeAll(async () => {
      server = await ExampleDavit.start();
      await server.grant(installers);
      return () => server.stop();
    }, 60_000);

    // The installed system reports by a config that the installer gave it.
    const states: readonly string[] = end === "installed" ? ["installed", "booted"] : [end];
    const ended = reports.filter(({ state }) => state === end);

    it.each(ended)("$file: $state", async ({ file }) => {
      expect((await ask(file, "ipxe")).status).toBe(200);
      expect(await phaseOf(file)).toBe("Installing");
      const ofFile = reports.filter((report) => report.file === file && states.includes(report.state));
      const commands = await Promise.all(
        ofFile.map(async ({ endpoint, commandIn }) => commandIn(await configOf(file, endpoint))),
      );

      for (const [at, { state }] of ofFile.entries()) {
        await run(commands[at] ?? []);
        expect(await phaseOf(file)).toBe(phases[state]);
      }
    });
  });

  describe.skipIf(missing("cloud-init"))("of cloud-init", () => {
    beforeAll(async () => {
      server = await ExampleDavit.start();
      await server.grant(installers);
      return () => server.stop();
    }, 60_000);

    it("by its webhook are progress, and end nothing", async () => {
      const file = "ubuntu-autoinstall.yaml";
      expect((await ask(file, "ipxe")).status).toBe(200);
      const { reporting } = autoinstallOf(await configOf(file, "generic/user-data"));
      const program = [
        "import json, sys",
        "from cloudinit import reporting",
        "from cloudinit.reporting import events",
        "reporting.update_configuration(json.loads(sys.argv[1]))",
        "events.report_start_event('subiquity/Install', 'installing system')",
        "events.report_finish_event('subiquity/Install', 'installing system', events.status.FAIL)",
        "reporting.flush_events()",
      ].join("\n");
      await promisify(execFile)("/usr/bin/python3", ["-c", program, JSON.stringify(reporting)], {
        env: { PYTHONPATH: cloudInitPackages },
      });
      const { phase, reported } = await machineOf(file);
      expect(phase).toBe("Installing");
      expect(reported).toMatchObject({ state: "progress", message: expect.stringContaining("installing system") });
    });
  });

  function ask(file: string, endpoint: string): Promise<Response> {
    return server.ask(endpoint, exampleOf(file).labels);
  }

  async function configOf(file: string, endpoint: string): Promise<string> {
    const response = await ask(file, endpoint);
    expect(response.status).toBe(200);
    return response.text();
  }

  async function machineOf(file: string): Promise<JsonObject> {
    const response = await fetch(`${server.davit.opsUrl}/machines/${exampleOf(file).labels.mac}`);
    return parseJsonObject(await response.text()) ?? {};
  }

  async function phaseOf(file: string): Promise<unknown> {
    return (await machineOf(file)).phase;
  }

  /** @throws {Error} when the snippet ends with another code than 0. */
  async function run([program = "", ...args]: Command): Promise<void> {
    const env = { PATH: program === busybox ? folder : process.env.PATH };
    await promisify(execFile)(program, args, { env, timeout: 30_000 });
  }
});

function exampleOf(file: string) {
  const example = installers.find((each) => each.file === file);
  if (example === undefined) throw new Error(`No installer in ${file}`);
  return example;
}

/** The command that Debian's installer runs by the shell of its busybox. */
function lateCommand(preseed: string): Command {
  return [busybox, "sh", "-c", only(/^d-i preseed\/late_command string (.*)$/m.exec(preseed)?.slice(1) ?? [])];
}

/** A script of a kickstart, which Anaconda runs by /bin/sh. */
function section(head: string): (kickstart: string) => Command {
  return (kickstart) => {
    const [, ...after] = kickstart.split(`\n${head}\n`);
    return ["/bin/sh", "-c", only(after).split("\n%end")[0] ?? ""];
  };
}

/** A command of a unit in an Ignition config, whose words systemd separates at blanks. */
function unit(name: string): (ignition: string) => Command {
  return (ignition) => {
    const { systemd } = JSON.parse(ignition);
    const { contents } = systemd.units.find((each: JsonObject) => each.name === name);
    const commands = [...contents.matchAll(/^ExecStart=-?(.*)$/gm)].map(([, command]) => String(command));
    return only(reporting(commands)).split(" ");
  };
}

/** A command of the installer, which Subiquity runs by a shell. */
function ubuntu(name: "late-commands" | "error-commands"): (userData: string) => Command {
  return (userData) => {
    const { [name]: commands } = autoinstallOf(userData);
    return ["/bin/sh", "-c", only(reporting(stringsIn(commands)))];
  };
}

/** The command that cloud-init of the installed system runs, as a list of words. */
function runCommandOf(userData: string): Command {
  const { "user-data": forSystem } = autoinstallOf(userData);
  const commands = isJsonObject(forSystem) && Array.isArray(forSystem.runcmd) ? forSystem.runcmd : [];
  return stringsIn(only(commands));
}

function autoinstallOf(userData: string): JsonObject {
  const { autoinstall } = parse(userData);
  return autoinstall;
}

function reporting(commands: readonly string[]): readonly string[] {
  return commands.filter((command) => command.includes(reportPath));
}

function stringsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function only<T>(found: readonly T[]): T {
  const [first] = found;
  if (first === undefined || found.length !== 1) throw new Error(`${found.length} snippets, not one`);
  return first;
}

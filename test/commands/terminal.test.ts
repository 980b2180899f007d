/** What davit prints on a terminal: history, previews, what has changed, completions, and what was probably meant. */

import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { nearestWord } from "../../src/lib/text/nearest-word.ts";
import { serveOptions } from "../../src/options/table.ts";
import { davitProgram } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { entry, machine } from "../http/fake-machines.ts";
import { machinesBed } from "./machines-under-test.ts";

const bed = machinesBed();
const run = promisify(execFile);
const mac = "52:54:00:a1:9c:ae";
const red = "\u001b[31m";

describe("what was probably meant", () => {
  it.each([
    ["serv", "serve"],
    ["sevre", "serve"],
    ["mashine", "machine"],
    ["histroy", "history"],
    ["fetch", "fetch-assets"],
  ])("davit %s: davit %s", async (word, meant) => {
    expect(await runCommand([word])).toEqual({
      code: 2,
      output: "",
      errors: `Unknown command "${word}": write davit ${meant}\n`,
    });
  });

  it.each(["x", "frobnicate", "", "--frob"])("nothing is like %o", async (word) => {
    const { code, errors } = await runCommand([word]);
    expect([code, errors]).toEqual([2, `Unknown command "${word}": see davit --help\n`]);
  });

  it.each([
    ["--manifest", "--manifests"],
    ["--bootaddress", "--boot-address"],
    ["--asset-dir", "--assets-dir"],
    ["--loglevel", "--log-level"],
  ])("davit serve %s: %s", async (flag, meant) => {
    const { code, errors } = await runCommand(["serve", flag, "x"]);
    expect(code).toBe(2);
    expect(errors).toContain(`Unknown option "${flag}": write ${meant}\n`);
  });

  it("is nothing for a word that is like no other one", () => {
    expect(nearestWord("approve", ["list", "show"])).toBeUndefined();
    expect(nearestWord("li", ["list"])).toBeUndefined();
  });
});

describe("davit history and davit preview", () => {
  it("say that nobody has asked, and refuse what names no machine", async () => {
    expect(await bed().runAny("history")).toEqual({
      code: 0,
      errors: "",
      output: "no machine has asked for anything yet\n",
    });
    const bad = await bed().runAny("history", "not a machine");
    expect([bad.code, bad.errors]).toEqual([
      2,
      expect.stringContaining(
        'Bad machine "not a machine": give MAC|UUID|[NAMESPACE/]NAME|SERIAL|ADDRESS|hostname=NAME|serial=NUMBER\n',
      ),
    ]);
    const unknown = await bed().runAny("history", mac);
    expect([unknown.code, unknown.errors]).toEqual([1, expect.stringContaining("the history has no request")]);
    expect((await bed().runAny("preview", "x y")).code).toBe(2);
  });

  it("list machines, and show the boots of one, as text or JSON; no name moves the cursor", async () => {
    bed().record(`mac=${mac}&hostname=${encodeURIComponent("web1\u001b[2J")}`, { status: 503, group: "racks/web" });
    const list = await bed().runAny("history");
    expect(list.output.split("\n")[0]).toMatch(/^SEEN +MACHINE +HOST +GROUP +LAST +RESULT +ADDRESS$/);
    expect(list.output).toContain(`${mac}  web1\\u{1b}[2J  racks/web  ipxe  503`);
    const one = await bed().runAny("history", mac);
    expect(one.output).toContain("stopped at ipxe: 503");
    const json = await bed().runAny("history", `mac=${mac}`, "--output", "json");
    expect(JSON.parse(json.output)).toMatchObject({
      machines: [{ boots: [{ end: { kind: "refused", status: 503 } }] }],
    });
  });

  it("preview what a machine would get", async () => {
    const text = await bed().runAny("preview", mac, "role=web");
    expect(text).toMatchObject({ code: 0, output: expect.stringContaining("request  ") });
    const json = await bed().runAny("preview", mac, "--output", "json");
    expect(JSON.parse(json.output)).toMatchObject({ labels: { mac } });
  });
});

describe("colours", () => {
  const list = (options: Parameters<typeof runCommand>[1]) =>
    runCommand(["machine", "list", "--ops-url", bed().url], options);

  it("are on a terminal only, and never where NO_COLOR or a dumb terminal forbids them", async () => {
    bed().fake.entries.push(entry("1", { identities: [`mac/${mac}`], state: "Failed" }));
    const plain = await list({});
    expect(plain.output).toContain("Failed");
    expect(plain.output).not.toContain("\u001b");
    const coloured = await list({ outputIsTerminal: true });
    expect(coloured.output).toContain(`${red}Failed`);
    expect(stripVTControlCharacters(coloured.output)).toBe(plain.output);
    for (const environment of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) {
      expect(await list({ outputIsTerminal: true, environment })).toEqual(plain);
    }
  });
});

describe("--watch", { timeout: 60_000 }, () => {
  it("prints the lines that have changed, goes on after a failure, and ends by a signal", async () => {
    bed().fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    const child = spawn(process.execPath, [davitProgram, "machine", "list", "--watch", "--ops-url", bed().url]);
    let [output, errors] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      output += piece;
    });
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      errors += piece;
    });
    const ended = new Promise<number | null>((resolve) => child.on("exit", resolve));
    const soon = { timeout: 30_000 };
    await expect.poll(() => output, soon).toContain("racks/node7");
    const before = output;
    bed().fake.machines.push(machine("racks/node8", { identities: ["mac/52:54:00:00:00:08"] }));
    await expect.poll(() => output, soon).toContain("racks/node8");
    // The line of node7 and the heading have not changed.
    expect(output.slice(before.length)).not.toContain("node7");
    await bed().stopListening();
    await expect.poll(() => errors, soon).toContain("nothing listens there");
    child.kill("SIGINT");
    expect(await ended).toBe(130);
  });
});

describe("davit completion", () => {
  it.each([
    ["davit ma", ["machine"]],
    ["davit machine ap", ["approve"]],
    ["davit serve --manif", ["--manifests"]],
    ["davit serve --log-format ", ["json", "pretty"]],
    ["davit machine list --output j", ["json"]],
    ["davit machine list --wa", ["--watch"]],
    ["davit completion ", []],
    ["davit nothing --", []],
  ])("bash completes %o to %o", async (line, wanted) => {
    const { output } = await runCommand(["completion", "bash"]);
    const script = `${output}
COMP_WORDS=(${line.endsWith(" ") ? `${line}""` : line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _davit; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run("bash", ["-euc", script]);
    const found = stdout.split("\n").filter((word) => word !== "");
    expect(found.filter((word) => word !== "--help")).toEqual(wanted);
  });

  it("bash completes paths", async () => {
    const { output } = await runCommand(["completion", "bash"]);
    const line = `COMP_WORDS=(davit serve --manifests ${join(import.meta.dirname, "termi")})`;
    const script = `${output}${line}; COMP_CWORD=3; _davit; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect((await run("bash", ["-euc", script])).stdout.trim()).toBe(import.meta.filename);
  });

  it.each(["bash", "zsh", "fish"])("%s has every option of davit serve", async (shell) => {
    const { code, output, errors } = await runCommand(["completion", shell]);
    expect([code, errors]).toEqual([0, ""]);
    for (const { flag } of Object.values(serveOptions))
      expect(output).toContain(shell === "fish" ? `-l ${flag} ` : `--${flag} `);
  });

  it("uses no builtin in zsh that only bash has", async () => {
    const { output } = await runCommand(["completion", "zsh"]);
    expect(output).toContain("COMPREPLY=($(compgen -W 'serve boot ");
    expect(output).not.toContain("mapfile");
  });

  it.each([[], ["tcsh"], ["bash", "zsh"]])("refuses %j", async (...words) => {
    expect(await runCommand(["completion", ...words])).toMatchObject({
      code: 2,
      errors: expect.stringContaining("Name one shell: bash, zsh, fish"),
    });
  });
});

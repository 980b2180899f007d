import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { toolPath } from "../../tools/build/tools.ts";
import { missing } from "../helpers/requirements.ts";

const repository = join(import.meta.dirname, "../..");
const startLimitMs = 180_000;

describe.skipIf(missing("kube-apiserver", "kubectl"))("`make cluster`", () => {
  it(
    "prints commands that work, and leaves nothing after Ctrl-C",
    async () => {
      const program = start({});
      const text = await program.says("Ctrl-C here ends everything");
      const [, commands = ""] = /In another terminal, in this directory:\n\n((?: {2}.*\n)+)/.exec(text) ?? [];
      const typed = commands.split("\n").filter((line) => !line.trimStart().startsWith("make "));
      const [, kubeconfig = ""] = /KUBECONFIG=(\S+)/.exec(text) ?? [];
      const served = `for _ in {1..100}; do curl -fs "$url" && break; sleep 0.1; done`;
      const script = typed.join("\n").replace(/curl '([^']+)'/, (_, url) => `url='${url}'; ${served}`);

      const answers = execFileSync("bash", ["-ec", script], { cwd: repository, encoding: "utf8", env: environment() });
      program.child.kill("SIGINT");

      expect(answers).toContain("profile.davit.dev/quickstart created\n");
      expect(answers).toContain("#!ipxe\nkernel /assets/quickstart/vmlinuz ");
      expect(await program.ended).toBe(0);
      expect(existsSync(dirname(kubeconfig))).toBe(false);
    },
    startLimitMs,
  );

  it(
    "ends with what davit complains of, when that does not start",
    async () => {
      const program = start({ DAVIT_LIMIT: "source-grace=soon" });
      const text = await program.says("davit has ended by itself (2)");
      expect(text).toContain('Bad value "source-grace=soon" for DAVIT_LIMIT');
      expect(await program.ended).toBe(1);
    },
    startLimitMs,
  );

  it(
    "obeys Ctrl-C while it starts",
    async () => {
      const program = start({});
      await program.says("Starting a Kubernetes API server");
      program.child.kill("SIGINT");
      await program.says("Ended, and removed the cluster");
      expect(await program.ended).toBe(0);
    },
    startLimitMs,
  );
});

function start(more: Readonly<Record<string, string>>) {
  const program = join(import.meta.dirname, "../../tools/cluster/throw-away.ts");
  const stdio = ["ignore", "pipe", "pipe"] as const;
  const child = spawn(process.execPath, [program], { stdio: [...stdio], env: { ...environment(), ...more } });
  const ended = once(child, "close").then(([code]) => code);
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  return { child, ended, says: listener(child) };
}

/** What is written, up to the first time that it has a text; rejects when the end comes before. */
function listener(child: ChildProcessByStdio<null, Readable, Readable>): (text: string) => Promise<string> {
  let heard = "";
  const waiting = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      heard += text;
      for (const look of waiting) look();
    });
  }
  return (text) =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (heard.includes(text)) resolve(heard);
      };
      waiting.add(look);
      child.once("close", () => reject(new Error(`It ended without saying "${text}":\n${heard}`)));
      look();
    });
}

/** This process's, without options of davit, and with the kubectl of these tools. */
function environment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("DAVIT_"));
  return { ...Object.fromEntries(own), PATH: `${dirname(toolPath("kubectl"))}:${process.env.PATH}` };
}

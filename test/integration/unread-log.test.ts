/** A davit whose standard output takes no more lines: it answers machines, and ends with its exit code. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePorts } from "../../tools/cluster/ports.ts";
import { davitProgram } from "../../tools/davit-process.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";

const limitMs = 120_000;
const soon = { timeout: 60_000, interval: 50 };
const manifests = join(import.meta.dirname, "../../manifests/quickstart");
// More lines than a socket or a pipe of 64 KiB takes.
const clients = 8;
const requestsOfClient = 150;
const requests = clients * requestsOfClient;

let folder: string;
let davit: ChildProcess | undefined;
let opened: number[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-unread-"));
  opened = [];
});
afterEach(async () => {
  davit?.kill("SIGKILL");
  for (const file of opened) closeSync(file);
  await rm(folder, { recursive: true });
});

/** Opens a pipe as a shell does. The streams that Node makes for a child are sockets. */
function openPipe() {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writing = openSync(path, "w");
  opened.push(reading);
  return { reading, writing };
}

/** Starts davit, and resolves with its boot port when it is ready. Nobody reads what it writes. */
async function start(stdout: number | "pipe", format: string): Promise<number> {
  const [boot = 0, ops = 0] = await freePorts(2);
  const places = ["--manifests", manifests, "--data-dir", join(folder, "data"), "--store-address", "127.0.0.1:0"];
  const ports = ["--boot-address", `127.0.0.1:${boot}`, "--ops-address", `127.0.0.1:${ops}`];
  const words = [davitProgram, "serve", "--log-format", format, ...places, ...ports];
  davit = spawn(process.execPath, words, { stdio: ["ignore", stdout, "inherit"] });
  if (typeof stdout === "number") closeSync(stdout);
  const status = async () => (await fetch(`http://127.0.0.1:${ops}/readyz`).catch(() => undefined))?.status;
  await expect.poll(status, soon).toBe(200);
  return boot;
}

/** Asks for boot scripts. @returns how many are answered with 200. */
async function ask(port: number): Promise<number> {
  const agent = agentFor();
  let answered = 0;
  const client = async () => {
    for (let at = 0; at < requestsOfClient; at++) {
      const answer = await sendRaw({ port, agent, method: "GET", target: "/ipxe?mac=52-54-00-a1-9c-ae" });
      if ((await answer.whole()).status === 200) answered++;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return answered;
}

async function exitCodeAfterStop(): Promise<unknown> {
  if (davit === undefined) throw new Error("davit was not started");
  const exited = once(davit, "exit");
  davit.kill("SIGTERM");
  return (await exited)[0];
}

/** Reads everything that is in a pipe. */
function readAll(file: number): string {
  const bytes = Buffer.alloc(2 ** 20);
  let length = 0;
  for (let read = -1; read !== 0; length += read) read = readSync(file, bytes, length, bytes.length - length, null);
  return bytes.toString("utf8", 0, length);
}

describe("a log that nobody reads", { timeout: limitMs }, () => {
  it.each(["json", "pretty"])("as %s in a pipe holds up neither machines nor the end", async (format) => {
    const { reading, writing } = openPipe();
    const port = await start(writing, format);
    expect(await ask(port)).toBe(requests);
    expect(await exitCodeAfterStop()).toBe(0);
    // The pipe was full: it has the first lines only, and davit lost the rest.
    const lines = readAll(reading);
    expect(lines).toContain("/ipxe");
    expect(lines.split("/ipxe").length - 1).toBeLessThan(requests);
  });

  it("in a socket, as systemd has, holds up neither", async () => {
    const port = await start("pipe", "json");
    // Paused: nothing is read.
    const received = davit?.stdout?.pause();
    expect(await ask(port)).toBe(requests);
    expect(await exitCodeAfterStop()).toBe(0);
    let lines = "";
    for await (const piece of received ?? []) lines += String(piece);
    expect(lines.split("/ipxe").length - 1).toBeLessThan(requests);
  });

  it("on a full disk holds up neither", async () => {
    const port = await start(openSync("/dev/full", "w"), "json");
    expect(await ask(port)).toBe(requests);
    expect(await exitCodeAfterStop()).toBe(0);
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { parseJsonObject } from "../../src/model/json.ts";

const logFile = new URL("../../src/lib/logging/create-log.ts", import.meta.url).href;

/** Starts a program that has `log`, whose standard output nobody reads yet. */
function start(program: string) {
  const setUp = `
    import { createLog } from ${JSON.stringify(logFile)};
    const log = createLog({ level: "info", format: "json", onExit: (callback) => process.once("exit", callback) });
  `;
  return spawn(process.execPath, ["--input-type=module-typescript", "--eval", setUp + program]);
}

async function linesOf(child: ReturnType<typeof start>): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(line);
  return lines;
}

it.each([
  ["exits", "process.exit(3)", 3],
  ["fails", "throw new Error('a bug')", 1],
])("the last lines are written when the process %s right behind them", async (_name, end, code) => {
  const child = start(`for (let at = 0; at < 1000; at++) log.info({ at }, "line"); ${end};`);
  const exited = once(child, "close");
  const lines = await linesOf(child);
  // A batch that another thread is writing at the exit may come behind those that are written then.
  const told = lines.map((line) => parseJsonObject(line)?.at).toSorted((a, b) => Number(a) - Number(b));
  expect(told).toEqual(Array.from({ length: 1000 }, (_, at) => at));
  expect((await exited)[0]).toBe(code);
});

it("no line has a character that a terminal obeys, however many lines a batch has", async () => {
  const child = start(`
    log.info({ sent: "\\u009b" }, "first");
    log.writeLine("beside");
    log.info({ sent: "\\u202e" }, "last");
    process.exit();
  `);
  const [first, beside, last] = await linesOf(child);
  expect(first).toContain(String.raw`"sent":"\u009b"`);
  expect(beside).toBe("beside");
  expect(last).toContain(String.raw`"sent":"\u202e"`);
});

it("lines are dropped and counted when nobody reads them, and the process goes on", async () => {
  const child = start(`
    const text = "x".repeat(1000);
    for (let at = 0; at < 20_000; at++) log.info({ at, text }, "line");
    process.stdin.once("end", () => undefined).resume();
    process.stderr.write("done");
  `);
  await once(child.stderr, "data");
  const reading = linesOf(child);
  child.stdin.end();
  const entries = (await reading).map((line) => parseJsonObject(line));
  const written = entries.filter((entry) => entry?.msg === "line").length;
  const told = entries.filter((entry) => entry?.level === 40).map((entry) => Number(entry?.count));
  expect(written).toBeLessThan(20_000);
  expect(written + told.reduce((sum, count) => sum + count, 0)).toBe(20_000);
});

// Without lines before them, the last lines are the first that the disk refuses. They are more than a batch.
const lastLines = `for (let at = 0; at < 2_000; at++) log.info({ at }, "last line"); process.exit(3);`;

it.each([
  { format: "json", lines: "some lines", first: "" },
  { format: "pretty", lines: "some lines", first: "" },
  { format: "json", lines: "last lines", first: lastLines },
  { format: "pretty", lines: "last lines", first: lastLines },
])(
  "the process goes on, and ends, when the disk refuses $lines of its $format log",
  async ({ format, first }) => {
    const program = `
    import { createLog } from ${JSON.stringify(logFile)};
    const onExit = (callback) => process.once("exit", callback);
    const log = createLog({ level: "info", format: ${JSON.stringify(format)}, onExit });
    process.stderr.write("alive");
    ${first}
    for (let round = 0; round < 5; round++) {
      log.info({ round }, "line");
      log.writeLine("a line");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    process.exit(3);
  `;
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
      stdio: ["ignore", full, "pipe"],
      timeout: 20_000,
      killSignal: "SIGKILL",
    });
    closeSync(full);
    let said = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    const [code] = await once(child, "close");
    expect({ code, said }).toEqual({ code: 3, said: "alive" });
  },
  30_000,
);

// A terminal obeys the first (CSI 2 J clears it) and writes the others' neighbours in another order, or on another line.
const hidden = ["\u009b2J", "\u007f", "\u0085", "\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\u2029"];

it.each(["json", "pretty"] as const)(
  "a %s log has no character that a terminal acts on, in a name or a text",
  (format) => {
    const lines: string[] = [];
    const log = createLog({ level: "info", format, destination: { write: (line) => void lines.push(line) } });
    for (const text of hidden) {
      log.info({ serial: text }, "request");
      log.info({ nested: { [text]: [text] } }, "nested");
      log.warn({ serial: text }, text);
    }
    const all = lines.join("");
    expect(
      all
        .replaceAll("\n", "")
        .match(/[\p{C}\p{Zl}\p{Zp}]/gu)
        ?.filter((each) => each !== "\u001b") ?? [],
    ).toEqual([]);
    expect(all).toContain("\\u009b2J");
    if (format === "json") expect(lines.map((line) => parseJsonObject(line)?.serial)).toContain("\u202e");
  },
);

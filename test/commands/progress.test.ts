import { describe, expect, it } from "vitest";
import { Progress, ProgressLine, sizeText } from "../../src/commands/core/progress.ts";
import { parseJsonObject } from "../../src/model/json.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

/** What is written when so many bytes are done, each time 1 s later. */
async function told(
  outputIsTerminal: boolean,
  sizes: readonly number[],
  totalBytes?: number,
): Promise<readonly string[]> {
  const clock = new FakeClock();
  const written: string[] = [];
  const host = {
    args: [],
    environment: {},
    outputIsTerminal,
    input: { isTerminal: true, pieces: () => process.stdin },
    write: (text: string) => written.push(text),
    writeError: () => undefined,
    stop: new AbortController().signal,
    onExit: () => undefined,
    exit: () => undefined,
  };
  const progress = new Progress(host, clock, "backup is being written");
  for (const bytes of sizes) {
    await clock.advance(1_000);
    progress.advance(bytes, totalBytes);
    progress.advance(bytes, totalBytes);
  }
  progress.done("It is done", { bytes: 7 }, "backup written");
  return written;
}

describe("progress", () => {
  it("is a line that is written anew on a terminal, then a sentence", async () => {
    expect(await told(true, [1_000, 50_000])).toEqual(["\r1000 bytes", "\r48.8 KiB  ", "\n", "It is done\n"]);
  });

  it("is a bar where the size is known", async () => {
    expect(await told(true, [262_144, 1_048_576], 1_048_576)).toEqual([
      "\r[######------------------]  25 %, 256.0 KiB of 1.0 MiB",
      "\r[########################] 100 %, 1.0 MiB of 1.0 MiB  ",
      "\n",
      "It is done\n",
    ]);
  });

  it("is a log line now and then where nobody looks on", async () => {
    const lines = (await told(false, [1, 2, 3, 4, 5, 6])).map((line) => parseJsonObject(line));
    expect(lines).toMatchObject([
      { msg: "backup is being written", bytes: 5 },
      { msg: "backup written", bytes: 7 },
    ]);
  });

  it("is the result alone when it was quick", async () => {
    expect(await told(true, [])).toEqual(["It is done\n"]);
  });
});

it.each([
  [0, "0 bytes"],
  [9_999, "9999 bytes"],
  [10_240, "10.0 KiB"],
  [5 * 1024 ** 2, "5.0 MiB"],
  [3 * 1024 ** 3, "3.00 GiB"],
])("%i bytes are told as %s", (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
});

describe("a progress line", () => {
  async function toldLine(outputIsTerminal: boolean): Promise<readonly string[]> {
    const clock = new FakeClock();
    const written: string[] = [];
    const line = new ProgressLine({ outputIsTerminal, writeError: (text) => written.push(text) }, clock);
    for (const text of ["too soon", "read 90 of 100", "tried 1 of 2"]) {
      line.show(text);
      await clock.advance(100);
    }
    line.clear();
    line.clear();
    return written;
  }

  it("is written over at a terminal, at most ten times a second, and is gone in the end", async () => {
    expect(await toldLine(true)).toEqual(["\rread 90 of 100", "\rtried 1 of 2  ", `\r${" ".repeat(12)}\r`]);
  });

  it("is not written anywhere else", async () => {
    expect(await toldLine(false)).toEqual([]);
  });
});

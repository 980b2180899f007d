/** Every story of `etcdctl/`, told to davit and to etcd 3.4 with Debian's etcdctl: existing scripts work unchanged. */

import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isBody } from "../conformance/exchange.ts";
import { startDavitStore } from "../helpers/davit-store.ts";
import { emptiedIndex } from "../helpers/emptied-index.ts";
import type { TestServer } from "../helpers/keys-servers.ts";
import { quickFolder, startEtcdIn } from "../helpers/quick-folder.ts";
import { missing } from "../helpers/requirements.ts";
import { type CommandStep, type Printed, parseCommandStory } from "./command-story.ts";
import { Etcdctl } from "./etcdctl.ts";
import { waitingWatchers } from "./waiting-watchers.ts";

const folder = new URL("./etcdctl/", import.meta.url);
const stories = readdirSync(folder)
  .toSorted()
  .map((name) => ({ name: name.replace(".txt", ""), text: readFileSync(new URL(name, folder), "utf8") }))
  .map(({ name, text }) => ({ name, text, title: parseCommandStory(text, 0).title }));

const servers = [
  { server: "davit", start: () => startDavitStore(quickFolder()), isMissing: missing("etcdctl") },
  { server: "etcd", start: () => startEtcdIn(quickFolder()), isMissing: missing("etcdctl", "etcd") },
];

const soon = { timeout: 15_000 };

describe.each(servers)("etcdctl with $server", ({ start, isMissing }) => {
  let running: TestServer;

  beforeAll(async () => {
    if (!isMissing) running = await start();
  });
  afterAll(async () => {
    await running?.stop();
  });

  it.skipIf(isMissing).each(stories)("$name: $title", async ({ text }) => {
    const { steps } = parseCommandStory(text, await emptiedIndex(running.port));
    await tell(steps, running.port);
  });
});

async function tell(steps: readonly CommandStep[], port: number): Promise<void> {
  const commandFor = (words: string) => new Etcdctl(`--endpoints http://127.0.0.1:${port} ${words}`);
  let begun: Running | undefined;
  try {
    for (const step of steps) {
      if (step.kind === "run") await expectPrinted({ ...step, command: commandFor(step.words) }, step.printed);
      else if (step.kind === "begin") begun = await watching(port, { ...step, command: commandFor(step.words) });
      else if (begun !== undefined) await expectPrinted(begun, step.printed);
    }
  } finally {
    await begun?.command.stop();
  }
}

interface Running {
  readonly words: string;
  readonly command: Etcdctl;
}

/** Waits until the command watches: it is the only one that may. */
async function watching(port: number, running: Running): Promise<Running> {
  await expect.poll(() => waitingWatchers(port), soon).toBe(1);
  return running;
}

async function expectPrinted({ words, command }: Running, printed: Printed): Promise<void> {
  // Where it fits, it is shown as expected.
  const shown = () => (isBody(printed.output, command.output) ? printed.output : command.output);
  if (printed.exit === "stopped") {
    await expect.poll(shown, soon).toBe(printed.output);
    return await command.stop();
  }
  const exit = await command.ended();
  expect({ words, output: shown(), exit }).toEqual({ words, output: printed.output, exit: printed.exit });
}

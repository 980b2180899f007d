/** Measures the heap that groups take, after they are loaded and after every machine has asked for everything. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { BootConfigs } from "../src/boot/boot-configs.ts";
import { BootIndex } from "../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../src/model/labels/labels.ts";
import { silentLog } from "../test/helpers/test-store.ts";
import { answerQuestions } from "./child.ts";
import { benchDocuments, endpoints, queryOf } from "./machines.ts";

const index = new BootIndex({ log: silentLog });
const configs = new BootConfigs({
  index,
  authority: "192.0.2.1:8080",
  grub: { separator: "auto", commands: "auto" },
});

// The first groups fill what the process has anyway: compiled code, and caches of a fixed size.
const warmCount = 1_000;

answerQuestions(({ groups }) => {
  const count = Number(groups);
  load(warmCount);
  askForAll(warmCount);
  const warmBytes = heapBytes();
  load(count);
  const loadedBytes = heapBytes();
  askForAll(count);
  const bytes = (now: number) => (now - warmBytes) / (count - warmCount);
  return { loaded: bytes(loadedBytes), served: bytes(heapBytes()) };
});

function askForAll(count: number): void {
  for (let machine = 0; machine < count; machine++) {
    const rawQuery = queryOf(machine);
    for (const name of endpoints) configs.render(name, { labels: labelsFromQuery(rawQuery), rawQuery, userAgent: "" });
  }
}

/** A function of its own, so that the documents are garbage afterwards. */
function load(count: number): void {
  index.replaced([...benchDocuments(count)]);
  index.open();
}

/** Returns the bytes of the heap that are in use, without garbage. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}

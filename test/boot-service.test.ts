import { expect, it } from "vitest";
import { BootService } from "../src/app/boot/boot-service.ts";
import { createLog } from "../src/lib/logging/create-log.ts";
import { createMetrics } from "../src/lib/metrics/metrics.ts";
import { readServeConfig } from "../src/options/serve.ts";
import { syncedDocument } from "./boot/feed-documents.ts";
import { FakeClock } from "./helpers/fake-clock.ts";

const paths = { isDirectory: () => true, isFile: () => true };
const config = readServeConfig(["--manifests", "m", "--limit", "source-grace=10s"], {}, paths);
const log = createLog({ level: "silent", format: "json" });

/** A boot service with a copy of before its start. */
function serviceWithCopy() {
  const clock = new FakeClock();
  const service = new BootService({ config, log, clock, metrics: createMetrics("0"), version: "0" });
  service.index.replaced([syncedDocument()]);
  return { service, clock };
}

/** Resolves when everything has run that waits for nothing else. */
async function settle(): Promise<void> {
  for (let round = 0; round < 20; round++) await Promise.resolve();
}

it("the copy on disk is served when the grace time is over, and not before", async () => {
  const { service, clock } = serviceWithCopy();
  const opened = service.openWhenHeard(new Promise(() => {}));
  await clock.advance(9_999);
  expect(service.index.isReady).toBe(false);
  await clock.advance(1);
  await opened;
  expect(service.index.isReady).toBe(true);
});

it("the copy on disk is served at once when the source is heard", async () => {
  const { service } = serviceWithCopy();
  await service.openWhenHeard(Promise.resolve());
  expect(service.index.isReady).toBe(true);
});

it("the copy on disk is not served because of a stop", async () => {
  const { service } = serviceWithCopy();
  let isOpened = false;
  void service.openWhenHeard(new Promise(() => {})).then(() => {
    isOpened = true;
  });
  service.beginStop();
  await settle();
  expect([service.index.isReady, isOpened]).toEqual([false, false]);
});

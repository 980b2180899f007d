import { afterEach, beforeEach } from "vitest";
import { FakeApiServer } from "./fake-api-server.ts";

/** A fake API server for each test of a file, and the end of whatever a test starts beside it. */
export interface FakeServerSuite {
  readonly server: FakeApiServer;
  /** Has it stopped when the test is over, the last one first. */
  stopsLater<Part extends { stop(): Promise<void> }>(part: Part): Part;
}

/** Called at the top of a file. */
export function useFakeServer(): FakeServerSuite {
  const started: { stop(): Promise<void> }[] = [];
  let server: FakeApiServer;
  beforeEach(async () => {
    server = await FakeApiServer.start();
    started.push(server);
  });
  afterEach(async () => {
    for (const part of started.splice(0).toReversed()) await part.stop();
  });
  return {
    get server() {
      return server;
    },
    stopsLater: (part) => {
      started.push(part);
      return part;
    },
  };
}

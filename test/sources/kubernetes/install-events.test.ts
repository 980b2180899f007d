import { expect, it } from "vitest";
import type { Condition } from "../../../src/model/objects/source.ts";
import { until } from "./client-under-test.ts";
import { useFakeServer } from "./fake-server-suite.ts";
import { groupOf } from "./source-under-test.ts";
import { WriterUnderTest } from "./writer-under-test.ts";

const suite = useFakeServer();
const ready: Condition = { type: "Ready", status: "True", reason: "Ready", message: "The Machine is in effect" };

it("Events tell of a claim and of each end of an install, but of no first status without one", async () => {
  suite.server.put(groupOf("a"));
  const under = await WriterUnderTest.start(suite);
  const installs = [
    ["False", "NeverInstalled"],
    ["False", "Claimed"],
    ["False", "Installing"],
    ["False", "Failed"],
    ["False", "Installing"],
    ["True", "Installed"],
    ["Unknown", "Unconfirmed"],
  ] as const;
  for (const [at, [status, reason]] of installs.entries()) {
    const installed: Condition = { type: "Installed", status, reason, message: reason };
    const conditions = [installed, ready];
    await under.write("a", { observedGeneration: at + 1, conditions });
    await under.shows("a", at + 1);
  }
  await until(() => suite.server.events.length === 5);
  expect(suite.server.events.map(({ reason, type }) => `${reason} ${type}`)).toEqual([
    "Claimed Normal",
    "Failed Warning",
    "Installing Normal",
    "Installed Normal",
    "Unconfirmed Warning",
  ]);
});

/** Namespaces that list as empty, of which the API server alone knows whether they are there. */

import { describe, expect, it } from "vitest";
import { until } from "./client-under-test.ts";
import { answers } from "./fake-api-server.ts";
import { groupOf, useSources } from "./source-under-test.ts";

const { suite, sourceOf } = useSources();

const eventsPath = /\/events$/;
const question = /\/namespaces\/lab\/events$/;
const missingEvents =
  'davit may not create events in namespace "lab" (403): its Role lacks the rule {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}: upgrade the chart, or see docs/internals/controller.md#rbac';
const consequence = "until then nothing is removed that machines boot from";

describe("a namespace without a Profile and a Group", () => {
  it("that is there is empty, and the API server is asked once and changes nothing", async () => {
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    expect(under.listed).toEqual([true]);
    await under.bed.clock.advance(60_000);
    const [asked, ...more] = suite.server.seen("post", question);
    expect(more).toEqual([]);
    expect(asked?.query.get("dryRun")).toBe("All");
    expect(suite.server.events).toEqual([]);
  });

  it("that is not there makes the view half, as what to do says, until it is created", async () => {
    suite.server.missingNamespaces.add("lab");
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    expect(under.listed).toEqual([false]);
    const message = `it does not exist: create it, or mend --namespace; ${consequence}`;
    expect(under.source.view.problems).toEqual([{ origin: 'namespace "lab"', message }]);
    expect(under.bed.told("a namespace to read has nothing in it, and may not be there")).toMatchObject([
      { namespace: "lab", problem: message },
    ]);
    suite.server.missingNamespaces.clear();
    await under.bed.clock.advance(10_000);
    await until(() => under.listed.at(-1) === true);
    expect(under.source.view.problems).toEqual([]);
  });

  it("is asked after every ten seconds and told once", async () => {
    suite.server.missingNamespaces.add("lab");
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    for (let count = 2; count <= 6; count++) {
      await under.bed.clock.advance(10_000);
      await until(() => suite.server.seen("post", question).length === count);
    }
    expect(under.bed.told("a namespace to read has nothing in it, and may not be there")).toHaveLength(1);
  });

  it("keeps the others from being the whole: what went in them may stay", async () => {
    suite.server.missingNamespaces.add("lab");
    suite.server.put(groupOf("a"));
    const under = sourceOf({ namespaces: ["default", "lab"] });
    await under.list();
    expect(under.listed).toEqual([false]);
    expect(under.source.view.get("Group", "default", "a")).toBeDefined();
    expect(suite.server.seen("post", eventsPath)).toHaveLength(1);
  });

  it("is there as soon as it shows an object, and stays so when that goes", async () => {
    suite.server.missingNamespaces.add("lab");
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    await under.tells("Group/lab/a", () => suite.server.put(groupOf("a", {}, { namespace: "lab" })));
    await until(() => under.listed.at(-1) === true);
    await under.tells("Group/lab/a", () => suite.server.delete("Group", "a", "lab"));
    await under.bed.clock.advance(60_000);
    expect(under.source.view.complete).toBe(true);
  });

  it.each([
    { status: 403, why: missingEvents },
    { status: 500, why: "the API server refuses (500 Whatever)" },
  ])("is doubted while $status is the answer", async ({ status, why }) => {
    suite.server.always(question, answers(status));
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    expect(under.listed).toEqual([false]);
    expect(under.source.view.problems.map(({ message }) => message)).toEqual([
      `it has no Profile and no Group, and whether it exists is not known; ${consequence}: ${why}`,
    ]);
  });

  it("is there when the API server has looked at the event, whatever it thinks of it", async () => {
    suite.server.always(question, answers(422));
    const under = sourceOf({ namespaces: ["lab"] });
    await under.list();
    expect(under.listed).toEqual([true]);
  });

  it("is not asked after while all of them are read", async () => {
    const under = sourceOf({ namespaces: "all" });
    await under.list();
    expect(under.listed).toEqual([true]);
    expect(suite.server.seen("post")).toEqual([]);
  });

  it("that is asked after holds up no stop", async () => {
    suite.server.always(question, () => undefined);
    const under = sourceOf({ namespaces: ["lab"] });
    await under.start();
    await until(() => suite.server.seen("post", question).length === 1);
    await under.stop();
    expect(under.listed).toEqual([]);
  });
});

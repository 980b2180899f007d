/** `davit machine approve`, `hold`, `release`, `install`, `adopt` and `forget`. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { runCommand } from "../helpers/command-under-test.ts";
import { entry, hourMs, machine, nowMs, openGrant } from "../http/fake-machines.ts";
import { machinesBed } from "./machines-under-test.ts";

const bed = machinesBed();
const mac = "52:54:00:a1:9c:ae";
const root = "/apis/davit.dev/v1alpha1/namespaces";
const nodePath = `${root}/racks/machines/node7`;
const webPath = `${root}/racks/groups/web`;
const key = "group/racks/web";

describe("davit machine approve, hold and release", () => {
  it.each([
    ["approve", "is approved", { approved: true }],
    ["hold", "is held", { hold: true }],
    ["release", "is released", { hold: false }],
  ])("%s patches the Machine", async (verb, done, spec) => {
    bed().cluster.put(nodePath, { spec: { identity: { macs: [mac] } } });
    expect(await bed().runInCluster(verb, "node7")).toEqual({
      code: 0,
      errors: "",
      output: `Machine racks/node7 ${done}\n`,
    });
    expect(bed().cluster.objects.get(nodePath)?.spec).toEqual({ identity: { macs: [mac] }, ...spec });
    expect(bed().cluster.requests.at(-1)).toMatchObject({
      method: "PATCH",
      query: "?fieldManager=davit-machine",
      contentType: "application/merge-patch+json",
      body: { spec },
    });
  });

  it.each([
    ["node7", [], nodePath],
    ["machine/node7", [], nodePath],
    ["machines.davit.dev/node7", [], nodePath],
    ["lab/node7", [], `${root}/lab/machines/node7`],
    ["dmach/lab/node7", [], `${root}/lab/machines/node7`],
    ["node7", ["--namespace", "lab"], `${root}/lab/machines/node7`],
    [mac, [], nodePath],
  ])("%s %j is the object %s", async (word, options, path) => {
    bed().cluster.put(path, {});
    bed().fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    expect((await bed().runInCluster("approve", word, ...options)).code).toBe(0);
    expect(bed().cluster.objects.get(path)?.spec).toEqual({ approved: true });
  });

  it("prints the command and the lines, and changes nothing", async () => {
    bed().cluster.put(nodePath, {});
    expect(await bed().runInCluster("approve", "node7", "--print")).toEqual({
      code: 0,
      errors: "",
      output: [
        `kubectl patch machines.davit.dev node7 --namespace racks --type merge --patch '{"spec":{"approved":true}}'`,
        "",
        "# or in the file of Machine racks/node7:",
        "spec:",
        "  approved: true",
        "",
      ].join("\n"),
    });
    expect(bed().cluster.requests).toEqual([]);
  });

  it("without a kubeconfig prints the same, and fails: a script must not take the machine for held", async () => {
    const { code, output, errors } = await bed().run("hold", "node7");
    expect([code, errors]).toEqual([
      1,
      "Nothing is changed: there is no kubeconfig. Apply this yourself, or give --kubeconfig, or --write for files:\n",
    ]);
    expect(output).toContain("--namespace default ");
  });

  it("finds the kubeconfig by the environment", async () => {
    bed().cluster.put(nodePath, {});
    const environment = { KUBECONFIG: join(bed().folder, "kubeconfig") };
    expect((await runCommand(["machine", "approve", "node7"], { environment })).code).toBe(0);
  });

  it.each([
    [
      404,
      "NotFound",
      "it does not exist, or the cluster has no CRD machines.davit.dev: create it, or correct the name",
    ],
    [403, "Forbidden", 'your account needs get and patch on machines.davit.dev in namespace "racks" (403)'],
    [422, "Invalid", "the API server refuses (422 Invalid)"],
    [401, "Unauthorized", "the API server refuses (401 Unauthorized)"],
  ])("reports %i", async (status, reason, why) => {
    bed().cluster.before = () => ({ status, body: { kind: "Status", reason } });
    expect(await bed().runInCluster("approve", "node7")).toEqual({
      code: 1,
      output: "",
      errors: `Changing Machine racks/node7: ${why}\n`,
    });
  });

  it.each([
    [["group/web"], 'Bad name "group/web": give [NAMESPACE/]NAME|MAC|UUID'],
    [["Node7"], 'Bad name "Node7": give [NAMESPACE/]NAME|MAC|UUID'],
    [["a/b/c"], 'Bad name "a/b/c": give [NAMESPACE/]NAME|MAC|UUID'],
    [["../x"], 'Bad name "../x": give [NAMESPACE/]NAME|MAC|UUID'],
    [[], "Nothing named: give [NAMESPACE/]NAME|MAC|UUID"],
    [["node7", "--namespace", "A"], 'Bad value "A" for --namespace: must be a namespace'],
  ])("refuses %j", async (words, problem) => {
    const { code, errors } = await bed().runInCluster("approve", ...words);
    expect([code, errors]).toEqual([2, expect.stringContaining(problem)]);
  });

  it("refuses two namespaces, and a MAC address that no Machine lists", async () => {
    const { errors } = await bed().runInCluster("approve", "lab/node7", "--namespace", "racks");
    expect(errors).toBe('Two namespaces for Machine "node7": give "lab" or --namespace, not both\n');
    bed().fake.entries.push(entry("1", { identities: [`mac/${mac}`] }));
    const unlisted = await bed().runInCluster("approve", mac);
    expect(unlisted.errors).toBe(`No Machine lists "${mac}": create one with it in spec.identity\n`);
  });
});

describe("davit machine install", () => {
  it("fills in a generation above those of the object and of the ledger, the ledger and the end", async () => {
    bed().cluster.put(webPath, { spec: { install: { generation: 4, scope: "All" } } });
    bed().fake.entries.push(entry("1", { spent: { [key]: 6 } }));
    expect(await bed().runInCluster("install", "group/web")).toEqual({
      code: 0,
      errors: "",
      output:
        "Group racks/web: generation 7 of ledger 9f3c0a52 is open until 2026-11-26T12:00:00Z: machines that were never " +
        "installed, or failed, install once at their next boot\n",
    });
    // The scope of the grant before must not stay.
    const install = { generation: 7, ledger: "9f3c0a52", until: "2026-11-26T12:00:00Z", scope: "NeverInstalled" };
    expect(bed().cluster.objects.get(webPath)?.spec).toEqual({ install });
  });

  it("takes the generation of the object where it is higher, and the scope that is given", async () => {
    bed().cluster.put(webPath, { spec: { install: { generation: 9 } } });
    const { output } = await bed().runInCluster("install", "groups/web", "--scope", "All", "--until", "2h");
    expect(output).toBe(
      "Group racks/web: generation 10 of ledger 9f3c0a52 is open until 2026-11-25T14:00:00Z: every machine, " +
        "installed ones included, installs once at its next boot\n",
    );
    expect(bed().cluster.objects.get(webPath)?.spec).toMatchObject({ install: { generation: 10, scope: "All" } });
  });

  it("grants by a Machine, whose grant has no scope", async () => {
    bed().cluster.put(nodePath, {});
    const { output } = await bed().runInCluster("install", "machines/node7");
    expect(output).toBe(
      "Machine racks/node7: generation 1 of ledger 9f3c0a52 is open until 2026-11-26T12:00:00Z: it installs once at " +
        "its next boot, whatever is on its disks\n",
    );
    const install = { generation: 1, ledger: "9f3c0a52", until: "2026-11-26T12:00:00Z" };
    expect(bed().cluster.objects.get(nodePath)?.spec).toEqual({ install });
    const scoped = await bed().runInCluster("install", "machine/node7", "--scope", "NeverInstalled");
    expect([scoped.code, scoped.errors]).toEqual([2, expect.stringContaining("No --scope for a Machine: its grant")]);
  });

  it("has no generation above the highest that an object may have", async () => {
    bed().cluster.put(webPath, { spec: { install: { generation: 2_147_483_647 } } });
    expect((await bed().runInCluster("install", "group/web")).errors).toBe(
      "Group racks/web: its generation cannot be raised any more: create it under another name\n",
    );
  });

  it("fails if somebody else grants an install at the same time", async () => {
    bed().cluster.put(webPath, {});
    bed().cluster.before = ({ method }) => {
      if (method === "PATCH") bed().cluster.put(webPath, { spec: { install: { generation: 1 } } });
      return undefined;
    };
    expect(await bed().runInCluster("install", "group/web")).toEqual({
      code: 1,
      output: "",
      errors: "Changing Group racks/web: it has changed meanwhile: look at it, then repeat the command\n",
    });
  });

  it("prints the patch for files, in which YAML reads the ledger's id as a text", async () => {
    const { fake } = bed();
    fake.id = "12345678";
    fake.grants.set("group/default/web", openGrant({ generation: 2 }));
    const { code, output } = await bed().run("install", "group/web", "--print", "--until", "2026-11-25T18:00:00+01:00");
    expect(code).toBe(0);
    const [command = "", , , ...yaml] = output.split("\n");
    expect(command).toBe(
      "kubectl patch groups.davit.dev web --namespace default --type merge --patch " +
        `'{"spec":{"install":{"generation":3,"ledger":"12345678","until":"2026-11-25T17:00:00Z","scope":"NeverInstalled"}}}'`,
    );
    expect(parse(yaml.join("\n"))).toEqual({
      spec: { install: { generation: 3, ledger: "12345678", until: "2026-11-25T17:00:00Z", scope: "NeverInstalled" } },
    });
  });

  it("without a kubeconfig prints the same, and fails", async () => {
    bed().fake.grants.set(key, undefined);
    const { code, output, errors } = await bed().run("install", "group/racks/web");
    expect([code, errors.split(":")[0]]).toEqual([1, "Nothing is changed"]);
    expect(output).toContain('"generation":1');
  });

  it("refuses an object that nobody knows", async () => {
    expect((await bed().run("install", "group/wbe", "--print")).errors).toBe(
      "Group default/wbe: davit does not know it: create it first, or correct the name\n",
    );
    expect((await bed().runInCluster("install", "group/wbe")).errors).toBe(
      "Reading Group racks/wbe: it does not exist, or the cluster has no CRD groups.davit.dev: create it, or correct the name\n",
    );
  });

  it("grants nothing without a ledger", async () => {
    bed().fake.id = undefined;
    bed().cluster.put(webPath, {});
    expect(await bed().runInCluster("install", "group/web")).toEqual({
      code: 1,
      output: "",
      errors: "No ledger yet, so nothing can be granted: davit machine ledger shows why\n",
    });
    expect(bed().cluster.requests.map(({ method }) => method)).toEqual(["GET"]);
  });

  it.each([
    ["169h", 1, "Bad --until: a grant ends at most 7 days ahead"],
    ["2026-11-25T11:59:59Z", 1, "Bad --until: the time is over by the ledger's clock"],
    [
      "tomorrow",
      2,
      'Bad value "tomorrow" for --until: must be a duration with s, m or h, such as 24h, or a time such as',
    ],
    ["0s", 2, 'Bad value "0s" for --until: must be a duration with s, m or h'],
    ["2026-13-01T00:00:00Z", 2, 'Bad value "2026-13-01T00:00:00Z" for --until'],
  ])("refuses --until %s", async (until, code, problem) => {
    bed().cluster.put(webPath, {});
    const ran = await bed().runInCluster("install", "group/web", "--until", until);
    expect([ran.code, ran.errors]).toEqual([code, expect.stringContaining(problem)]);
    expect(bed().cluster.requests.filter(({ method }) => method === "PATCH")).toEqual([]);
  });

  it.each([
    ["web", 'Bad name "web": give group/[NAMESPACE/]NAME|machine/[NAMESPACE/]NAME'],
    ["profile/web", 'Bad name "profile/web": give group/'],
    ["group/", 'Bad name "group/": give group/'],
  ])("refuses %s", async (word, problem) => {
    const ran = await bed().runInCluster("install", word);
    expect([ran.code, ran.errors]).toEqual([2, expect.stringContaining(problem)]);
  });

  it("takes no scope and no end from the environment", async () => {
    bed().cluster.put(webPath, {});
    const environment = {
      KUBECONFIG: join(bed().folder, "kubeconfig"),
      DAVIT_OPS_URL: bed().url,
      DAVIT_SCOPE: "All",
      DAVIT_UNTIL: "168h",
      DAVIT_NAMESPACE: "a,b",
    };
    await runCommand(["machine", "install", "group/web"], { environment });
    const install = { scope: "NeverInstalled", until: "2026-11-26T12:00:00Z" };
    expect(bed().cluster.objects.get(webPath)?.spec).toMatchObject({ install });
  });
});

describe("davit machine adopt", () => {
  it("adopts a Group for a day, or as long as it is asked to", async () => {
    bed().fake.grants.set(key, undefined);
    expect(await bed().run("adopt", "group/racks/web")).toEqual({
      code: 0,
      errors: "",
      output: "Machines of Group racks/web without an entry count as installed until 2026-11-26T12:00:00.000Z\n",
    });
    await bed().runInCluster("adopt", "groups/web", "--until", "1h");
    await bed().run("adopt", "group/web", "--namespace", "racks", "--until", "2026-11-25T13:00:00Z");
    const hours = bed().fake.logged.map(
      (change) => ("untilMs" in change ? Number(change.untilMs) - nowMs : 0) / hourMs,
    );
    expect(hours).toEqual([24, 1, 1]);
  });

  it("adopts one machine", async () => {
    bed().fake.machines.push(machine("racks/node7", { identities: [`mac/${mac}`] }));
    expect(await bed().run("adopt", "node7")).toEqual({
      code: 0,
      errors: "",
      output: `Machine racks/node7 counts as installed: mac/${mac}\n`,
    });
    expect(bed().fake.logged).toEqual([{ identities: [`mac/${mac}`], group: "" }]);
  });

  it.each([
    [["group/racks/wbe"], 1, 'Asking "URL": davit knows no Group of this name'],
    [["group/Web"], 2, 'Bad name "group/Web"'],
    [["group/racks/web", "--until", "9999h"], 1, 'Asking "URL": a Group can be adopted for at most 90 days'],
    [[], 2, "Nothing named: give group/[NAMESPACE/]NAME|MAC|UUID|[NAMESPACE/]NAME"],
  ])("refuses %j", async (words, code, problem) => {
    bed().fake.grants.set(key, undefined);
    const ran = await bed().run("adopt", ...words);
    expect([ran.code, ran.errors]).toEqual([code, expect.stringContaining(problem.replace("URL", bed().url))]);
    expect(bed().fake.logged).toEqual([]);
  });
});

describe("davit machine forget", () => {
  it("forgets a machine, and says what that means", async () => {
    bed().fake.entries.push(entry("1", { identities: [`mac/${mac}`] }));
    expect((await bed().run("forget", mac)).output).toBe(
      `Machine ${mac} is forgotten: a later generation installs it, also with scope NeverInstalled\n`,
    );
    bed().fake.forgetting = "closed";
    expect((await bed().run("forget", mac)).output).toMatch(/is forgotten, and has spent the grants that are open: /);
  });

  it("ends the adoption of a Group", async () => {
    bed().fake.adopted.set("racks/web", nowMs + hourMs);
    expect((await bed().run("forget", "group/racks/web")).output).toBe("Group racks/web is no longer adopted\n");
    expect((await bed().run("forget", "group/racks/db")).errors).toBe(
      `Asking "${bed().url}": the Group is not adopted: davit machine ledger shows adopted Groups\n`,
    );
  });
});

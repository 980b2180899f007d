/** What lint finds in Machines: identities, labels, variables and grants. */

import { expect, it } from "vitest";
import { runCommand } from "../../helpers/command-under-test.ts";
import { groupText, profileText, stream } from "../../sources/directory/manifests.ts";
import { linesOf } from "./provocations.ts";

function machineText(at: number, spec = "", name = `node-${at}`): string {
  const head = `apiVersion: davit.dev/v1alpha1\nkind: Machine\nmetadata: {name: ${name}}\n`;
  return `${head}spec:\n  identity: {macs: ["${macOf(at)}"]}\n${spec}`;
}

function macOf(at: number): string {
  return `52:54:00:a1:9c:${String(at).padStart(2, "0")}`;
}

function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at);
}

/** The findings of lint in an input, a line each. */
async function linted(documents: readonly string[], ...words: readonly string[]): Promise<readonly string[]> {
  return linesOf((await runCommand(["lint", ...words], { input: [stream(...documents)] })).output);
}

const profile = profileText("web", "  boot: {local: exit}");
const workers = groupText("workers", "  selector: {matchLabels: {role: workers}}");

it("one MAC address at two Machines is an error at each of them", async () => {
  const lines = await linted([machineText(1), machineText(2), machineText(1, "", "twin")]);
  expect(lines).toEqual([
    "<stdin>:5:14: error: Machine default/node-1: Machine default/twin lists its mac 52:54:00:a1:9c:01, too: remove it from one of the two (duplicate-identity)",
    "<stdin>:17:14: error: Machine default/twin: Machine default/node-1 lists its mac 52:54:00:a1:9c:01, too: remove it from one of the two (duplicate-identity)",
  ]);
});

it("one MAC address at Machines of two tenants is no error", async () => {
  const inNamespace = (namespace: string) =>
    machineText(1).replace("metadata: {", `metadata: {namespace: ${namespace}, `);
  expect(await linted([inNamespace("a"), inNamespace("b")], "--admin-namespace", "infra")).toEqual([]);
});

it("a label that no Group selects is one finding for all its Machines, with the near miss", async () => {
  const machines = numbers(28).map((at) => machineText(at, "  labels: {role: worker}\n"));
  expect(await linted([profile, workers, ...machines])).toEqual([
    "<stdin>:19:12: warning: Machine default/node-0 and 27 more: no Group selects role=worker: Group default/workers " +
      "selects role=workers, so correct one of the two (unselected-label)",
  ]);
});

it("a value that is like no other is a finding, too", async () => {
  const lines = await linted([profile, workers, machineText(1, "  labels: {role: db}\n")]);
  expect(lines).toEqual([
    "<stdin>:19:12: warning: Machine default/node-1: no Group selects role=db: Group default/workers selects " +
      "role=workers, so correct one of the two, or add a Group (unselected-label)",
  ]);
});

it("a misspelt name of a label is found", async () => {
  const lines = await linted([profile, workers, machineText(1, "  labels: {rol: workers}\n")]);
  expect(lines).toEqual([
    "<stdin>:19:12: warning: Machine default/node-1: no Group selects by rol: Group default/workers selects by role, so " +
      "correct one of the two (unselected-label)",
  ]);
});

it.each([
  ["a label that a Group selects", workers, "{role: workers}"],
  ["a label about which no Group asks", workers, "{rack: r7}"],
  [
    "a label that an expression accepts",
    workers.replace(/matchLabels.*/, "matchExpressions: [{key: role, operator: Prefix, values: [w]}]}"),
    "{role: worker}",
  ],
  [
    "a label that an expression does not exclude",
    workers.replace(
      /matchLabels.*/,
      "matchExpressions: [{key: role, operator: NotIn, values: [db]}, {key: a, operator: Exists}]}",
    ),
    "{role: worker}",
  ],
])("%s is no finding", async (_, group, labels) => {
  const lines = await linted([profile, group, machineText(1, `  labels: ${labels}\n`)]);
  expect(lines.filter((line) => line.includes("unselected-label"))).toEqual([]);
});

it("a variable that one of the Machines lacks is a finding at this Machine", async () => {
  const prints = profileText("web", "  generic:\n    inline: |\n      disk {{disk}}");
  const machines = numbers(4).map((at) => {
    const metadata = at === 2 ? "" : `  metadata: {disk: /dev/sd${"abcd"[at]}}\n`;
    return machineText(at, `  labels: {role: workers}\n${metadata}`);
  });
  expect(await linted([prints, workers, ...machines])).toEqual([
    '<stdin>:35:1: error: Profile default/web for Machine default/node-2: /generic is answered 500: spec.generic, line 1, column 8: Render template: variable is not defined: "disk" (undefined-variable)',
  ]);
});

it("a variable that several Machines lack is one finding", async () => {
  const prints = profileText("web", "  generic:\n    inline: |\n      disk {{disk}}");
  const machines = numbers(4).map((at) =>
    machineText(at, `  labels: {role: workers}\n${at > 0 ? "" : "  metadata: {disk: /dev/sda}\n"}`),
  );
  const lines = await linted([prints, workers, ...machines]);
  expect(lines).toEqual([expect.stringContaining("Machine default/node-1 and 2 more: /generic is answered 500")]);
});

it("a variable that no Machine and no Group defines stays one finding, at the template", async () => {
  const prints = profileText("web", "  generic:\n    inline: |\n      disk {{disk}}");
  const lines = await linted([prints, workers, machineText(1, "  labels: {role: workers}\n")]);
  expect(lines).toEqual([expect.stringMatching(/^<stdin>:7:14: error: Profile default\/web for Group/)]);
});

const asleep = "install: {generation: 1}";

it("a grant of a Group whose Profile has no install opens nothing", async () => {
  const group = `${workers}  ${asleep}\n`;
  const lines = await linted([profile, group]);
  expect(lines).toEqual([
    "<stdin>:13:3: warning: Group default/workers: spec.install grants an install, but Profile default/web has no " +
      "install, so the grant has no effect: add spec.install to the Profile, or remove it here (useless-grant)",
  ]);
});

it("a grant of a Machine whose Profile has no install opens nothing", async () => {
  const lines = await linted([profile, workers, machineText(1, `  labels: {role: workers}\n  ${asleep}\n`)]);
  expect(lines).toEqual([
    expect.stringContaining(
      "warning: Machine default/node-1: spec.install grants an install, but Profile default/web of its Group has no " +
        "install, so the grant has no effect: add spec.install to the Profile, or remove it here (useless-grant)",
    ),
  ]);
});

const installer = profileText(
  "web",
  '  effect: Install\n  install: {then: exit, timeout: 1h}\n  boot: {kernel: k}\n  generic: {inline: "{{davit.report}}"}',
);

it("a grant with an end that is past, or too far ahead, opens nothing", async () => {
  const grant = (until: string) => `install: {generation: 1, ledger: 9f3c0a52, until: "${until}"}`;
  const inAnHour = `${new Date(Date.now() + 3_600_000).toISOString().slice(0, 19)}Z`;
  const past = machineText(1, `  labels: {role: workers}\n  ${grant("2020-01-01T00:00:00Z")}\n`);
  const open = machineText(2, `  labels: {role: workers}\n  ${grant(inAnHour)}\n`);
  const lines = await linted([installer, `${workers}  ${grant("2099-01-01T00:00:00Z")}\n`, past, open]);
  expect(lines).toEqual([
    "<stdin>:16:46: advice: Group default/workers: spec.install.until is more than seven days ahead, so the grant is asleep: set an earlier until (asleep-grant)",
    "<stdin>:24:46: advice: Machine default/node-1: spec.install.until is over: raise the generation and set a later until (asleep-grant)",
  ]);
});

it("grants of a former ledger are one finding", async () => {
  const until = (days: number) => `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 19)}Z`;
  const grant = (ledger: string, days: number) =>
    `  install: {generation: 1, ledger: "${ledger}", until: "${until(days)}"}\n`;
  const machines = numbers(3).map((at) => machineText(at, `  labels: {role: workers}\n${grant("00000000", 1)}`));
  const lines = await linted([installer, `${workers}${grant("9f3c0a52", 2)}`, ...machines]);
  expect(lines).toEqual([
    "<stdin>:24:28: advice: Machine default/node-0: spec.install.ledger is 00000000 (and in 2 more grants), but the grant of " +
      "Group default/workers, which ends later, names 9f3c0a52: davit has one ledger, so grant again by davit machine " +
      "install (other-ledger)",
  ]);
});

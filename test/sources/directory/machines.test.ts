/** Machines in files: they are read as in a cluster, and what of them counts although a file is broken or half written. */

import { describe, expect, it } from "vitest";
import type { MachineObject } from "../../../src/model/objects/source.ts";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { Holdings } from "../../../src/sources/directory/holdings.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { stream } from "./manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));
const mac = "52:54:00:a1:9c:ae";
const identity = `  identity: {macs: ["${mac}"]}`;
const grant = '  install: {generation: 2, ledger: "9f3c0a52", until: 2026-12-01T18:00:00Z}';

function machineText(...lines: readonly string[]): string {
  const head = "apiVersion: davit.dev/v1alpha1\nkind: Machine\nmetadata: {name: node-1}\n";
  return `${head}spec:\n${lines.join("\n")}\n`;
}

function read(text: string, file = "a.yaml") {
  return readFileBytes(file, Buffer.from(text), admission);
}

/** Shows these files, one look after the other. */
function showing(...looks: readonly string[]): Holdings {
  const holdings = new Holdings();
  for (const text of looks) holdings.take({ files: [read(text)], problems: [], isAtRest: true });
  return holdings;
}

function machineIn(holdings: Holdings): MachineObject | undefined {
  return holdings.get("Machine", "default", "node-1");
}

/** The first problem of a file. */
function problemOf(text: string): string {
  return read(text).problems[0]?.message ?? "";
}

describe("a Machine in a file", () => {
  it("is in view, and its name is told", () => {
    const holdings = new Holdings();
    const text = machineText(
      identity,
      "  approved: true",
      "  labels: {rack: '7'}",
      "  metadata: {ip: 192.0.2.7}",
      grant,
    );
    const { names } = holdings.take({ files: [read(text)], problems: [], isAtRest: true });
    expect(names).toEqual([{ kind: "Machine", namespace: "default", name: "node-1" }]);
    expect(machineIn(holdings)).toMatchObject({ uid: "directory/Machine/default/node-1", generation: 1 });
    expect(machineIn(holdings)?.spec).toEqual({
      identities: [`mac/${mac}`],
      approved: true,
      hold: false,
      labels: { rack: "7" },
      metadata: { ip: "192.0.2.7" },
      install: { generation: 2, ledger: "9f3c0a52", untilMs: Date.UTC(2026, 11, 1, 18), scope: "All" },
    });
  });

  it("is removed with its document", () => {
    expect(machineIn(showing(machineText(identity), "# nothing\n---\napiVersion: v1\nkind: Other\n"))).toBeUndefined();
  });

  it.each(["2026-12-01T18:00:00Z", '"2026-12-01T18:00:00Z"', "2026-12-01T20:00:00.000+02:00"])(
    "may write until as %s: YAML reads a time as text",
    (until) => {
      const spec = machineIn(showing(machineText(identity, `  install: {generation: 1, until: ${until}}`)))?.spec;
      expect(spec?.install?.untilMs).toBe(Date.UTC(2026, 11, 1, 18));
    },
  );

  it.each([
    { ledger: "12345678", problem: "spec.install.ledger (line 6): must be text: write it in quotes" },
    { ledger: "01234567", problem: "spec.install.ledger (line 6): YAML 1.1 and YAML 1.2" },
    { ledger: "1234e567", problem: "spec.install.ledger (line 6)" },
    { ledger: "9F3C0A52", problem: "spec.install.ledger (line 6): is no id of a ledger" },
  ])("is refused with the ledger $ledger", ({ ledger, problem }) => {
    const text = machineText(identity, `  install: {generation: 1, ledger: ${ledger}}`);
    const message = problemOf(text);
    expect(message.startsWith("Machine default/node-1, spec.install.ledger (line 6): ")).toBe(true);
    if (problem.includes("YAML 1.1")) expect(read(text).problems[0]?.code).toBe("unquoted-scalar");
    else expect(message).toContain(problem);
  });

  it.each([
    { what: "no identity", lines: ["  identity: {}"], problem: "a Machine has a uuid or at least one of macs" },
    {
      what: "a label that names machines",
      lines: [identity, "  labels: {serial: S1}"],
      problem: "labels never name a machine",
    },
    { what: "a label without a value", lines: [identity, "  labels: {rack: }"], problem: "a label needs a value" },
    { what: "a misspelt field", lines: [identity, "  onHold: true"], problem: "has a field that does not exist" },
    {
      what: "a scope",
      lines: [identity, "  install: {generation: 1, scope: All}"],
      problem: "has a field that does not exist",
    },
    {
      what: "a uuid that many boards share",
      lines: ['  identity: {uuid: "00000000-0000-0000-0000-000000000000"}'],
      problem: "is a UUID that many boards share, so it names no machine",
    },
    { what: "an approval in quotes", lines: [identity, '  approved: "true"'], problem: "must be true or false" },
  ])("is refused with $what", ({ lines, problem }) => {
    expect(problemOf(machineText(...lines))).toContain(problem);
  });

  it("of a misspelt API group is a mistake, not a foreign object", () => {
    const [problem] = read(machineText(identity).replace("davit.dev/", "davit.io/")).problems;
    expect(problem?.message).toContain("is not the group of Profiles, Groups and Machines");
  });
});

describe("of a Machine whose newest version is refused count", () => {
  const good = machineText(identity, "  approved: true", "  labels: {rack: '7'}", grant);

  it.each(["hold: true", "hold: yes", "hold: {}"])(
    "its %s and its identities, and neither approval nor grant",
    (hold) => {
      const bad = machineText(
        '  identity: {macs: ["52:54:00:a1:9c:af", "52:54"]}',
        "  approved: true",
        `  ${hold}`,
        grant,
      );
      const machine = machineIn(showing(good, bad));
      expect(machine?.spec).toEqual({
        identities: [`mac/${mac}`, "mac/52:54:00:a1:9c:af"],
        approved: false,
        hold: true,
        labels: { rack: "7" },
        metadata: {},
      });
      expect(machine?.refusal).toContain("Machine default/node-1");
    },
  );

  it("all again when it is repaired", () => {
    const holdings = showing(good, machineText(identity, "  approved: 1"), good);
    expect(machineIn(holdings)?.spec).toMatchObject({ approved: true, install: { generation: 2 } });
    expect(machineIn(holdings)).not.toHaveProperty("refusal");
    expect([...holdings.refusals]).toEqual([]);
  });

  it("the holds and identities of both definitions, where it is defined twice", () => {
    const other = machineText('  identity: {macs: ["52:54:00:a1:9c:af"]}', "  hold: true", "  approved: true");
    const machine = machineIn(showing(stream(good, other)));
    expect(machine?.spec).toMatchObject({
      identities: [`mac/${mac}`, "mac/52:54:00:a1:9c:af"],
      approved: false,
      hold: true,
    });
    expect(machine?.spec).not.toHaveProperty("install");
    expect(machine?.refusal).toContain("is defined a second time");
  });

  it("its refusal alone, if no identity can be read", () => {
    const holdings = showing(machineText('  identity: {macs: ["52:54"]}', "  hold: true"));
    expect(machineIn(holdings)).toBeUndefined();
    expect([...holdings.refusals]).toMatchObject([{ kind: "Machine", name: "node-1" }]);
    expect(holdings.isHalf).toBe(false);
  });
});

describe("of a Machine in a file that may be half written counts at once", () => {
  it("what makes it wait", () => {
    const whole = read(machineText(identity, "  approved: true", grant));
    const holdings = new Holdings();
    holdings.take({ files: [whole], problems: [], isAtRest: true });
    const half = { ...read(machineText(identity, "  labels: {rack: '8'}")), before: whole.definitions };
    holdings.take({ files: [half], problems: [], isAtRest: false });
    expect(machineIn(holdings)?.spec).toMatchObject({ approved: false, hold: true, labels: {} });
    expect(machineIn(holdings)?.spec).not.toHaveProperty("install");
  });
});

/** What a machine that booted `manifests/check.yaml` must have got, whatever started it and wherever it came from. */

import { expect } from "vitest";
import { quickstartMachine } from "../../tools/firmware/machine.ts";

const { mac, uuid } = quickstartMachine;

/** The Profile's first arguments, which every loader spells alike. */
export function checkArguments(authority: string): string {
  return (
    `console=ttyS0 panic=-1 davit.url=http://${authority} davit.check=1 role=web ` +
    `booted=${mac.replaceAll(":", "-")}`
  );
}

export function expectCommandLine(transcript: string, commandLine: string): void {
  expect(linesWith(transcript, "KERNEL-COMMAND-LINE")).toEqual([`KERNEL-COMMAND-LINE ${commandLine}`]);
}

/** The guest asked for its configs by its own uuid and MAC. */
export function expectOwnConfigs(transcript: string): void {
  expect(linesWith(transcript, "CHECK failed")).toEqual([]);
  expect(transcript).toContain("DAVIT-CHECK PASSED");
  expect(JSON.parse(shown(transcript, "ignition"))).toEqual({ ignition: { version: "3.4.0" }, role: "web" });
  expect(JSON.parse(shown(transcript, "generic"))).toEqual({ uuid, mac, rawQuery: `uuid=${uuid}&mac=${mac}` });
  expect(shown(transcript, "metadata").split("\n")).toEqual([
    "RACK_ROW=7",
    "ROLE=web",
    `MAC=${mac}`,
    `REQUEST_QUERY_MAC=${mac}`,
    `REQUEST_QUERY_UUID=${uuid}`,
    `REQUEST_RAW_QUERY=uuid=${uuid}&mac=${mac}`,
  ]);
}

export function linesWith(transcript: string, text: string): readonly string[] {
  return transcript.split("\n").filter((line) => line.includes(text));
}

/** What the guest showed under a name, as what it got for one of its requests. */
export function shown(transcript: string, name: string): string {
  const [, begun = ""] = transcript.split(`BEGIN ${name}\n`);
  const [text = ""] = begun.split(`\nEND ${name}\n`);
  return text.trimEnd();
}

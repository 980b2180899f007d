/** A machine that says who it is in a way that cannot be read: it never boots as one that says nothing. */

import { afterEach, describe, expect, it } from "vitest";
import { groupDocument, profileDocument } from "../boot/feed-documents.ts";
import { type BootServer, kernelBoot, startBootServer } from "./boot-server.ts";

const mac = "52:54:00:a1:9c:ae";
const uuid = "a1b2c3d4-0000-4000-8000-00000000abcd";
const everyBoards = "03000200-0400-0500-0006-000700080009";

/** A Profile and a Group of one name, which the boot script tells. */
function served(name: string, spec: Parameters<typeof groupDocument>[1]) {
  const boot = kernelBoot({ args: [`group=${name}`] });
  return [profileDocument(`lab/${name}`, { boot }), groupDocument(`lab/${name}`, { profile: name, ...spec })];
}

const wipe = served("wipe", { matchAll: true });
const byMac = served("mac", { selector: { mac } });
const bySerial = served("serial", { selector: { serial: "VMware-56 4d" } });
const byUuid = served("uuid", { selector: { uuid } });
const byHostname = served("hostname", { selector: { hostname: "node1" } });
const byPattern = served("pattern", {
  selector: {},
  expressions: [{ key: "serial", operator: "Prefix", values: ["S-"] }],
});

let server: BootServer | undefined;
afterEach(() => server?.close());

/** The name in the boot script, else the status and its text. */
async function answerOf(documents: readonly (readonly [string, string])[], query: string): Promise<string> {
  server = await startBootServer(documents);
  const { body } = await server.read(`/ipxe?${query}`);
  return /group=(\w+)/.exec(body)?.[1] ?? body.trim();
}

const all = [...wipe, ...byMac, ...bySerial, ...byUuid, ...byHostname];
const unreadable = "503 identity not readable";
const ambiguous = "503 identity ambiguous";

describe("an identity that is there but cannot be read", () => {
  it.each([
    ["a MAC with a digit missing", "mac=52-54-00-a1-9c-a", unreadable],
    ["a MAC with a letter that is no digit", "mac=52-54-00-a1-9c-ag", unreadable],
    ["a MAC with a bad escape", "mac=52-54-00-a1-9c-a%", unreadable],
    ["a MAC under a name in capitals", "MAC=525400", unreadable],
    ["a serial with a bad escape", "serial=VMware%2", unreadable],
    ["a serial with a control character inside", "serial=VMware%0056+4d", unreadable],
    ["a serial with bytes that are not UTF-8", "serial=VMware-56%ff4d", unreadable],
    ["a hostname with bytes that are not UTF-8", "hostname=node%ff", unreadable],
    ["a MAC, beside the empty values that iPXE sends", "uuid=&mac=52-54-00&domain=&hostname=&serial=", unreadable],
    ["a MAC, beside a uuid that every board has", `uuid=${everyBoards}&mac=52-54-00`, unreadable],
    ["a serial, beside a MAC that no Group names", "serial=%ff&mac=52-54-00-00-00-99", unreadable],
    ["a MAC, beside a uuid that a Group names", `uuid=${uuid}&mac=52-54-00`, "uuid"],
    ["a serial, beside a MAC that a Group names", `serial=%ff&mac=${mac}`, "mac"],
  ])("%s", async (_name, query, answer) => {
    expect(await answerOf(all, query)).toBe(answer);
  });

  it.each([
    ["a MAC, and no Group selects by mac", [...wipe, ...bySerial], "mac=52-54-00", "wipe"],
    ["a serial, and no Group selects by serial", [...wipe, ...byMac], "serial=%ff", "wipe"],
    ["a serial, and a Group selects by what it looks like", [...wipe, ...byPattern], "serial=%ff", unreadable],
    [
      "a MAC, and a Group takes all but one",
      [...wipe, ...served("others", { selector: { role: "web" }, expressions: notThisMac() })],
      "role=web&mac=52-54-00-a1-9c-a",
      unreadable,
    ],
  ])("%s", async (_name, documents, query, answer) => {
    expect(await answerOf(documents, query)).toBe(answer);
  });

  function notThisMac() {
    return [{ key: "mac", operator: "NotIn" as const, values: [mac] }];
  }
});

describe("an identity with blanks around it is the same", () => {
  it.each([
    ["mac", "mac=52-54-00-a1-9c-ae%20", "mac"],
    ["mac", "mac=+52:54:00:a1:9c:ae%0d%0a", "mac"],
    ["uuid", `uuid=%20${uuid}+`, "uuid"],
    ["serial", "serial=VMware-56+4d++", "serial"],
    ["hostname", "hostname=%09node1", "hostname"],
  ])("%s: %s", async (_name, query, answer) => {
    expect(await answerOf(all, query)).toBe(answer);
  });

  it("also where the Group has them", async () => {
    const documents = [...wipe, ...served("blank", { selector: { serial: " S-1 " } })];
    expect(await answerOf(documents, "serial=S-1")).toBe("blank");
  });
});

describe("a uuid that is nobody's", () => {
  it.each([
    ["no uuid at all", "uuid=Not%20Settable"],
    ["zeros", "uuid=00000000-0000-0000-0000-000000000000"],
    ["ones", "uuid=FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"],
    ["a vendor's", `uuid=${everyBoards.toUpperCase()}`],
    ["a bad escape", "uuid=%zz"],
    ["half of one", `uuid=${uuid.slice(0, 35)}`],
  ])("%s: the machine is one without a name", async (_name, query) => {
    expect(await answerOf(all, query)).toBe("wipe");
  });

  it("is no way to select a machine", async () => {
    const documents = [...wipe, ...served("boards", { selector: { uuid: everyBoards }, priority: 10 })];
    expect(await answerOf(documents, `uuid=${everyBoards}`)).toBe("wipe");
  });

  it("is printed as it was sent", async () => {
    server = await startBootServer(all);
    const { body } = await server.read(`/metadata?uuid=${everyBoards}`);
    expect(body).toContain(`REQUEST_QUERY_UUID=${everyBoards}\n`);
  });
});

describe("an identity that is said twice", () => {
  it.each([
    ["two MACs", `mac=${mac}&mac=52-54-00-00-00-01`, ambiguous],
    ["two MACs, and a uuid that a Group names", `uuid=${uuid}&mac=${mac}&mac=52-54-00-00-00-01`, ambiguous],
    ["an unreadable one first", `mac=bad&mac=${mac}`, ambiguous],
    ["an unreadable one behind", `serial=S&serial=%ff`, ambiguous],
    ["a bad escape behind", `serial=S&serial=%`, ambiguous],
    ["under names of other letter cases", "Serial=A&serial=B", ambiguous],
    ["an empty one beside", "serial=&serial=A", ambiguous],
    ["two uuids", `uuid=${uuid}&uuid=${uuid.replace("a1", "a2")}`, ambiguous],
    ["a uuid, and one that is nobody's", `uuid=${uuid}&uuid=${everyBoards}`, ambiguous],
    ["the same in another form", `mac=${mac}&mac=52-54-00-A1-9C-AE`, "mac"],
    ["a label that names nobody", `mac=${mac}&role=a&role=b`, "mac"],
  ])("%s", async (_name, query, answer) => {
    expect(await answerOf(all, query)).toBe(answer);
  });
});

/** The log lines of one boot have one id, which the history and the console show: at davit, and at its follower. */

import { hash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type DavitBootProcess, type DavitProcess, storeOf } from "../../tools/davit-process.ts";
import { objectsIn } from "../chart/helm.ts";
import { bootOf, type Grant, InstallWorld, ledgerId, macOf, queryOf } from "../helpers/install-world.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;

describe("the id of a boot", { timeout: limitMs }, () => {
  let world: InstallWorld;
  let davit: DavitProcess;
  let follower: DavitBootProcess;
  beforeAll(async () => {
    world = await InstallWorld.make();
    for (const name of ["wipe", "initrd"]) await writeFile(world.at("assets", name), name);
    const assets = ["--assets-dir", world.at("assets")];
    davit = await world.serve(assets);
    follower = await world.boot(...storeOf(davit), ...assets);
    const grant: Grant = { generation: 1, ledger: await ledgerId(davit) };
    await world.write({ grant });
    for (const [number, each] of [davit, follower].entries()) {
      await vi.waitUntil(async () => (await bootOf(each, 100 + number)) === "install", soon);
      // davit writes its lines some milliseconds after the answers, and the tests count them from here on.
      await vi.waitUntil(() => each.log.some(({ msg, status }) => msg === "request" && status === 200), soon);
    }
  }, limitMs);
  afterAll(() => world.stop());

  /** A request from an address of this computer. */
  async function ask(to: DavitBootProcess, address: string, path: string, form?: string): Promise<string> {
    const method = form === undefined ? "GET" : "POST";
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(new URL(path, to.bootUrl), { localAddress: address, method, agent: false }, resolve);
      asked.on("error", reject).end(form);
    });
    return await text(response);
  }

  /** The lines of requests from then on, when there are so many. */
  async function linesOf(to: DavitBootProcess, before: number, count: number): Promise<readonly JsonObject[]> {
    const requests = () => to.log.filter(({ msg }) => msg === "request").slice(before);
    await expect.poll(() => requests().length, soon).toBe(count);
    return requests();
  }

  const countOf = (to: DavitBootProcess) => to.log.filter(({ msg }) => msg === "request").length;

  it.each([
    ["davit serve", 1],
    ["davit boot", 2],
  ] as const)(
    "is in each line of %s from the script to the report, and in what people see",
    async (program, number) => {
      const to = program === "davit serve" ? davit : follower;
      const address = `127.0.0.${10 + number}`;
      const before = countOf(to);
      await ask(to, address, "/boot.ipxe");
      expect(await ask(to, address, `/ipxe?${queryOf(number)}`)).toContain("/assets/wipe");
      await ask(to, address, "/assets/wipe");
      expect(await ask(to, address, `/assets/initrd?sha256=${hash("sha256", "initrd")}`)).toBe("initrd");
      const config = await ask(to, address, `/generic?${queryOf(number)}`);
      const [reportPath = ""] = /\/report\/\S+/.exec(config) ?? [];
      expect(await ask(to, address, reportPath, "state=installed")).toBe("taken\n");
      const lines = await linesOf(to, before, 6);
      const mac = macOf(number).replaceAll("-", ":");
      const paths = ["/boot.ipxe", "/ipxe", "/assets/wipe", "/assets/initrd", "/generic", "/report"];
      expect(lines.map(({ path }) => path)).toEqual(paths);
      expect(lines.at(-1)).toMatchObject({ mac, group: "default/all", profile: "default/wipe" });
      const id = String(lines[0]?.boot);
      expect(id).toMatch(/^[0-9a-f]{8}$/);
      expect(lines.map(({ boot }) => boot)).toEqual(paths.map(() => id));
      // The writer shows what its follower hands on.
      const history = async (headers: Record<string, string>) =>
        await (await fetch(`${davit.opsUrl}/history?mac=${mac}`, { headers })).text();
      await expect.poll(() => history({}), soon).toMatch(new RegExp(`group default/all, id ${id}\\n.* -> report\\n`));
      const shown: unknown = JSON.parse(await history({ accept: "application/json" }));
      const boots = objectsIn(objectsIn(isJsonObject(shown) ? shown.machines : undefined)[0]?.boots);
      expect(boots.map(({ ids, requests }) => [ids, objectsIn(requests).map(({ boot }) => boot)])).toEqual([
        [[id], paths.map(() => id)],
      ]);
      expect(await (await fetch(`${davit.opsUrl}/console/machines/${mac}`)).text()).toContain(`, id ${id}.`);
    },
  );

  it("is of one of two machines behind one address, and of no file that either may have fetched", async () => {
    const before = countOf(davit);
    const both = [3, 4];
    for (const path of ["/boot.ipxe", "/ipxe", "/assets/wipe", "/generic"]) {
      const isNamed = path === "/ipxe" || path === "/generic";
      for (const number of both) await ask(davit, "127.0.0.20", isNamed ? `${path}?${queryOf(number)}` : path);
    }
    const lines = await linesOf(davit, before, 8);
    const idsAt = (path: string) => lines.filter((line) => line.path === path).map(({ boot }) => boot);
    const scripts = idsAt("/ipxe");
    expect(new Set(scripts).size).toBe(2);
    expect(scripts).not.toContain(undefined);
    expect(idsAt("/assets/wipe")).toEqual([undefined, undefined]);
    expect(idsAt("/generic")).toEqual(scripts);
    expect(idsAt("/boot.ipxe").some((id) => scripts.includes(id))).toBe(false);
  });
});

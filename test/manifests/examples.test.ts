/** Every example as a user starts with it: davit takes all of it, and answers what each Profile promises. */

import { beforeAll, describe, expect, it } from "vitest";
import { ExampleDavit, readExamples } from "./example-davit.ts";

const all = await readExamples();

describe("the examples", () => {
  let server: ExampleDavit;
  beforeAll(async () => {
    server = await ExampleDavit.start();
    return () => server.stop();
  }, 60_000);

  it("are all of the systems that the documents name", async () => {
    expect([...new Set(all.map(({ file }) => file))]).toEqual([
      "debian-preseed.yaml",
      "fedora-coreos.yaml",
      "flatcar.yaml",
      "kickstart.yaml",
      "talos.yaml",
      "ubuntu-autoinstall.yaml",
    ]);
  });

  it("are taken without a word of complaint", async () => {
    expect(server.davit.log.filter(({ level }) => Number(level) > 30)).toEqual([]);
    expect(await (await fetch(`${server.davit.opsUrl}/readyz?verbose`)).text()).not.toMatch(/Profile|Group/);
  });

  it("install nothing without a permit", async () => {
    for (const { labels } of all.filter(({ needsPermit }) => needsPermit)) {
      const response = await server.ask("ipxe", labels);
      expect([response.status, await response.text()]).toEqual([503, "503 no permit to install\n"]);
    }
  });

  it("install by the grants that davit machine install prints", async () => {
    const installers = all.filter(({ needsPermit }) => needsPermit);
    expect(installers.map(({ file }) => file)).toEqual([
      "debian-preseed.yaml",
      "fedora-coreos.yaml",
      "flatcar.yaml",
      "kickstart.yaml",
      "ubuntu-autoinstall.yaml",
    ]);
    await server.grant(installers);
  }, 60_000);

  it.each(all.flatMap((example) => example.endpoints.map((endpoint) => ({ ...example, endpoint }))))(
    "$file: /$endpoint for $group",
    async ({ endpoint, labels }) => {
      const response = await server.ask(endpoint, labels);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(
        {
          ipxe: /^#!ipxe\nkernel \//,
          grub: /^default=0\n/,
          ignition: /^\{/,
          cloud: /^#cloud-config\n/,
          generic: /\n$/,
          "generic/installed.ign": /^\{\n/,
          "generic/user-data": /^#cloud-config\nautoinstall:\n/,
          "generic/meta-data": /^instance-id: "ubuntu-1"\n$/,
          "generic/vendor-data": /^#cloud-config\n$/,
          "generic/network-config": /^\{\}\n$/,
        }[endpoint] ?? /^never$/,
      );
    },
  );

  it.each(all.filter(({ needsPermit }) => needsPermit))(
    "$file reports by its configs, and then boots its disk",
    async ({ endpoints, labels }) => {
      const configs = endpoints.filter((endpoint) => endpoint !== "ipxe" && endpoint !== "grub");
      const texts = await Promise.all(configs.map(async (endpoint) => (await server.ask(endpoint, labels)).text()));
      const urls = new Set(texts.flatMap((text) => text.match(/http:\/\/[^\s"]+\/report\/[\w-]+/g) ?? []));
      expect(urls.size).toBe(1);
      const [url = ""] = urls;
      const response = await fetch(`${server.davit.bootUrl}${new URL(url).pathname}`, {
        method: "POST",
        body: "state=installed",
      });
      expect(response.status).toBe(200);
      expect(await (await server.ask("ipxe", labels)).text()).toBe("#!ipxe\nexit\n");
    },
  );
});

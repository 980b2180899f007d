import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { copyLoaders, findLoaders, httpLoadersOf, loaderByFirmware } from "../../src/dhcp/loaders.ts";

let folder: string;
let loaders: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "davit-loaders-test-"));
  loaders = join(folder, "loaders");
  mkdirSync(loaders);
});

afterEach(() => rmSync(folder, { recursive: true }));

function place(...names: readonly string[]): void {
  for (const name of names) writeFileSync(join(loaders, name), name);
}

describe("loaders of --loaders-dir", () => {
  it("go before those of Debian's packages, for every kind of firmware", async () => {
    place("undionly.kpxe", "ipxe.efi", "ipxe-arm64.efi");
    const found = await findLoaders(loaders);
    expect(loaderByFirmware(found, true)).toEqual({
      x86PC: "undionly.kpxe",
      "x86-64_EFI": "ipxe.efi",
      BC_EFI: "ipxe.efi",
      ARM64_EFI: "ipxe-arm64.efi",
    });
    const http = httpLoadersOf(found).map(({ number, path }) => [number, path]);
    expect(http).toEqual([
      ["16", join(loaders, "ipxe.efi")],
      ["19", join(loaders, "ipxe-arm64.efi")],
    ]);
  });

  it("have a shim only with the GRUB that it loads, and only where dnsmasq gives addresses", async () => {
    place("snponly.efi", "shimx64.efi", "grubx64.efi");
    const found = await findLoaders(loaders);
    expect(loaderByFirmware(found, true)["x86-64_EFI"]).toBe("shimx64.efi");
    expect(loaderByFirmware(found, false)["x86-64_EFI"]).toBe("snponly.efi");
    rmSync(join(loaders, "grubx64.efi"));
    expect(loaderByFirmware(await findLoaders(loaders), true)["x86-64_EFI"]).toBe("snponly.efi");
  });

  it("are copied without anything else of the directory", async () => {
    place("undionly.kpxe", "snponly.efi", "secret.txt");
    mkdirSync(join(loaders, "grub"));
    const target = join(folder, "tftp");
    const found = await findLoaders(loaders);
    await copyLoaders(found, target);
    expect(readdirSync(target).toSorted()).toEqual(found.map(({ name }) => name).toSorted());
    expect(readdirSync(target)).not.toContain("secret.txt");
    expect(statSync(join(target, "undionly.kpxe")).size).toBe("undionly.kpxe".length);
  });

  it("may be links inside the directory", async () => {
    place("own.efi");
    symlinkSync("own.efi", join(loaders, "snponly.efi"));
    const found = await findLoaders(loaders);
    expect(found).toContainEqual({ name: "snponly.efi", path: join(loaders, "own.efi"), isGiven: true });
  });

  it.each([
    ["a link out of the directory", () => symlinkSync("/etc/passwd", join(loaders, "snponly.efi")), "it leads out of"],
    ["a relative link out of it", () => symlinkSync("../outside", join(loaders, "snponly.efi")), "it leads out of"],
    ["a directory", () => mkdirSync(join(loaders, "snponly.efi")), "regular file"],
    ["an empty file", () => writeFileSync(join(loaders, "snponly.efi"), ""), "regular file"],
    [
      "a huge file",
      () => {
        place("snponly.efi");
        truncateSync(join(loaders, "snponly.efi"), 33 * 1024 * 1024);
      },
      "regular file",
    ],
  ])("are refused: %s", async (_name, make, told) => {
    writeFileSync(join(folder, "outside"), "outside");
    make();
    await expect(findLoaders(loaders)).rejects.toThrow(told);
  });
});

import { describe, expect, it } from "vitest";
import { assetsIn } from "../../src/render/boot/named-assets.ts";

const urls = ["http://192.0.2.1:8080", "https://192.0.2.1:8443"];
const named = (text: string) =>
  assetsIn(text, urls).map(({ location, mayBeDirectory }) => (mayBeDirectory ? `${location} or below` : location));

describe("the files that a script names", () => {
  it.each([
    ["kernel /assets/linux quiet", ["/assets/linux"]],
    ["initrd --name a /assets/dir/a?sha256=0f mode=755", ["/assets/dir/a?sha256=0f"]],
    ["kernel http://192.0.2.1:8080/assets/linux#x", ["/assets/linux"]],
    ["kernel https://192.0.2.1:8443/assets/linux", ["/assets/linux"]],
    ['linux "(http,192.0.2.1:8080)/assets/linux" "quiet"', ["/assets/linux"]],
    [
      "linuxefi (http;192.0.2.1:8080)/assets/linux; initrdefi (http)/assets/initrd",
      ["/assets/linux", "/assets/initrd"],
    ],
    ["kernel a rootfs=http://192.0.2.1:8080/assets/root.img", ["/assets/root.img or below"]],
    [
      "x='a=http://192.0.2.1:8080/assets/a,b=https://192.0.2.1:8443/assets/b/'",
      ["/assets/a or below", "/assets/b/ or below"],
    ],
  ])("%s", (text, expected) => {
    expect(named(text)).toEqual(expected);
  });

  it.each([
    "# kernel /assets/linux",
    `kernel /assets/\${buildarch}/linux`,
    `kernel a root=http://192.0.2.1:8080/assets/\${arch}.img`,
    "kernel http://192.0.2.9/assets/linux root=http://192.0.2.1:80800/assets/x",
    "linux (http,192.0.2.9)/assets/linux",
    "linux (tftp,192.0.2.1:8080)/assets/linux",
    "kernel /images/assets/linux config=/assets/x",
    "kernel http://192.0.2.1:8080/ignition",
    "exit",
  ])("are none in: %s", (text) => {
    expect(named(text)).toEqual([]);
  });
});

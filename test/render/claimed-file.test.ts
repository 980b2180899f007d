import { describe, expect, it } from "vitest";
import { scriptWithClaim, withClaim } from "../../src/render/boot/claimed-file.ts";

const davitUrl = "http://192.0.2.1:8080";
const claimed = (...files: string[]) => withClaim(files, "T", davitUrl);

describe("a claim in the URL of a file", () => {
  it.each([
    { files: ["/assets/k"], expected: ["/assets/k?claim=T"] },
    { files: ["/assets/k", "/assets/a", "/assets/b"], expected: ["/assets/k", "/assets/a", "/assets/b?claim=T"] },
    { files: ["/assets/k", "http://other/assets/i"], expected: ["/assets/k", "http://other/assets/i"] },
    { files: [`${davitUrl}/assets/k?sha256=1`], expected: [`${davitUrl}/assets/k?sha256=1&claim=T`] },
    {
      files: ["/assets/k", "--name /assets/i /assets/i"],
      expected: ["/assets/k", "--name /assets/i /assets/i?claim=T"],
    },
    { files: ["/assets/k", "/assets/i /etc/i mode=755"], expected: ["/assets/k", "/assets/i?claim=T /etc/i mode=755"] },
    { files: ["/assets/k#x", "/assetsx/i"], expected: ["/assets/k#x", "/assetsx/i"] },
  ])("is in the last one, if it is one of davit's assets: $files", ({ files, expected }) => {
    expect(claimed(...files)).toEqual(expected);
  });

  it("leaves the other lines of a script as they are", () => {
    const script = "#!ipxe\nset x initrd /assets/x\nkernel /assets/k root=/assets/i\ninitrd /assets/i\nboot\n";
    const expected = script.replace("initrd /assets/i\nboot", "initrd /assets/i?claim=T\nboot");
    expect(scriptWithClaim(script, "T", davitUrl)).toBe(expected);
    const alone = "#!ipxe\nkernel /assets/k root=/assets/k\nboot\n";
    expect(scriptWithClaim(alone, "T", davitUrl)).toBe("#!ipxe\nkernel /assets/k?claim=T root=/assets/k\nboot\n");
  });
});

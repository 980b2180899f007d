import { describe, expect, it } from "vitest";
import { withoutToken } from "../../src/http/exchange.ts";

const token = "q83vEjRWeJq8t_4Vw9Qm2h-AbCdEfGhI";

describe("a logged path has no report token", () => {
  it.each([
    ...["/report/T", "/%72eport/T", "/report%2FT", "/REPORT/T", "//report/T", "/./report/T", "/assets/../report/T"],
    ...["http://x/report/T", "http://x//report/T", "https://a:b@c/report/T", "ftp://x/report/T", "/x/report/T"],
    ...[
      "/report;a/T",
      "/%2freport/T",
      "/%252freport/T",
      "/%25252freport/T",
      "/report/T/",
      "/report/T/..",
      "/report//T",
    ],
    ...["/report/%00T", "/generic/report/T", "/report.sig/T", "/report/T.sig", "/\\report/T", "/report\\T"],
    ...["/ipxe/../report/T", "/rep%6frt/T", "/%ff/report/T", "/report/%zzT", "*/report/T", "/%2e/report/T"],
    ...["/report%3f/T", "x/report/T", "report/T", "/T", "/x/T", "/reports/T", "/rep0rt/T", "/reportT", "/re/port/T/x"],
    ...["/assets/report/T", "/report%/T", "/generic/T", "/ipxe/T", "/report/T%2f%2f", "/x%2FT"],
  ])("%s", (spelling) => {
    expect(withoutToken(spelling.replace("T", token))).not.toContain(token);
    const escapes = [...token].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join("");
    expect(decodeAll(withoutToken(spelling.replace("T", escapes)))).not.toContain(token);
    // A token that a slash splits is known as well.
    expect(withoutToken(`/report/${token.slice(0, 9)}/${token.slice(9)}`)).not.toContain(token.slice(9));
  });

  it.each([
    ...["/ipxe", "/generic/join", "/", "/boot.ipxe", "/assets/os/vmlinuz-6.1.0-21-amd64", "/assets/a%20b"],
    ...["/assets/d41d8cd98f00b204e9800998ecf8427e/initrd", "/assets/reports.img", "/x/52:54:00:aa:bb:cc"],
    ...["/x/a1b2c3d4-0000-4000-8000-123456789abc", "/assets/ubuntu-22-04-live-server-amd64-kernel"],
  ])("and %s stays", (path) => {
    expect(withoutToken(path)).toBe(path);
  });
});

function decodeAll(path: string): string {
  return path.replaceAll(/%[0-9a-f]{2}/gi, (each) => String.fromCharCode(Number.parseInt(each.slice(1), 16)));
}

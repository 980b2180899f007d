import { describe, expect, it } from "vitest";
import { locationFinding } from "../../src/controller/reconcile/resolve-profile.ts";

describe("the location of a kernel or initrd", () => {
  it.each([
    "/assets/vmlinuz",
    "vmlinuz",
    "http://192.0.2.1/vmlinuz",
    "https://[2001:db8::1]:8443/vmlinuz?a=b",
    "HTTP://boot.example.com",
    "--name initrd http://boot.example.com/initrd",
    "http://{{host}}/vmlinuz",
    `http://\${next-server}/vmlinuz`,
    "tftp:///vmlinuz",
    "(http)/vmlinuz",
  ])("may be %s", (text) => {
    expect(locationFinding(text)).toBeUndefined();
  });

  it.each([
    { text: "http://" },
    { text: "http:///vmlinuz" },
    { text: "http:/boot.example.com/vmlinuz" },
    { text: "https:boot.example.com/vmlinuz" },
    { text: "http://boot.example.com:99999/vmlinuz" },
    { text: "http://[2001:db8::1/vmlinuz" },
    { text: "--name initrd http:///initrd" },
  ])("is told of $text", ({ text }) => {
    expect(locationFinding(text)).toMatchObject({ type: "Accepted", reason: "InvalidURL", code: "invalid-url" });
  });
});

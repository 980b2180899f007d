import { expect, it } from "vitest";
import { connectionsWithin, maxOpenFiles, openFilesIn } from "../src/app/core/open-files.ts";

it("reads the limit that counts now, not the one up to which it could be raised", () => {
  const limits = [
    "Limit                     Soft Limit           Hard Limit           Units     ",
    "Max processes             96414                96414                processes ",
    "Max open files            1024                 524288               files     ",
  ];
  expect(openFilesIn(limits.join("\n"))).toBe(1024);
});

it.each(["Max open files            unlimited            unlimited            files     ", ""])(
  "tells of no limit in %j",
  (limits) => {
    expect(openFilesIn(limits)).toBeUndefined();
  },
);

it("is a number of files or unknown", () => {
  expect(maxOpenFiles() ?? 1).toBeGreaterThan(0);
});

it("leaves the files of each server for machines out of its connections", () => {
  // Eight threads with HTTP and HTTPS. The machines may take 429 files.
  expect(connectionsWithin(1_024, "boot", 16)).toBe(10);
  expect(connectionsWithin(1_024, "boot", 1)).toBe(413);
  expect(connectionsWithin(64, "boot", 128)).toBe(1);
  expect(connectionsWithin(1_024, "store", 1)).toBe(256);
});

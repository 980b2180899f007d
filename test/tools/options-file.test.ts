/** The options file of the Debian package. */

import { expect, it } from "vitest";
import { optionsFile } from "../../tools/packaging/options-file.ts";

it("has each option once, as a comment, with the default that davit.service sets, or that of davit", () => {
  const lines = optionsFile().split("\n");
  expect(lines.filter((line) => line !== "" && !line.startsWith("#"))).toEqual([]);
  const rows = lines.filter((line) => line.startsWith("#DAVIT_"));
  expect(rows).toContain("#DAVIT_DATA_DIR=/var/lib/davit/data");
  expect(rows).toContain("#DAVIT_STORE_ADDRESS=127.0.0.1:2379");
  // The package makes this file.
  expect(rows).toContain("#DAVIT_OPS_TOKEN_FILE=/etc/davit/ops-token");
  expect(new Set(rows.map((row) => row.split("=", 1)[0])).size).toBe(rows.length);
});

import { readVersion } from "../version.ts";
import type { Command } from "./host.ts";

/** Prints the version. */
export const version: Command = {
  name: "version",
  summary: "print the version",
  run: async (_args, host) => {
    host.write(`davit ${readVersion()}\n`);
    return 0;
  },
};

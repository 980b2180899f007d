/** `davit preview`: what a machine would get now, and why, as the operations listener answers it. */

import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { readOperations, readOperationsText } from "../machine/operations.ts";
import { machineHelp, operationsOptions, outputOptions, readMachineOptions } from "../machine/options.ts";
import { pairOf } from "./history.ts";

const previewOptions = { ...operationsOptions, ...outputOptions };

export const preview = workCommand({
  name: "preview",
  endsAtOnce: true,
  help: () =>
    machineHelp(
      "preview [MAC|UUID|LABEL=VALUE]...",
      "Shows which Group a machine with these labels gets, and why. davit render does it without a server.",
      previewOptions,
    ),
  readConfig: (args, environment, paths) => {
    const { words, values, problems } = readMachineOptions(previewOptions, args, environment, paths);
    const pairs = words.map(pairOf);
    for (const [at, word] of words.entries())
      if (pairs[at] === undefined) problems.push(`Bad label "${word}": give MAC, UUID or LABEL=VALUE`);
    const query = new URLSearchParams(pairs.filter((pair) => pair !== undefined)).toString();
    return configWithout(problems, { ...values, query });
  },
  work: async ({ query, output, ...operations }, host) => {
    const path = `/preview?${query}`;
    host.write(
      output === "json"
        ? `${JSON.stringify(await readOperations(operations, path), undefined, 2)}\n`
        : await readOperationsText(operations, path),
    );
    return 0;
  },
});

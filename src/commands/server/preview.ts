/** `davit preview`: what a machine would get now, and why, as the operations listener answers it. */

import { configWithout } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { readOperations, readOperationsText } from "../machine/operations.ts";
import { machineHelp, operationsOptions, outputOptions, readMachineOptions } from "../machine/options.ts";
import { askedPairs, isQuestion } from "./history.ts";

const previewOptions = { ...operationsOptions, ...outputOptions };

export const preview = workCommand({
  name: "preview",
  endsAtOnce: true,
  help: machineHelp(
    "preview [MAC|UUID|[NAMESPACE/]NAME|SERIAL|LABEL=VALUE]...",
    "Shows which Group a machine with these labels gets, and why. davit render does it without a server.",
    previewOptions,
  ),
  readConfig: (args, environment, paths) => {
    const { words: given, values, problems } = readMachineOptions(previewOptions, args, environment, paths);
    const words = given.flatMap(labelsOfQuery);
    const bad = words.find((word) => !isQuestion(word));
    if (bad !== undefined) problems.push(`Bad label "${bad}": give a machine's name, or LABEL=VALUE`);
    return configWithout(problems, { ...values, words });
  },
  work: async ({ words, output, ...operations }, host) => {
    const query = new URLSearchParams(await askedPairs(operations, words, (labels) => [...labels])).toString();
    const path = `/preview?${query}`;
    host.write(
      output === "json"
        ? `${JSON.stringify(await readOperations(operations, path), undefined, 2)}\n`
        : await readOperationsText(operations, path),
    );
    return 0;
  },
});

/** Splits a query with several labels, such as a copied one, into its labels. Every other word stays. */
function labelsOfQuery(word: string): readonly string[] {
  const isQuery = /^\??[^\s=&?]+=[^&]*(?:&[^\s=&]+=[^&]*)+$/.test(word);
  return isQuery ? [...new URLSearchParams(word)].map(([name, value]) => `${name}=${value}`) : [word];
}

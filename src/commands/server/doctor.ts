/** `davit doctor`: asks the DHCP servers of a network as firmware does, and shows what machines would get. */

import { askNetwork } from "../../dhcp/ask.ts";
import { answerProblems, answerRows, firmwareKinds } from "../../dhcp/findings.ts";
import { deviceAddresses, networkOf } from "../../dhcp/network.ts";
import { systemClock } from "../../lib/clock.ts";
import { random } from "../../lib/ports.ts";
import { readInterfaceName } from "../../options/dhcp.ts";
import type { Option } from "../../options/parsing.ts";
import { one } from "../../options/readers.ts";
import { configWithout, readOptions } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";
import { paintOf, textTable } from "../core/paint.ts";

const doctorOptions = {
  interface: {
    flag: "interface",
    value: "NAME",
    required: "No network to ask: give --interface NAME, such as eth1",
    help: "network interface of the machines",
    read: one(readInterfaceName),
  } satisfies Option<string>,
};

/** A server may ping an address for 3 s before it offers it. */
const waitMs = 6_000;

export const doctor = workCommand({
  name: "doctor",
  endsAtOnce: true,
  help: {
    usage: "doctor --interface NAME",
    purpose: "Asks DHCP as firmware does, and shows what each server answers. It needs root, for UDP port 68.",
    options: doctorOptions,
    notes: ["It takes no address. Exit code 0: machines can boot. 1: what is wrong is printed."],
  },
  readConfig: (args, _environment, paths) => {
    // A variable such as DAVIT_INTERFACE could choose the network by accident.
    const { values, problems } = readOptions(doctorOptions, args, {}, paths);
    return configWithout(problems, values);
  },
  work: async ({ interface: device }, host) => {
    const { address } = networkOf(device, "--interface", await deviceAddresses());
    host.writeError(`Asking on ${device} from ${address}, for ${waitMs / 1_000} s ...\n`);
    const answers = await askNetwork({ address, kinds: firmwareKinds, waitMs, clock: systemClock, random });
    const columns = ["FIRMWARE", "ANSWERED BY", "ADDRESS", "BOOTS"];
    host.write(textTable({ columns, rows: answerRows(answers), paint: paintOf(host) }));
    const problems = answerProblems(answers);
    for (const problem of problems) host.write(`${problem}\n`);
    return problems.length === 0 ? 0 : 1;
  },
});

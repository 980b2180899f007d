import { BootApp } from "../../app/boot-app.ts";
import { bootHelp, readBootConfig } from "../../options/serve.ts";
import type { CliCommand } from "../core/host.ts";
import { runServing } from "./run-app.ts";
import { welcomeOfBoot } from "./welcome.ts";

/** `davit boot`: runs only the boot service, which follows the store of another davit. */
export const boot: CliCommand = {
  run: (args, host) =>
    runServing(
      {
        name: "boot",
        help: bootHelp,
        readConfig: readBootConfig,
        jobs: ["render"],
        createApp: (options) => new BootApp(options),
        welcome: welcomeOfBoot,
      },
      args,
      host,
    ),
};

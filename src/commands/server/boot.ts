import { BootApp } from "../../app/boot-app.ts";
import { bootHelp, readBootConfig } from "../../options/serve.ts";
import { servingCommand } from "./run-app.ts";
import { welcomeOfBoot } from "./welcome.ts";

/** `davit boot`: runs only the boot service, which follows the store of another davit. */
export const boot = servingCommand({
  name: "boot",
  help: bootHelp,
  readConfig: readBootConfig,
  jobs: ["render"],
  createApp: (options) => new BootApp(options),
  welcome: welcomeOfBoot,
});

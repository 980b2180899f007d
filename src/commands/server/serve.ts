import { App } from "../../app/app.ts";
import { readServeConfig, serveHelp } from "../../options/serve.ts";
import { servingCommand } from "./run-app.ts";
import { welcome } from "./welcome.ts";

/** `davit serve`: runs everything in one process: a source, the controller, the store and the boot service. */
export const serve = servingCommand({
  name: "serve",
  help: serveHelp,
  readConfig: readServeConfig,
  jobs: ["render", "trial", "attempt"],
  createApp: (options) => new App(options),
  welcome,
});

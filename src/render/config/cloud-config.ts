/** cloud-config: the user data of cloud-init. Deprecated in the contract, so davit only checks it. */

import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { parseYaml } from "./yaml.ts";

/**
 * Checks a cloud-config, rendered or raw. A script (`#!`) is served unread.
 * @throws {RenderError} for another first line, and for a cloud-config that is not YAML.
 */
export function renderCloudConfig(text: string): Rendered {
  if (!text.startsWith("#!")) {
    if (!/^#cloud-config[ \t]*(?:\r?\n|$)/.test(text)) throw new RenderError("noCloudConfigLine");
    // cloud-init itself uses the last value of a repeated key.
    parseYaml(text, "notYaml", false);
  }
  return { body: text, contentType: plainText };
}

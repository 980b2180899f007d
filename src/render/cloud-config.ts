/** cloud-config: what cloud-init reads as user data. Deprecated in the contract, so checked and nothing more. */

import { RenderError } from "./render-error.ts";
import { plainText, type Rendered } from "./rendered.ts";
import { parseYaml } from "./yaml.ts";

/**
 * Checks a cloud-config, rendered or raw. A script (`#!`) is served unread.
 * @throws {RenderError} for another first line, and for a cloud-config that is not YAML.
 */
export function renderCloudConfig(text: string): Rendered {
  if (!text.startsWith("#!")) {
    if (!/^#cloud-config[ \t]*(?:\r?\n|$)/.test(text)) throw new RenderError("noCloudConfigLine");
    // cloud-init itself takes the last of a key given twice.
    parseYaml(text, "notYaml", false);
  }
  return { body: text, contentType: plainText };
}

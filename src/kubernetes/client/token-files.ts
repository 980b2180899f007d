/**
 * Tokens that a kubeconfig names by file, in the field `tokenFile` of a user. The client package ignores that field, so
 * its requests would be anonymous. The file takes precedence over an inline token, and is read again every minute, as
 * client-go does (tools/clientcmd/api/v1/types.go, AuthInfo).
 */

import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { isJsonObject } from "../../model/json.ts";

/**
 * Makes the users of a loaded kubeconfig use the tokens of the files that they name.
 * @throws the error of reading the file.
 */
export function useTokenFiles(config: KubeConfig, file: string): void {
  const files = tokenFilesOf(readFileSync(file, "utf8"));
  config.users = config.users.map((user) => {
    const tokenFile = files.get(user.name);
    if (tokenFile === undefined) return user;
    const { token: _, ...others } = user;
    return { ...others, authProvider: { name: "tokenFile", config: { tokenFile: resolve(dirname(file), tokenFile) } } };
  });
}

/** Token files by user name. */
function tokenFilesOf(text: string): ReadonlyMap<string, string> {
  const config: unknown = parse(text);
  const users: readonly unknown[] = isJsonObject(config) && Array.isArray(config.users) ? config.users : [];
  const files = new Map<string, string>();
  for (const entry of users) {
    const { name, user } = isJsonObject(entry) ? entry : {};
    const tokenFile = isJsonObject(user) ? user.tokenFile : undefined;
    if (typeof name === "string" && typeof tokenFile === "string" && tokenFile !== "") files.set(name, tokenFile);
  }
  return files;
}

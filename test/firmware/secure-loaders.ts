/** shim and GRUB for Secure Boot, made by the commands of docs/use/secure-boot.md. */

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { blocksOf, readPage } from "../helpers/page-examples.ts";
import { type Trust, writeSecureVariables } from "./secure-variables.ts";

export interface SecureLoaders {
  /** Has `shimx64.efi` and what shim loads from beside it. */
  readonly directory: string;
  /** The image that the team's key has not signed. */
  readonly unsignedGrub: string;
  /** The machine's variables, in which the team's certificate is trusted, or nobody's but Microsoft's. */
  variables(trust?: Trust): string;
  /** Signs a kernel by the team's key, in place. */
  sign(kernel: string): void;
  /** Builds GRUB anew: it verifies what it loads by the key in this file. */
  enforce(publicKeyFile: string): void;
}

/**
 * Runs the page's commands.
 * @param folder for keys and images.
 * @param authority `host:port` of davit's boot service, as machines reach it.
 */
export function makeSecureLoaders(folder: string, authority: string): SecureLoaders {
  const directory = join(folder, "loaders");
  mkdirSync(directory);
  const run = (kind: string) => {
    const commands = blocksOf(readPage("use/secure-boot.md"), kind).join("\n");
    const placed = commands.replaceAll("DAVIT:8080", authority).replaceAll("/srv/davit/assets", directory);
    execFileSync("bash", ["-eu", "-c", placed], { cwd: folder, stdio: "pipe" });
  };
  run("sh");
  return {
    directory,
    unsignedGrub: join(folder, "grub.efi"),
    variables: (trust) => {
      const file = join(folder, `${trust ?? "microsoft"}.fd`);
      writeSecureVariables(file, trust, readFileSync(join(folder, "grub.der")));
      return file;
    },
    sign: (kernel) => {
      const words = ["--key", "grub.key", "--cert", "grub.crt", "--output", kernel, kernel];
      execFileSync("sbsign", words, { cwd: folder, stdio: "pipe" });
    },
    enforce: (publicKeyFile) => {
      copyFileSync(publicKeyFile, join(folder, "signing-key.gpg"));
      run("sh enforce");
      copyFileSync(join(folder, "grubx64.efi"), join(directory, "grubx64.efi"));
    },
  };
}

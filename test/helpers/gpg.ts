/** Keys and verification by the `gpg` program; suites that use it ask `missing("gpg")`. */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface KeyOptions {
  /** As gpg names them: `rsa3072`, `nistp256`, `ed25519`, `dsa2048`. */
  readonly algorithm: string;
  readonly usage?: "sign" | "cert" | "encr";
  readonly passphrase?: string;
  /** Such as `2d`; never unless given. */
  readonly lifetime?: string;
  /** What the clock says when it is made, such as `20200101T000000`. */
  readonly madeAt?: string;
}

interface ExportOptions {
  readonly armor?: boolean;
  /** Leaves the secret of the primary key out. */
  readonly subkeysOnly?: boolean;
  readonly passphrase?: string;
}

export interface Verdict {
  readonly isGood: boolean;
  /** Of the key that signed: the primary key's when a subkey signed. Undefined without a good signature. */
  readonly fingerprint: string | undefined;
}

/** A keyring of its own, with gpg's agent behind it; `stop` ends and removes both. */
export class Gpg {
  // The agent's socket is below it, and its path may not be long.
  readonly home = mkdtempSync(join(tmpdir(), "gpg-"));

  /** @returns the fingerprint. @param name the user id. */
  makeKey(name: string, { usage = "sign", ...options }: KeyOptions): string {
    const { algorithm, lifetime = "never" } = options;
    const status = this.#run([...secretWords(options), "--quick-gen-key", name, algorithm, usage, lifetime]).toString();
    return /^\[GNUPG:\] KEY_CREATED . (\w{40})/m.exec(status)?.[1] ?? "";
  }

  addSubkey(fingerprint: string, { usage = "sign", ...options }: KeyOptions): void {
    const { algorithm, lifetime = "never" } = options;
    this.#run([...secretWords(options), "--quick-add-key", fingerprint, algorithm, usage, lifetime]);
  }

  /** Says that the key is not to be used any more. */
  revoke(fingerprint: string): void {
    const path = join(this.home, "openpgp-revocs.d", `${fingerprint}.rev`);
    // gpg writes the certificate so that nobody imports it by mistake.
    const certificate = readFileSync(path, "utf8").replace(":-----BEGIN", "-----BEGIN");
    this.#run(["--import"], certificate);
  }

  /** @param fingerprints several keys make one file. */
  exportSecret(fingerprints: string | readonly string[], options: ExportOptions = {}): Buffer {
    const { armor = false, subkeysOnly = false } = options;
    const command = subkeysOnly ? "--export-secret-subkeys" : "--export-secret-keys";
    return this.#run([...secretWords(options), ...(armor ? ["--armor"] : []), command, ...[fingerprints].flat()]);
  }

  exportPublic(fingerprint: string): Buffer {
    return this.#run(["--export", fingerprint]);
  }

  import(keys: string | Buffer): void {
    this.#run(["--import"], keys);
  }

  /** Signs a file; the signature is beside it, with `.sig` at the end. */
  signFile(path: string): void {
    this.#run(["--detach-sign", "--yes", "--output", `${path}.sig`, path]);
  }

  /** What `gpg --verify SIGNATURE FILE` says. */
  verify(signature: Buffer, content: Buffer): Verdict {
    const [signatureFile, contentFile] = [join(this.home, "verified.sig"), join(this.home, "verified")];
    writeFileSync(signatureFile, signature);
    writeFileSync(contentFile, content);
    const { status, stdout } = spawnSync("gpg", [...this.#always(), "--verify", signatureFile, contentFile], {
      encoding: "utf8",
    });
    const [, primary] = /^\[GNUPG:\] VALIDSIG (?:\S+ ){9}(\w{40})$/m.exec(stdout) ?? [];
    return { isGood: status === 0 && /^\[GNUPG:\] GOODSIG /m.test(stdout), fingerprint: primary };
  }

  /** The packets of a signature, in gpg's words. */
  packetsOf(signature: Buffer): string {
    return this.#run(["--list-packets"], signature).toString();
  }

  stop(): void {
    execFileSync("gpgconf", ["--homedir", this.home, "--kill", "all"], { stdio: "ignore" });
    rmSync(this.home, { recursive: true, force: true });
  }

  #always(): readonly string[] {
    return ["--homedir", this.home, "--batch", "--quiet", "--no-tty", "--status-fd", "1", "--trust-model", "always"];
  }

  /** @throws {Error} with what gpg says. */
  #run(args: readonly string[], input: string | Buffer = ""): Buffer {
    const status = args.some((word) => word.startsWith("--export")) ? ["--status-fd", "2"] : [];
    return execFileSync("gpg", [...this.#always(), ...status, ...args], { input, stdio: ["pipe", "pipe", "pipe"] });
  }
}

function secretWords({ passphrase = "", madeAt }: { readonly passphrase?: string; readonly madeAt?: string }) {
  // The mark stops the clock: else a key that took a second to make is of the future to the next command.
  const time = madeAt === undefined ? [] : ["--faked-system-time", `${madeAt}!`];
  return [...time, "--pinentry-mode", "loopback", "--passphrase", passphrase];
}

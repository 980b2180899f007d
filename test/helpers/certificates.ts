/** Certificates for tests, made by the `openssl` program; suites that use them ask `missing("openssl")`. */

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate and its key: paths of PEM files. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface Certificate extends CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

interface IssueOptions {
  readonly isExpired?: boolean;
  /** In the form of OpenSSL; the hosts below unless given. */
  readonly hosts?: string;
}

/** Signs certificates for `127.0.0.1` and `localhost`. */
export interface Authority {
  readonly certFile: string;
  readonly cert: string;
  /** @param name distinguishes the files. */
  issue(name: string, options?: IssueOptions): Certificate;
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/** Makes an authority whose files are below a folder. */
export function makeAuthority(folder: string, name = "authority"): Authority {
  const home = join(folder, name);
  mkdirSync(home, { recursive: true });
  const file = (base: string) => join(home, base);
  openssl("req", "-x509", ...newKey, "-keyout", file("ca.key"), "-out", file("ca.pem"), "-subj", `/CN=${name}`);
  return {
    certFile: file("ca.pem"),
    cert: readFileSync(file("ca.pem"), "utf8"),
    issue: (leaf, { isExpired = false, hosts = "IP:127.0.0.1,DNS:localhost" } = {}) => {
      writeFileSync(file("leaf.ext"), `basicConstraints=critical,CA:FALSE\nsubjectAltName=${hosts}\n`);
      const [certFile, keyFile, request] = [file(`${leaf}.pem`), file(`${leaf}.key`), file(`${leaf}.csr`)];
      openssl("req", "-new", ...newKey, "-keyout", keyFile, "-out", request, "-subj", `/CN=${leaf}`);
      const by = ["-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-extfile", file("leaf.ext")];
      openssl("x509", "-req", "-in", request, "-out", certFile, ...by, "-days", isExpired ? "-1" : "2");
      return { certFile, keyFile, cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
    },
  };
}

function openssl(...args: readonly string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}

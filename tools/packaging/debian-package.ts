/** The Debian package, by dpkg-deb alone. */

import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { copy, type Processor, run, setModes } from "./files.ts";
import { manPage } from "./man-page.ts";
import { optionsFile } from "./options-file.ts";

interface Contents {
  readonly version: string;
  readonly epochSeconds: number;
  readonly output: string;
  readonly processor: Processor;
  /** The directory with davit and Node. */
  readonly tree: string;
}

const scripts = ["postinst", "prerm", "postrm"];

/** @returns the path of the package. */
export async function debianPackage({ version, epochSeconds, output, processor, tree }: Contents): Promise<string> {
  const architecture = processor === "x64" ? "amd64" : processor;
  const path = join(output, `davit_${version}_${architecture}.deb`);
  const folder = join(output, `.deb-${architecture}`);
  const write = (name: string, text: string | Buffer) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  copy(tree, join(folder, "usr/lib/davit"));
  mkdirSync(join(folder, "usr/bin"), { recursive: true });
  symlinkSync("../lib/davit/bin/davit", join(folder, "usr/bin/davit"));
  copy(join(import.meta.dirname, "debian/davit.service"), join(folder, "usr/lib/systemd/system/davit.service"));
  copy(join(import.meta.dirname, "debian/dhcp.conf"), join(folder, "usr/share/doc/davit/dhcp.conf"));
  write("etc/davit/davit.env", optionsFile());
  mkdirSync(join(folder, "etc/davit/objects"));
  const date = new Date(epochSeconds * 1000).toISOString().slice(0, 10);
  write("usr/share/man/man1/davit.1.gz", gzipSync(await manPage(version, date), { level: 9 }));
  const script = (shell: string) =>
    run("node_modules/.bin/node", join(tree, "dist/bundle/main.js"), "completion", shell);
  write("usr/share/bash-completion/completions/davit", `${script("bash")}\n`);
  // zsh loads the file at the first completion, which the last line answers.
  const first = "_bash_complete -o filenames -F _davit";
  write("usr/share/zsh/vendor-completions/_davit", `#compdef davit\n${script("zsh")}\n${first}\n`);
  write("usr/share/fish/vendor_completions.d/davit.fish", `${script("fish")}\n`);
  const licenses = readFileSync(join(tree, "NOTICES"), "utf8");
  write(
    "usr/share/doc/davit/copyright",
    `davit is under the Apache License 2.0: see /usr/lib/davit/LICENSE.\n\n${licenses}\n`,
  );
  symlinkSync("../../../lib/davit/manifests", join(folder, "usr/share/doc/davit/examples"));
  write("DEBIAN/control", control(version, architecture, Math.ceil(bytesBelow(folder) / 1024)));
  write("DEBIAN/conffiles", "/etc/davit/davit.env\n");
  write("DEBIAN/md5sums", md5sums(folder));
  for (const name of scripts) copy(join(import.meta.dirname, "debian", name), join(folder, "DEBIAN", name));
  setModes(folder);
  const programs = [...scripts.map((name) => `DEBIAN/${name}`), "usr/lib/davit/bin/davit", "usr/lib/davit/bin/node"];
  for (const name of programs) chmodSync(join(folder, name), 0o755);
  for (const name of ["etc/davit", "etc/davit/objects"]) chmodSync(join(folder, name), 0o750);
  chmodSync(join(folder, "etc/davit/davit.env"), 0o640);
  // dpkg-deb sets no time later than this one, and the copies are all later.
  process.env.SOURCE_DATE_EPOCH = String(epochSeconds);
  run("dpkg-deb", "--build", "--root-owner-group", "--uniform-compression", "-Zgzip", "-z6", folder, path);
  rmSync(folder, { recursive: true });
  return path;
}

// What Node 24 needs: glibc 2.28 and the C++ library of GCC 5.
function control(version: string, architecture: string, kibibytes: number): string {
  return `Package: davit
Version: ${version}
Architecture: ${architecture}
Maintainer: The davit authors <davit@davit.invalid>
Installed-Size: ${kibibytes}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6, passwd
Recommends: ca-certificates, dnsmasq-base, ipxe, iproute2
Section: admin
Priority: optional
Description: network boot for bare metal, configured by Kubernetes objects
 davit serves iPXE scripts, GRUB configs, Ignition, cloud-config and metadata
 over HTTP, and renders them for each machine. It reads Profiles and Groups
 from YAML files or from a Kubernetes cluster. Node is part of the package.
`;
}

function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.filter((path) => !path.startsWith(join(folder, "DEBIAN"))).sort();
}

function bytesBelow(folder: string): number {
  return filesBelow(folder).reduce((sum, path) => sum + statSync(path).size, 0);
}

function md5sums(folder: string): string {
  const md5 = (path: string) => createHash("md5").update(readFileSync(path)).digest("hex");
  return filesBelow(folder)
    .filter((path) => !path.startsWith(join(folder, "etc/")))
    .map((path) => `${md5(path)}  ${path.slice(folder.length + 1)}\n`)
    .join("");
}

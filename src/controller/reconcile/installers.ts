/** Finds kernel arguments that belong to an installer, and commands of configs that install. Pure. */

import { hiddenTexts } from "../../lib/text/hidden-texts.ts";

/** The arguments of one installer: whole names, without `=` and a value, and beginnings of names. */
interface InstallerArguments {
  readonly installer: string;
  readonly names: readonly string[];
  readonly prefixes?: readonly string[];
}

const installers: readonly InstallerArguments[] = [
  // Boot options of Anaconda, anaconda-installer.readthedocs.io. `ks` is the older name of `inst.ks`, and VMware ESXi
  // uses it, too.
  { installer: "Anaconda", names: ["inst.ks", "inst.repo", "inst.stage2", "ks"] },
  // coreos-installer, docs/customizing-install.md: coreos.inst.install_dev names the disk.
  { installer: "coreos-installer", names: ["coreos.inst"], prefixes: ["coreos.inst."] },
  // Without this word, Ubuntu's Subiquity asks before it writes: see its documentation of autoinstall.
  { installer: "Subiquity", names: ["autoinstall"] },
  // Appendix B of Debian's installation guide. `auto` is short for `auto-install/enable`.
  { installer: "debian-installer", names: ["auto", "auto-install/enable"], prefixes: ["preseed/"] },
  // linuxrc, en.opensuse.org/SDB:Linuxrc, and the AutoYaST guide.
  { installer: "YaST", names: ["autoyast", "autoyast2", "install"] },
  // agama-project.github.io, unattended installation.
  { installer: "Agama", names: ["inst.auto", "agama.auto"] },
  // Talos writes itself to `machine.install.disk` of this config: see its reference of kernel parameters.
  { installer: "Talos", names: ["talos.config"] },
  // docs.harvesterhci.io, PXE boot: without `harvester.install.*` the installer asks before it writes.
  { installer: "Harvester", names: [], prefixes: ["harvester.install."] },
  // rancher/k3os, README: `k3os.install.device` names the disk.
  { installer: "k3OS", names: [], prefixes: ["k3os.install."] },
  // The boot entries of Kairos that install without a person: kairos.io, "Installation".
  { installer: "Kairos", names: ["install-mode", "nodepair.enable"] },
  // pve.proxmox.com, "Automated Installation": the ISO's boot entry adds this word.
  { installer: "Proxmox VE", names: ["proxmox-start-auto-installer"] },
];

// What a unit or a script of a config runs to write a system to a disk. Its arguments may be on the next line, also in
// JSON.
const installerCommand =
  /(?<![\w-])(flatcar-install|coreos-installer|coreos-install|kairos-agent)(?=\s)(?:\s|\\n?)+(?=[-\w"'$])/g;
// Other commands of these programs write no disk.
const harmless = /^(?:download|list|iso|pxe|help|version|upgrade|start|state|-h\b|--help|--version)/;

// Butane compresses and encodes the files of a config. Every change of a Profile decodes them again.
const hiddenLimits = { depth: 1, gzipBytes: 256 * 1024, gzipFiles: 64 };

/**
 * The first command in a config that installs a system, also in a file that is compressed or encoded; undefined if
 * there is none.
 */
export function installerCommandIn(config: string): string | undefined {
  const texts = [config, ...hiddenTexts(config, hiddenLimits).map(({ text }) => text)];
  return texts.map(plainCommandIn).find((command) => command !== undefined);
}

function plainCommandIn(text: string): string | undefined {
  const found = [...text.matchAll(installerCommand)].find(({ 0: command, index }) => {
    return !harmless.test(text.slice(index + command.length));
  });
  return found?.[1];
}

/** What to do if a Profile boots an installer and does not set `effect`. */
export const effectCure = "set effect: Install, or effect: Boot where disks are left alone";

/** The first installer argument in a text, and its installer; undefined if there is none. */
export function installerIn(text: string): { readonly installer: string; readonly argument: string } | undefined {
  for (const word of text.split(/[\s"']+/)) {
    const [name = ""] = word.split("=", 1);
    const found = installers.find(
      ({ names, prefixes = [] }) => names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix)),
    );
    if (found !== undefined) return { installer: found.installer, argument: name };
  }
  return undefined;
}

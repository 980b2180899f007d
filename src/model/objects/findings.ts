/**
 * The catalogue of findings: every mistake in objects that the sources, the controller, the boot service or `davit
 * lint` can report. A code is for programs and for lookups. The code that finds a mistake also writes the sentence for
 * people, which is the same in a log, a condition and `davit lint`. docs/reference/findings.md is generated from this
 * file.
 */

import { apiVersion } from "./source.ts";

/**
 * `error`: machines do not get what the object says. `warning`: the object is probably not what its author meant.
 * `advice`: worth checking.
 */
export const severities = ["error", "warning", "advice"] as const;
export type FindingSeverity = (typeof severities)[number];

interface FindingRule {
  readonly severity: FindingSeverity;
  /** What the finding means: a sentence without a full stop, like `cure`. */
  readonly means: string;
  /** What to do. */
  readonly cure: string;
}

const fileFindings = {
  "unreadable-file": error(
    "A file or directory cannot be read",
    "Correct its permissions, restore its volume, or put the file back",
  ),
  "empty-directory": error(
    "A directory holds no manifest, as if its volume were not mounted",
    "Restore it, or leave one file with a document in it",
  ),
  "broken-link": error("A link leads to nothing", "Restore what it leads to, or remove it"),
  "too-large": error("A file has more bytes, lines or values than a manifest may, or there are too many", "Split it"),
  "not-text": error("A file is not UTF-8 text", "Save it as UTF-8, or move it out of the directory"),
  "unfinished-file": advice(
    "A file lacks its final newline, as one that is half written",
    "End it with a line break; write a file elsewhere and move it in with mv",
  ),
  "no-document": error("A file holds no document", "Remove it, or write what was meant to be in it"),
  "invalid-yaml": error("A file is no YAML, so nothing in it is used", "Correct it at the reported place"),
  "invalid-alias": error(
    "An alias has no anchor before it, names a value around itself, or aliases multiply",
    "Write the value out",
  ),
  "too-deep": error("Values or blocks are nested too deeply", "Write them flatter"),
  "duplicate-object": error("An object is defined twice", "Remove or rename one of the two"),
  "oversized-object": error(
    "An object of a file is larger than 1.5 MiB as JSON, with its aliases written out: no cluster stores it",
    "Shorten it, or split it",
  ),
} as const;

const documentFindings = {
  "unquoted-scalar": error("YAML 1.1 and YAML 1.2 read a plain value differently", "Put it in quotes"),
  "inexact-number": error("JSON has no such number, or would lose digits of it", "Put it in quotes"),
  "non-text-key": error("A key is not text", "Write a name before the colon"),
  "not-an-object": error("A document is no Kubernetes object", "Write apiVersion, kind, metadata and spec"),
  "unknown-version": error("davit.dev has no such version", `Write ${apiVersion}`),
  "unknown-kind": error("davit.dev has no such kind", "Write Profile, Group or Machine"),
  "misspelt-group": error("A Profile or Group is of a group that is almost davit.dev", `Write ${apiVersion}`),
  "nested-list": error("A List is malformed, or is inside another List", "Write its entries as documents"),
  "missing-field": error("A field that must be there is not", "Add it"),
  "unknown-field": error("A field does not exist", "Remove it, or correct its name"),
  "wrong-type": error("A value is of the wrong type", "Write it as the message says"),
  "unknown-choice": error("A value is not one that the field knows", "Write one of them"),
  "control-character": error(
    "A text has a control character, such as a line break, which would be a command of its own in a script",
    "Remove it",
  ),
  "invalid-name": error(
    "A text cannot be a name of an object, a part or a label, or a namespace",
    "Write it as the message says",
  ),
  "invalid-key": error("A text cannot be a key of a ConfigMap or Secret", "Write it as the message says"),
  "empty-value": error("A text is empty", "Write a value, or remove the field"),
  "too-long": error("A text or list is longer than it may be", "Shorten it"),
  "out-of-range": error("A number is too small or too large", "Write one within the bounds"),
  "broken-rule": error("Fields do not go together, or a value breaks a rule of its kind", "Do as the message says"),
  "duplicate-entry": error("Two entries of a list have one name", "Give one of them another"),
  "not-base64": error("An entry of a Secret's data is not base64", "Encode it, or move it to stringData"),
} as const;

const referenceFindings = {
  "missing-profile": error("A Group names a Profile that is not there: 404", "Add it, or correct the name"),
  "missing-config-map": error("A Profile names a ConfigMap that is not there", "Add it, or correct the name"),
  "missing-secret": error(
    "A Profile names a Secret that is not there, or that davit may not read",
    "Add it, correct the name, or let davit read it",
  ),
  "missing-key": error("A ConfigMap or Secret has no such key", "Add it, or correct the key"),
  "secret-not-allowed": error(
    "A Secret is not for templates, which every machine on the boot network can read",
    'Label it davit.dev/allow-template: "true", if that is meant',
  ),
  "not-in-input": advice(
    "What is referred to may exist, but nothing of its kind came by standard input",
    "Put the ConfigMaps and Secrets into the input, too, or look at the Profile's status in the cluster",
  ),
  "not-permitted": error(
    "matchAll, a priority, a selector that nearly every machine meets, or an asset name without NAMESPACE/ counts " +
      "in the admin namespace only",
    "Remove it, select by more exact values, begin the asset name with NAMESPACE/, or move the object there",
  ),
} as const;

const templateFindings = {
  "invalid-template": error("A template cannot be parsed", "Correct it at the reported place (docs/use/templates.md)"),
  "unknown-name": error(
    "A template uses a helper, block or @name that does not exist",
    "docs/use/templates.md has all",
  ),
  "template-too-large": error(
    "A template is larger than 1 MiB, those of a Profile than 4 MiB, or one has more than 10,000 expressions",
    "Split it",
  ),
  "wrong-argument": error("A helper of a template has arguments that it cannot use", "docs/use/templates.md has them"),
  "undefined-variable": error(
    "A template prints a variable that this Group's machines do not have: 500",
    'Add it to the Group\'s metadata, or surround it with {{#if}} or {{default name "..."}}',
  ),
  "template-too-costly": error("Rendering takes too many steps, or its result is larger than 8 MiB: 500", "Shorten it"),
  "invalid-url": error(
    "A kernel or initrd begins like an HTTP URL, but is not valid",
    "Write http://HOST:PORT/PATH, or a path below /assets/",
  ),
  "empty-kernel": error("The kernel renders to nothing: 500", "Correct the template, or the Group's metadata"),
  "unsafe-value": error(
    "A value that a boot text prints would be more or less than that value to iPXE, GRUB or Linux: 500",
    "Change the value, or where it is printed (docs/use/templates.md)",
  ),
  "invalid-script": error("/ipxe is answered 500: a script does not begin with #!ipxe", "Begin it with that line"),
  "invalid-metadata": warning("/metadata is answered 500: metadata are too deep or too large", "Make them smaller"),
  "invalid-ignition": error("/ignition is answered 500: no object with an ignition.version", "Correct the template"),
  butane: error(
    "/ignition is answered 500: a Butane document cannot be translated to Ignition",
    "Correct the field at the line and column of the message (docs/use/templates.md)",
  ),
  "invalid-cloud-config": error("/cloud is answered 500: no cloud-config and no script", "Correct the template"),
  "invalid-generic": error("/generic is answered 500: not JSON, which its format says it is", "Correct the template"),
  "result-too-large": error(
    "A YAML result or a boot script is larger than 1 MiB, a config from Butane than 8 MiB, a kernel line than 64 KiB",
    "Make it smaller, or write JSON",
  ),
  "ignition-refused": error("Ignition refuses a config and ends in its emergency shell", "Correct the field"),
  "ignition-doubtful": warning("Ignition, or some releases of it, passes over a field", "Remove or correct it"),
} as const;

const selectionFindings = {
  "unreachable-group": warning(
    "Another Group wins for every machine that this one selects",
    "Remove one of them, select by more labels, or give this one a higher priority",
  ),
  "selector-tie": error(
    "Groups select a machine by the same keys and operators, with equal priority, and give something else: 503",
    "Give the one that should win a priority or another label, or remove the other one",
  ),
  "duplicate-identity": error(
    "Two Machines list the same uuid or mac: the machine that sends it may be either, so it waits",
    "Remove it from one of the two",
  ),
  "unselected-label": warning(
    "No Group selects a label of a Machine, but a Group selects another value of it, or a label of a similar name",
    "Correct the label or the selector, or add a Group",
  ),
  "catch-all": advice(
    "A Group takes every machine that no other Group takes, and does not boot it from disk",
    "Let a catch-all boot from disk (boot.local), or be sure that any machine may be installed",
  ),
  "broad-selector": advice(
    "A selector asks for no value, or by short patterns alone: nearly every machine may meet it",
    "Ask for a value, or write matchAll: true if that is meant",
  ),
  "contradictory-selector": warning(
    "The labels of a selector do not meet its expressions: no machine gets the Group",
    "Correct one of them",
  ),
  "nameless-uuid": warning(
    "A selector has a uuid that is invalid, or shared by many boards, such as zeros: it selects no machine",
    "Select by mac or serial",
  ),
} as const;

const usageFindings = {
  "shared-metadata-name": advice("Two metadata have one name in /metadata, which shows one of them", "Rename one"),
  "ended-command": advice("iPXE ends the command at this argument, or takes the rest for a comment", "Quote it"),
  "unmarked-installer": warning(
    "A boot text has an argument of an installer, and the Profile no effect: in doubt its machines are installed, too",
    "Set effect: Install, or effect: Boot where disks are left alone",
  ),
  "unused-arguments": advice("A Group has arguments, and its Profile no kernel to hand them to", "Remove them"),
  "unnamed-initrd": advice(
    "Kernels that an older UEFI iPXE starts do not find the initrds",
    "Set boot.efiInitrd: true",
  ),
  "unsent-label": advice(
    "A selector asks for a label that machines do not send after /boot.ipxe, such as arch",
    "Let DHCP name /chain.ipxe. Machines whose own script or GRUB sends the label need nothing",
  ),
  "foreign-token": advice(
    "A kernel, initrd or argument has a token of iPXE that GRUB does not know: /grub answers 500",
    "Replace the token, or set boot.grubScript. Machines that boot by iPXE need nothing",
  ),
  "emptied-token": warning(
    `A URL has uuid=, mac= or serial= without a value: a tool such as Flux may have replaced iPXE's \${uuid}`,
    `Exclude the object from the substitution, or write $\${uuid} for Flux (docs/operate/gitops.md)`,
  ),
  "foreign-location": advice(
    "A kernel or initrd has a location that only iPXE can load, or an initrd has words after it: /grub answers 500",
    "Correct it as the finding says. Machines that boot by iPXE need nothing",
  ),
  "unchecked-digest": advice(
    "A kernel or initrd has a sha256, but is not below /assets/: nothing checks it",
    "Put the file below --assets-dir, or remove sha256",
  ),
  "install-for-all": warning(
    "Unknown machines get a Group that requires no approval and whose Profile has effect: Install",
    "Set approval: Required, or select by more exact values",
  ),
  "unreported-install": warning(
    "A Profile has install, and no config reports the end: each install becomes Unconfirmed when its time is over",
    "Report by {{davit.report}} at the end of the installer (docs/use/install-once.md)",
  ),
  "asleep-grant": advice(
    "A grant opens no install: it has no ledger or no until, or until is over or more than seven days ahead",
    "Run davit machine install group/NAME or machine/NAME, or copy the patch of the condition Permitted",
  ),
  "separate-cards": advice(
    "A Group whose Profile has install lists MAC addresses that no Machine lists: each may install once",
    "If several are network cards of one machine, list them in one Machine. Separate machines need nothing",
  ),
  "other-ledger": advice(
    "Grants name different ledgers. davit has one ledger, and a grant that names another one opens no install",
    "Compare the id with davit machine ledger, then run davit machine install group/NAME or machine/NAME",
  ),
  "useless-grant": warning(
    "A Group or Machine grants an install, but the Profile has no install: the grant has no effect",
    "Add install to the Profile (docs/use/install-once.md), or remove the grant",
  ),
  "foreign-install-asset": advice(
    "A kernel or initrd of an install is not below /assets/, so davit cannot see when the machine has read it",
    "Put it below --assets-dir, or accept that the script is served for 60 s after the claim",
  ),
  "reported-label": advice(
    "A selector asks for a label that machines report about themselves, and a report can be lost",
    "Make sure that the Group which they get without the label does no harm; its installs need permits",
  ),
  "missing-asset": error("A kernel or initrd is not below --assets-dir: 404", "Put it there, or correct the path"),
  "wrong-asset": error(
    "A kernel or initrd below --assets-dir is not the file that its sha256 names: 503",
    "Put that file there, or correct sha256",
  ),
  "unused-profile": advice("No Group names a Profile", "Remove it, or add the Group"),
} as const;

/** The codes by subject, in the order of docs/reference/findings.md. */
export const findingSections = {
  Files: fileFindings,
  Documents: documentFindings,
  "References and tenancy": referenceFindings,
  "Templates and what they yield": templateFindings,
  Selection: selectionFindings,
  Use: usageFindings,
} as const;

const catalogue = {
  ...fileFindings,
  ...documentFindings,
  ...referenceFindings,
  ...templateFindings,
  ...selectionFindings,
  ...usageFindings,
} as const;

export type FindingCode = keyof typeof catalogue;

/** The catalogue by code. */
export const findingRules: Readonly<Record<FindingCode, FindingRule>> = catalogue;

function error(means: string, cure: string): FindingRule {
  return { severity: "error", means, cure };
}

function warning(means: string, cure: string): FindingRule {
  return { severity: "warning", means, cure };
}

function advice(means: string, cure: string): FindingRule {
  return { severity: "advice", means, cure };
}

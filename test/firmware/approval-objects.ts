/** The objects of a machine that boots its disk once it is approved. */

/** The name of a machine's objects. */
export function approvalName(mac: string): string {
  return `machine-${mac.replaceAll(":", "-")}`;
}

/** A Profile, a Group that asks for approval, and the Machine of this MAC: a manifest of YAML. */
export function approvalObjects(mac: string, isApproved: boolean): string {
  const name = approvalName(mac);
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata:
  name: ${name}
spec:
  boot:
    local: exit
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata:
  name: ${name}
spec:
  approval: Required
  profileRef:
    name: ${name}
  selector:
    matchLabels:
      mac: "${mac}"
---
apiVersion: davit.dev/v1alpha1
kind: Machine
metadata:
  name: ${name}
spec:
  identity:
    macs: ["${mac}"]
  approved: ${isApproved}
`;
}

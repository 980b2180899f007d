{{- /*
  What does not fit together, one sentence a line: the value, what it is, and the cure. The schema says what is wrong with
  a value for itself; all of these are reported at once.
*/ -}}
{{- define "davit.problems" -}}
{{- include "davit.problems.former" . }}
{{- include "davit.problems.names" . }}
{{- include "davit.problems.images" . }}
{{- include "davit.problems.scope" . }}
{{- include "davit.problems.service" . }}
{{- include "davit.problems.statefulSet" . }}
{{- include "davit.problems.backup" . }}
{{- include "davit.problems.memory" . }}
{{- include "davit.problems.assets" . }}
{{- include "davit.problems.signing" . }}
{{- include "davit.problems.store" . }}
{{- include "davit.problems.etcd" . }}
{{- include "davit.problems.followers" . }}
{{- include "davit.problems.network" . }}
{{- include "davit.problems.monitoring" . }}
{{- include "davit.problems.dnsmasq" . }}
{{- end -}}

{{- /* Values that the chart no longer has. The schema knows them as deprecated, so that their sentence has the cure. */ -}}
{{- define "davit.problems.former" -}}
{{- $former := dict
  "maxStaleness" (list .Values.maxStaleness "write installMaxSourceAge") -}}
{{- range $name, $facts := $former }}
{{- if first $facts }}
- {{ $name }} is a former value: {{ last $facts }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.names" -}}
{{- range $name := list "fullnameOverride" "nameOverride" }}
{{- with get $.Values $name }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,43}[a-z0-9])?$" .) }}
- {{ $name }} is {{ quote . }}: write 1 to 45 lower-case letters, digits and hyphens, a letter first
{{- end }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^[a-z]" (include "davit.fullname" .)) }}
- the release is named {{ quote .Release.Name }}, and names of Services begin with a letter: choose another, or set fullnameOverride
{{- end }}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) }}
- serviceAccount.name is empty: name the account to use, as serviceAccount.create is false
{{- end }}
{{- if and (include "davit.hasFollowers" .) (not (or .Values.boot.serviceAccount.create .Values.boot.serviceAccount.name)) }}
- boot.serviceAccount.name is empty: name the account to use, as boot.serviceAccount.create is false
{{- end }}
{{- if eq (include "davit.serviceAccountName" .) (include "davit.boot.serviceAccountName" .) }}
- boot.serviceAccount.name is {{ include "davit.serviceAccountName" . | quote }}, which is the account with the rights of davit serve: name another, which needs none
{{- end }}
{{- end -}}

{{- define "davit.problems.images" -}}
{{- range $name, $image := dict "image" .Values.image "dnsmasq.image" .Values.dnsmasq.image }}
{{- if and $image.tag (not (regexMatch "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$" $image.tag)) }}
- {{ $name }}.tag is {{ quote $image.tag }}, which no tag can be: write letters, digits, "_", "." and "-"; a digest goes into {{ $name }}.digest
{{- end }}
{{- if and $image.digest (not (regexMatch "^sha256:[0-9a-f]{64}$" $image.digest)) }}
- {{ $name }}.digest is {{ quote $image.digest }}: write sha256: and 64 hexadecimal digits
{{- end }}
{{- if hasSuffix "/" ($image.registry | default "") }}
- {{ $name }}.registry is {{ quote $image.registry }}: leave out the slash at its end
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.scope" -}}
{{- $watched := include "davit.watchedNamespaces" . | fromYamlArray }}
{{- $isCluster := eq .Values.scope "cluster" }}
{{- if and $isCluster .Values.watchNamespaces }}
- watchNamespaces is {{ join ", " .Values.watchNamespaces }} and scope is cluster, which reads every namespace: give one of them
{{- end }}
{{- with .Values.adminNamespace }}
{{- if not (or $isCluster (has . $watched)) }}
- adminNamespace is {{ quote . }}, which is not read: add it to watchNamespaces, or take one of {{ join ", " $watched }}
{{- end }}
{{- end }}
{{- range .Values.rbac.secrets.names }}
{{- $namespace := splitList "/" . | first }}
{{- if not (or $isCluster (not (contains "/" .)) (has $namespace $watched)) }}
- rbac.secrets.names has {{ quote . }}, and the namespace {{ $namespace }} is not read: add it to watchNamespaces, or take one of {{ join ", " $watched }}
{{- end }}
{{- end }}
{{- if and .Values.admissionPolicy.enabled (not (include "davit.adminNamespace" .)) }}
- admissionPolicy.enabled is true, and there is one namespace, in which everything counts: read several (watchNamespaces, scope), or set adminNamespace
{{- end }}
{{- end -}}

{{- define "davit.problems.service" -}}
{{- with .Values.advertiseAddress }}
{{- $port := regexFind "[0-9]{1,5}$" . | atoi }}
{{- if not (and (regexMatch "^(\\[[0-9A-Fa-f:.]+\\]|[^]:/\\[[:space:]]+):[1-9][0-9]{0,4}$" .) (le $port 65535)) }}
- advertiseAddress is {{ quote . }}: write HOST:PORT, such as 192.0.2.10:8080 or [2001:db8::10]:8080
{{- end }}
{{- end }}
{{- with .Values.https }}
{{- if .enabled }}
{{- if not .existingSecret }}
- https.existingSecret is empty: name a Secret of type kubernetes.io/tls, as https.enabled is true
{{- end }}
{{- if not (regexMatch "^(\\[[0-9A-Fa-f:.]+\\]|[^]:/\\[[:space:]]+):[1-9][0-9]{0,4}$" (.advertiseAddress | default "")) }}
- https.advertiseAddress is {{ quote .advertiseAddress }}: write HOST:PORT, such as boot.example.org:8443
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.service }}
{{- if and .nodePort (eq .type "ClusterIP") }}
- service.nodePort is {{ .nodePort }}, and service.type is ClusterIP: set service.type to NodePort or LoadBalancer
{{- end }}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") (not .externalIPs) }}
- service.externalTrafficPolicy is {{ .externalTrafficPolicy }}, and service.type is ClusterIP: set service.type to NodePort or LoadBalancer, or give service.externalIPs
{{- end }}
{{- if eq (.clusterIP | default "") "None" }}
{{- if ne .type "ClusterIP" }}
- service.clusterIP is None, and service.type is {{ .type }}, which needs an address: leave service.clusterIP empty
{{- else if .externalIPs }}
- service.clusterIP is None, and with service.externalIPs there has to be an address: leave service.clusterIP empty
{{- else if ne (int .port) 8080 }}
- service.port is {{ .port }}, and service.clusterIP is None, with which clients reach the pods' own port, 8080: set service.port to 8080, or leave service.clusterIP empty
{{- end }}
{{- else if and .clusterIP .ipFamilies (ne (contains ":" .clusterIP | ternary "IPv6" "IPv4") (first .ipFamilies)) }}
- service.clusterIP is {{ .clusterIP }}, and service.ipFamilies begins with {{ first .ipFamilies }}: give the family of the address first, or leave service.clusterIP empty
{{- end }}
{{- $policy := .ipFamilyPolicy | default "SingleStack" }}
{{- if and (gt (len (.ipFamilies | default list)) 1) (eq $policy "SingleStack") }}
- service.ipFamilies has two families, and service.ipFamilyPolicy is {{ .ipFamilyPolicy | default "empty, which means SingleStack" }}: set service.ipFamilyPolicy to PreferDualStack or RequireDualStack, or give one family
{{- end }}
{{- range $name := list "loadBalancerClass" "loadBalancerIP" "loadBalancerSourceRanges" }}
{{- if and (get $.Values.service $name) (ne $.Values.service.type "LoadBalancer") }}
- service.{{ $name }} is set, and service.type is {{ $.Values.service.type }}: set service.type to LoadBalancer
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.statefulSet" -}}
{{- $installed := include "davit.installedPodManagementPolicy" . }}
{{- with .Values.podManagementPolicy }}
{{- if and $installed (ne . $installed) }}
- podManagementPolicy is {{ . }}, and the StatefulSet {{ include "davit.fullname" $ }} has {{ $installed }}, which cannot be changed: leave podManagementPolicy empty, or first remove the StatefulSet and leave its pod, by kubectl -n {{ $.Release.Namespace }} delete statefulset {{ include "davit.fullname" $ }} --cascade=orphan
{{- end }}
{{- end }}
{{- with .Values.persistence }}
{{- if and .existingClaim (not .enabled) }}
- persistence.existingClaim is {{ quote .existingClaim }}, and persistence.enabled is false, with which the store is in the pod: set persistence.enabled to true, or leave persistence.existingClaim empty
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.backup" -}}
{{- with .Values.backup }}
{{- if and .existingClaim (not .every) }}
- backup.existingClaim is {{ quote .existingClaim }}, and backup.every is empty, with which no backup is taken: set backup.every, such as 24h
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.memory" -}}
{{- $least := include "davit.leastHeapMebibytes" . | int64 }}
{{- $threads := include "davit.bootThreads" . | int64 }}
{{- $heap := eq $threads 1 | ternary "the heap" (printf "the heap of each of %d bootThreads" $threads) }}
{{- with include "davit.heapMebibytes" (dict "root" . "resources" .Values.resources "component" "serve") }}
{{- if lt (int64 .) $least }}
- resources.limits.memory is {{ $.Values.resources.limits.memory }}, which leaves {{ . }} MiB for {{ $heap }} beside assets.cacheBytes and jobs, and store.quotaBytes needs {{ $least }} MiB: raise the limit, or lower one of the others
{{- end }}
{{- end }}
{{- if include "davit.hasFollowers" . }}
{{- $resources := (include "davit.boot.settings" . | fromYaml).resources }}
{{- with include "davit.heapMebibytes" (dict "root" . "resources" $resources "component" "boot") }}
{{- if lt (int64 .) 128 }}
- boot.resources.limits.memory is {{ $resources.limits.memory }}, which leaves {{ . }} MiB for {{ $heap }} beside assets.cacheBytes and jobs: leave it 128 MiB or more
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.assets" -}}
{{- with .Values.assets }}
{{- if and .existingClaim .image.reference }}
- assets.existingClaim is {{ quote .existingClaim }} and assets.image.reference is {{ quote .image.reference }}: give one of them
{{- end }}
{{- if and .fetchFrom .image.reference }}
- assets.fetchFrom is set and assets.image.reference is {{ quote .image.reference }}, which cannot be written to: give one of them
{{- end }}
{{- if and .download .image.reference }}
- assets.download is set and assets.image.reference is {{ quote .image.reference }}, which cannot be written to: give one of them
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.signing" -}}
{{- with .Values.signing }}
{{- if and .enabled (not .existingSecret) }}
- signing.existingSecret is empty: name the Secret with the OpenPGP private key, as signing.enabled is true
{{- end }}
{{- if and .grubPassphraseKey (not .grubKeyKey) }}
- signing.grubPassphraseKey is {{ quote .grubPassphraseKey }}, and there is no key for it: set signing.grubKeyKey
{{- end }}
{{- if and .existingSecret (not .enabled) }}
- signing.existingSecret is {{ quote .existingSecret }}, and nothing is signed: set signing.enabled to true
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.store" -}}
{{- with .Values.store.certificate }}
{{- if and .existingSecret .certManager.enabled }}
- store.certificate.existingSecret is {{ quote .existingSecret }} and store.certificate.certManager.enabled is true: give one of them
{{- end }}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) }}
- store.certificate.certManager.issuerRef.name is empty: name the Issuer
{{- end }}
{{- if and (include "davit.hasStore" $) (not (or .own .existingSecret .certManager.enabled)) }}
- the store listens (store.expose, boot.replicas, boot.prepared) and has no certificate: set store.certificate.{{ if not (include "davit.hasEtcd" $) }}own, .{{ end }}existingSecret or .certManager.enabled
{{- end }}
{{- end }}
{{- with .Values.store.authentication }}
{{- range $name, $given := dict "serviceAccounts" .serviceAccounts "tokens.existingSecret" .tokens.existingSecret }}
{{- if and $given (not $.Values.store.expose) }}
- store.authentication.{{ $name }} is set, and store.expose is false, with which nobody but followers comes in: set store.expose to true
{{- end }}
{{- end }}
{{- if and $.Values.store.expose (not (or (include "davit.hasFollowers" $) .serviceAccounts .tokens.existingSecret .clientCa.existingSecret)) }}
- store.expose is true and nobody may come in: set store.authentication.serviceAccounts, .tokens.existingSecret or .clientCa.existingSecret
{{- end }}
{{- if and (include "davit.hasFollowers" $) .clientCa.existingSecret (not $.Values.boot.clientCertificate.existingSecret) }}
- store.authentication.clientCa.existingSecret is {{ quote .clientCa.existingSecret }}, and followers have no certificate to show: set boot.clientCertificate.existingSecret
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.etcd" -}}
{{- if include "davit.hasEtcd" . }}
{{- if and (include "davit.hasStore" .) (not (include "davit.store.certificateSecret" .)) .Values.store.certificate.own }}
- store.etcd.endpoints is set, and davit would make its own certificate (store.certificate.own), each member by another authority: set store.certificate.existingSecret or .certManager.enabled
{{- end }}
{{- with .Values.backup }}
{{- if and .every (not .existingClaim) (gt (int $.Values.replicaCount) 1) (not (has "ReadWriteMany" (.accessModes | default list))) }}
- backup.every is {{ .every }}, and backup.accessModes lets one node write, while replicaCount is {{ $.Values.replicaCount }}: set backup.accessModes to [ReadWriteMany] with a storage class that has it, or leave backup.every empty
{{- end }}
{{- end }}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace (include "davit.fullname" .) }}
{{- if dig "spec" "volumeClaimTemplates" list . }}
- store.etcd.endpoints is set, and the StatefulSet {{ include "davit.fullname" $ }} keeps the store on a volume, which cannot be changed: read "With Helm" in docs/operate/several-members.md, then remove it by kubectl -n {{ $.Release.Namespace }} delete statefulset {{ include "davit.fullname" $ }}
{{- end }}
{{- end }}
{{- else }}
{{- if ne (int .Values.replicaCount) 1 }}
- replicaCount is {{ .Values.replicaCount }}, and store.etcd.endpoints is empty, with which the store is on one volume, and one volume has one writer: set store.etcd.endpoints, or leave replicaCount at 1 and set boot.replicas for more boot services
{{- end }}
{{- with .Values.store.etcd }}
{{- range $name, $given := dict "prefix" .prefix "tls.existingSecret" (.tls).existingSecret "auth.existingSecret" (.auth).existingSecret }}
{{- if $given }}
- store.etcd.{{ $name }} is {{ quote $given }}, and store.etcd.endpoints is empty, with which the store is on the volume: set store.etcd.endpoints
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.followers" -}}
{{- with .Values.boot.autoscaling }}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) }}
- boot.autoscaling.minReplicas is {{ .minReplicas }} and boot.autoscaling.maxReplicas is {{ .maxReplicas }}: raise the second, or lower the first
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.network" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
- ingress.hosts is empty: name the hosts by which machines come, as ingress.enabled is true
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}
- httpRoute.parentRefs is empty: name the Gateway, as httpRoute.enabled is true
{{- end }}
{{- end -}}

{{- define "davit.problems.monitoring" -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled }}
- serviceMonitor.enabled and podMonitor.enabled are true, so that every metric would be there twice: turn one of them off
{{- end }}
{{- $alerts := list }}
{{- range .Files.Get "files/alerts.yaml" | fromYamlArray }}{{ $alerts = append $alerts .alert }}{{ end }}
{{- range .Values.prometheusRule.disabled }}
{{- if not (has . $alerts) }}
- prometheusRule.disabled has {{ quote . }}, and there is no such alert: take one of {{ join ", " $alerts }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.dnsmasq" -}}
{{- if .Values.dnsmasq.enabled }}
{{- if not .Values.dnsmasq.nodeSelector }}
- dnsmasq.nodeSelector is empty: choose the nodes that are in the machines' network
{{- end }}
{{- if not (or .Values.dnsmasq.subnet .Values.dnsmasq.ranges) }}
- dnsmasq.subnet is empty: write the machines' network, such as 192.0.2.0, or addresses to give into dnsmasq.ranges
{{- end }}
{{- if and .Values.dnsmasq.subnet .Values.dnsmasq.ranges }}
- dnsmasq.subnet and dnsmasq.ranges are set: clear subnet to give addresses, or ranges if the network has a DHCP server
{{- end }}
{{- if and .Values.dnsmasq.router (not .Values.dnsmasq.ranges) }}
- dnsmasq.router is {{ quote .Values.dnsmasq.router }}, and dnsmasq.ranges is empty: set ranges, or clear router
{{- end }}
{{- if not .Values.advertiseAddress }}
- advertiseAddress is empty: dnsmasq sends machines there, so write HOST:PORT of the boot Service
{{- end }}
{{- end }}
{{- end -}}

{{- /*
  What does not fit together, one sentence a line: the value, what it is, and the cure. The schema says what is wrong with
  a value for itself; all of these are told at once.
*/ -}}
{{- define "davit.problems" -}}
{{- include "davit.problems.names" . }}
{{- include "davit.problems.images" . }}
{{- include "davit.problems.scope" . }}
{{- include "davit.problems.service" . }}
{{- include "davit.problems.statefulSet" . }}
{{- include "davit.problems.memory" . }}
{{- include "davit.problems.assets" . }}
{{- include "davit.problems.signing" . }}
{{- include "davit.problems.store" . }}
{{- include "davit.problems.network" . }}
{{- include "davit.problems.dnsmasq" . }}
{{- end -}}

{{- define "davit.problems.names" -}}
{{- if ne (int .Values.replicaCount) 1 }}
- replicaCount is {{ .Values.replicaCount }}: the store has one writer, so it is 1; for more boot services set boot.replicas
{{- end }}
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
{{- with .Values.service }}
{{- if and .nodePort (eq .type "ClusterIP") }}
- service.nodePort is {{ .nodePort }}, and service.type is ClusterIP: set service.type to NodePort or LoadBalancer
{{- end }}
{{- if and .externalTrafficPolicy (eq .type "ClusterIP") }}
- service.externalTrafficPolicy is {{ .externalTrafficPolicy }}, and service.type is ClusterIP: set service.type to NodePort or LoadBalancer
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
{{- end -}}

{{- define "davit.problems.memory" -}}
{{- $least := include "davit.leastHeapMebibytes" . | int64 }}
{{- with include "davit.heapMebibytes" (dict "root" . "resources" .Values.resources) }}
{{- if lt (int64 .) $least }}
- resources.limits.memory is {{ $.Values.resources.limits.memory }}, which leaves {{ . }} MiB for the heap beside assets.cacheBytes, and store.quotaBytes needs {{ $least }} MiB: raise the limit, or lower one of the others
{{- end }}
{{- end }}
{{- if include "davit.hasFollowers" . }}
{{- $resources := (include "davit.boot.settings" . | fromYaml).resources }}
{{- with include "davit.heapMebibytes" (dict "root" . "resources" $resources) }}
{{- if lt (int64 .) 128 }}
- boot.resources.limits.memory is {{ $resources.limits.memory }}, which leaves {{ . }} MiB for the heap beside assets.cacheBytes: leave it 128 MiB or more
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.problems.assets" -}}
{{- with .Values.assets }}
{{- if and .existingClaim .image.reference }}
- assets.existingClaim is {{ quote .existingClaim }} and assets.image.reference is {{ quote .image.reference }}: give one of them
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
- the store listens (store.expose, boot.replicas, boot.prepared) and has no certificate: set store.certificate.own, .existingSecret or .certManager.enabled
{{- end }}
{{- end }}
{{- with .Values.store.authentication }}
{{- if and $.Values.store.expose (not (or (include "davit.hasFollowers" $) .serviceAccounts .tokens.existingSecret .clientCa.existingSecret)) }}
- store.expose is true and nobody may come in: set store.authentication.serviceAccounts, .tokens.existingSecret or .clientCa.existingSecret
{{- end }}
{{- if and (include "davit.hasFollowers" $) .clientCa.existingSecret (not $.Values.boot.clientCertificate.existingSecret) }}
- store.authentication.clientCa.existingSecret is {{ quote .clientCa.existingSecret }}, and followers have no certificate to show: set boot.clientCertificate.existingSecret
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
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled }}
- serviceMonitor.enabled and podMonitor.enabled are true, so that every metric would be there twice: turn one of them off
{{- end }}
{{- end -}}

{{- define "davit.problems.dnsmasq" -}}
{{- if .Values.dnsmasq.enabled }}
{{- range $name := list "subnet" "nodeSelector" }}
{{- if not (get $.Values.dnsmasq $name) }}
- dnsmasq.{{ $name }} is empty: {{ eq $name "subnet" | ternary "write the machines' network, such as 192.0.2.0" "choose the nodes that are in the machines' network" }}
{{- end }}
{{- end }}
{{- if not .Values.dnsmasq.image.repository }}
- dnsmasq.image.repository is empty: name an image with dnsmasq and the iPXE files of dnsmasq.loaders
{{- end }}
{{- if not .Values.advertiseAddress }}
- advertiseAddress is empty: dnsmasq sends machines there, so write HOST:PORT of the boot Service
{{- end }}
{{- end }}
{{- end -}}

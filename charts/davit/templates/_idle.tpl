{{- /*
  Values that are set and do nothing beside the others, as a YAML list of texts: the value, and why. Sections that are
  turned off by an `enabled` of their own are left out: one may fill them in before.
*/ -}}
{{- define "davit.notes.idle" -}}
{{- $idle := list -}}
{{- $none := "there are no followers (boot.replicas, boot.autoscaling.enabled)" -}}
{{- if not (include "davit.hasFollowers" .) -}}
{{- range list "alone" "extraArgs" "podAnnotations" "podLabels" "nodeSelector" "tolerations" "affinity"
  "topologySpreadConstraints" "priorityClassName" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts"
  "extraContainers" "initContainers" -}}
{{- if get $.Values.boot . }}{{ $idle = append $idle (printf "boot.%s: %s" . $none) }}{{ end -}}
{{- end -}}
{{- if .Values.boot.clientCertificate.existingSecret }}{{ $idle = append $idle (printf "boot.clientCertificate.existingSecret: %s" $none) }}{{ end -}}
{{- else if and .Values.boot.clientCertificate.existingSecret (not .Values.store.authentication.clientCa.existingSecret) -}}
{{- $idle = append $idle "boot.clientCertificate.existingSecret: nobody asks for it (store.authentication.clientCa.existingSecret)" -}}
{{- end -}}
{{- if and .Values.boot.autoscaling.enabled (gt (int .Values.boot.replicas) 0) -}}
{{- $idle = append $idle "boot.replicas: boot.autoscaling.enabled chooses the number" -}}
{{- end -}}
{{- with .Values.boot.serviceAccount -}}
{{- if and .annotations (not .create) }}{{ $idle = append $idle "boot.serviceAccount.annotations: boot.serviceAccount.create is false" }}{{ end -}}
{{- end -}}
{{- with .Values.serviceAccount -}}
{{- if and .annotations (not .create) }}{{ $idle = append $idle "serviceAccount.annotations: serviceAccount.create is false" }}{{ end -}}
{{- end -}}
{{- range list "passphraseKey" "grubKeyKey" -}}
{{- if and (get $.Values.signing .) (not $.Values.signing.enabled) -}}
{{- $idle = append $idle (printf "signing.%s: signing.enabled is false" .) -}}
{{- end -}}
{{- end -}}
{{- $idle = concat $idle (include "davit.notes.idleStore" . | fromYamlArray) -}}
{{- $hasEtcd := include "davit.hasEtcd" . -}}
{{- with .Values.persistence -}}
{{- $why := .enabled | ternary "persistence.existingClaim is what it is" "persistence.enabled is false" -}}
{{- if $hasEtcd }}{{ $why = "the store is in etcd (store.etcd.endpoints)" }}{{ end -}}
{{- if and $hasEtcd .existingClaim }}{{ $idle = append $idle (printf "persistence.existingClaim: %s" $why) }}{{ end -}}
{{- if or (not .enabled) .existingClaim $hasEtcd -}}
{{- if .storageClass }}{{ $idle = append $idle (printf "persistence.storageClass: %s" $why) }}{{ end -}}
{{- if .annotations }}{{ $idle = append $idle (printf "persistence.annotations: %s" $why) }}{{ end -}}
{{- if ne .size "1Gi" }}{{ $idle = append $idle (printf "persistence.size: %s" $why) }}{{ end -}}
{{- range $name, $action := .retentionPolicy -}}
{{- if ne $action "Retain" }}{{ $idle = append $idle (printf "persistence.retentionPolicy.%s: %s" $name $why) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $idle = concat $idle (include "davit.notes.idleBackup" . | fromYamlArray) -}}
{{- with .Values.assets -}}
{{- if and .emptyDir.sizeLimit (or .existingClaim .image.reference) -}}
{{- $idle = append $idle (printf "assets.emptyDir.sizeLimit: %s is where assets are" (empty .existingClaim | ternary "assets.image.reference" "assets.existingClaim")) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rbac.secrets.names (not .Values.rbac.create) -}}
{{- $idle = append $idle "rbac.secrets.names: rbac.create is false" -}}
{{- end -}}
{{- with .Values.networkPolicy -}}
{{- if and .enabled .extraEgress (not .restrictEgress) -}}
{{- $idle = append $idle "networkPolicy.extraEgress: networkPolicy.restrictEgress is false" -}}
{{- end -}}
{{- end -}}
{{- with .Values.dnsmasq -}}
{{- if and .enabled .download (ne .tftpRoot "/var/lib/tftpboot") -}}
{{- $idle = append $idle "dnsmasq.tftpRoot: dnsmasq.download has the files" -}}
{{- end -}}
{{- end -}}
{{- toYaml $idle -}}
{{- end -}}

{{- define "davit.notes.idleStore" -}}
{{- $idle := list -}}
{{- $certificate := .Values.store.certificate -}}
{{- if and (include "davit.hasEtcd" .) (ne .Values.store.onDamage "refuse") -}}
{{- $idle = append $idle "store.onDamage: the store is in etcd (store.etcd.endpoints)" -}}
{{- end -}}
{{- if not (include "davit.hasStore" .) -}}
{{- $closed := "nobody reaches the store (store.expose, boot.replicas, boot.prepared)" -}}
{{- range $name, $given := dict
  "certificate.existingSecret" $certificate.existingSecret
  "certificate.extraNames" $certificate.extraNames
  "certificate.certManager.enabled" $certificate.certManager.enabled
  "authentication.clientCa.existingSecret" .Values.store.authentication.clientCa.existingSecret
  "service.annotations" .Values.store.service.annotations -}}
{{- if $given }}{{ $idle = append $idle (printf "store.%s: %s" $name $closed) }}{{ end -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.networkPolicy.storeFrom -}}
{{- $idle = append $idle (printf "networkPolicy.storeFrom: %s" $closed) -}}
{{- end -}}
{{- else if and $certificate.extraNames $certificate.existingSecret -}}
{{- $idle = append $idle "store.certificate.extraNames: store.certificate.existingSecret is for the names that it is for" -}}
{{- end -}}
{{- toYaml $idle -}}
{{- end -}}

{{- define "davit.notes.idleBackup" -}}
{{- $idle := list -}}
{{- with .Values.backup -}}
{{- $why := empty .every | not | ternary "backup.existingClaim is what it is" "backup.every is empty" -}}
{{- if or .existingClaim (not .every) -}}
{{- if .storageClass }}{{ $idle = append $idle (printf "backup.storageClass: %s" $why) }}{{ end -}}
{{- if .annotations }}{{ $idle = append $idle (printf "backup.annotations: %s" $why) }}{{ end -}}
{{- if ne (.size | default "1Gi") "1Gi" }}{{ $idle = append $idle (printf "backup.size: %s" $why) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- toYaml $idle -}}
{{- end -}}

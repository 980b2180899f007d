{{- /* Command lines. Each is a YAML list of --flag=value; what a user gives in extraArgs replaces a flag of the chart. */ -}}

{{- /* Takes own and extra, two lists. Of --limit, each name counts by itself. */ -}}
{{- define "davit.args.merged" -}}
{{- $given := list -}}
{{- range .extra }}{{ $given = append $given (first (splitList "=" (trimPrefix "--limit=" .))) }}{{ end -}}
{{- range .own }}
{{- if not (has (first (splitList "=" (trimPrefix "--limit=" .))) $given) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- range .extra }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* What davit serve and davit boot have in common. */ -}}
{{- define "davit.args.service" -}}
- --boot-address=[::]:8080
- --ops-address=[::]:8081
{{- if .Values.operations.tokens.existingSecret }}
- --ops-token-file=/etc/davit/ops-tokens/tokens
{{- end }}
{{- if (.Values.operations.adminTokens).existingSecret }}
- --ops-admin-token-file=/etc/davit/ops-admin-tokens/tokens
{{- end }}
{{- if not (.Values.console).enabled }}
- --ops-console=false
{{- end }}
- --limit=source-grace={{ .Values.sourceGrace }}
- --install-max-source-age={{ .Values.installMaxSourceAge }}
{{- with .Values.bootThreads }}
{{- if ne (toString .) "1" }}
- --boot-threads={{ . }}
{{- end }}
{{- end }}
- --assets-dir=/var/lib/davit-assets
{{- if .Values.assets.dotfiles }}
- --assets-dotfiles
{{- end }}
- --limit=assets-cache-bytes={{ int64 .Values.assets.cacheBytes }}
{{- if .Values.assets.fetchFrom }}
- --limit=assets-max-bytes={{ .Values.assets.maxBytes | default 0 | int64 }}
{{- end }}
- --grub-separator={{ .Values.grub.separator }}
- --grub-commands={{ .Values.grub.commands }}
- --log-level={{ .Values.logLevel }}
- --log-format=json
{{- range (.Values.clientLimits).exempt }}
- --client-limit-exempt={{ . }}
{{- end }}
{{- range (.Values.clientLimits).trustedProxies }}
- --trusted-proxy={{ . }}
{{- end }}
{{- with .Values.advertiseAddress }}
- --advertise-address={{ . }}
{{- end }}
{{- with .Values.https }}
{{- if .enabled }}
- --boot-tls-address=[::]:8443
- --advertise-tls-address={{ .advertiseAddress }}
- --boot-tls-cert-file=/etc/davit/https/tls.crt
- --boot-tls-key-file=/etc/davit/https/tls.key
{{- if .clientCaKey }}
- --boot-tls-client-ca-file=/etc/davit/https/client-ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- if (.Values.secretsKey).existingSecret }}
- --secrets-key-file=/etc/davit/secrets-key/keys
{{- end }}
{{- if .Values.signing.enabled }}
- --signing-key=/etc/davit/signing/key
{{- if .Values.signing.passphraseKey }}
- --signing-passphrase-file=/etc/davit/signing/passphrase
{{- end }}
{{- if .Values.signing.grubKeyKey }}
- --grub-signing-key=/etc/davit/signing/grub-key
{{- if .Values.signing.grubPassphraseKey }}
- --grub-signing-passphrase-file=/etc/davit/signing/grub-passphrase
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "davit.args.serve" -}}
- --kubernetes
{{- if eq .Values.scope "cluster" }}
- --all-namespaces
{{- end }}
{{- /* Without any, davit reads the namespace that its pod is in. */}}
{{- range .Values.watchNamespaces }}
- --namespace={{ . }}
{{- end }}
{{- with include "davit.adminNamespace" . }}
- --admin-namespace={{ . }}
{{- end }}
- --ledger-mark-configmap={{ include "davit.ledgerMark" . }}
- --tombstone-ttl={{ .Values.tombstoneTtl }}
{{- with .Values.auditLog }}
- --audit-log={{ . }}
{{- end }}
{{- range .Values.assets.fetchFrom }}
- --fetch-assets-from={{ . }}
{{- end }}
- --data-dir=/var/lib/davit/data
{{- if include "davit.hasEtcd" . }}
{{ include "davit.args.etcd" . }}
{{- end }}
- --on-damage={{ .Values.store.onDamage }}
- --store-quota-bytes={{ int64 .Values.store.quotaBytes }}
- --limit=store-max-value-bytes={{ int64 .Values.store.maxValueBytes }}
- --limit=store-max-watchers={{ int64 .Values.store.maxWatchers }}
{{- with .Values.backup }}
{{- if .every }}
- --backup-every={{ .every }}
- --backup-dir=/var/lib/davit-backups/backups
- --limit=backup-keep={{ .keep | default 7 | int64 }}
{{- end }}
{{- end }}
{{- if include "davit.hasStore" . }}
{{ include "davit.args.door" . }}
{{- end }}
{{ include "davit.args.service" . }}
{{- end -}}

{{- /* The store off loopback: its certificate, and who may come in. */ -}}
{{- define "davit.args.door" -}}
- --store-address=[::]:2379
- --store-advertise-url={{ include "davit.hasEtcd" . | eq "true" | ternary (include "davit.etcd.memberUrl" .) (include "davit.store.url" .) }}
{{- if include "davit.store.certificateSecret" . }}
- --store-cert-file=/etc/davit/store-certificate/tls.crt
- --store-key-file=/etc/davit/store-certificate/tls.key
{{- else }}
- --store-own-certificate
- --store-ca-configmap={{ include "davit.store.name" . }}-ca
{{- range include "davit.store.certificateNames" . | fromYamlArray }}
- --store-allowed-host={{ . }}
{{- end }}
{{- end }}
{{- if include "davit.admitsFollowers" . }}
- --store-read-service-account={{ .Release.Namespace }}/{{ include "davit.boot.serviceAccountName" . }}
{{- end }}
{{- range .Values.store.authentication.serviceAccounts }}
- --store-allow-service-account={{ . }}
{{- end }}
{{- if or (include "davit.admitsFollowers" .) .Values.store.authentication.serviceAccounts }}
- --store-token-audience={{ .Values.store.authentication.audience }}
{{- end }}
{{- if .Values.store.authentication.tokens.existingSecret }}
- --store-token-file=/etc/davit/store-tokens/tokens
{{- end }}
{{- if .Values.store.authentication.clientCa.existingSecret }}
- --store-client-ca-file=/etc/davit/store-client-ca/ca.crt
{{- end }}
{{- end -}}

{{- define "davit.args.boot" -}}
- --store={{ include "davit.store.url" . }}
- --store-token-file=/var/run/secrets/davit.dev/token
{{- if include "davit.store.hasCa" . }}
- --store-ca-file=/etc/davit/store-ca/ca.crt
{{- end }}
{{- if .Values.boot.clientCertificate.existingSecret }}
- --store-cert-file=/etc/davit/client-certificate/tls.crt
- --store-key-file=/etc/davit/client-certificate/tls.key
{{- end }}
- --copy-file=/var/lib/davit/copy
{{- if .Values.assets.fetchFrom }}
- --fetch-assets
{{- end }}
{{ include "davit.args.service" . }}
{{- end -}}

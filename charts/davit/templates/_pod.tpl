{{- /* What the pods of davit serve and davit boot have in common. */ -}}

{{- /* The pod's values for followers: those of `boot`, or else those of the pod. */ -}}
{{- define "davit.boot.settings" -}}
{{- $settings := dict -}}
{{- range list "resources" "podAnnotations" "podLabels" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints"
  "priorityClassName" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" "extraContainers" "initContainers" -}}
{{- $_ := set $settings . (get $.Values.boot . | default (get $.Values .) | default dict) -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{- /* Labels and annotations of a pod. Takes root, component and settings. */ -}}
{{- define "davit.pod.metadata" -}}
labels:
  {{- include "davit.podLabels" . | nindent 2 }}
  # By this Services know the pods of both kinds.
  davit.dev/server: "true"
  {{- with .settings.podLabels }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- $annotations := dict "kubectl.kubernetes.io/default-container" "davit" -}}
{{- if .root.Values.assets.download -}}
{{- $_ := set $annotations "checksum/assets" (toYaml .root.Values.assets.download | sha256sum) -}}
{{- end -}}
{{- with .settings.podAnnotations }}{{ $annotations = merge (tpl (toYaml .) $.root | fromYaml) $annotations }}{{ end }}
annotations:
  {{- toYaml $annotations | nindent 2 }}
{{- end -}}

{{- /* The fields of a pod beside its containers and volumes. Takes root and settings. */ -}}
{{- define "davit.pod.fields" -}}
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml (.root.Values.podSecurityContext | default dict) | nindent 2 }}
terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
dnsPolicy: {{ .root.Values.dnsPolicy }}
{{- with .root.Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $.settings $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Init containers: the user's, then the download of assets. Takes root and settings. */ -}}
{{- define "davit.pod.initContainers" -}}
{{- if or .settings.initContainers .root.Values.assets.download -}}
initContainers:
  {{- with .settings.initContainers }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
  {{- if .root.Values.assets.download }}
  - name: fetch-assets
    {{- include "davit.container.image" .root | nindent 4 }}
    args:
      - fetch-assets
      - --list=/etc/davit/assets/list.yaml
      - --assets-dir=/var/lib/davit-assets
    {{- include "davit.container.env" (dict "own" list "settings" .settings) | nindent 4 }}
    volumeMounts:
      - name: asset-list
        mountPath: /etc/davit/assets
        readOnly: true
      - name: assets
        mountPath: /var/lib/davit-assets
      - name: tmp
        mountPath: /tmp
      {{- with .settings.extraVolumeMounts }}
      {{- tpl (toYaml .) $.root | nindent 6 }}
      {{- end }}
    resources:
      {{- toYaml (.settings.resources | default dict) | nindent 6 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "davit.container.image" -}}
image: {{ include "davit.image" (dict "image" .Values.image "defaultTag" .Chart.AppVersion) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml (.Values.securityContext | default dict) | nindent 2 }}
{{- end -}}

{{- /* Environment. Takes own, a list of name and value, and settings, whose extraEnv wins. */ -}}
{{- define "davit.container.env" -}}
{{- $given := list -}}
{{- range .settings.extraEnv }}{{ $given = append $given .name }}{{ end -}}
{{- $env := list -}}
{{- range .own }}{{ if not (has .name $given) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- with concat $env (.settings.extraEnv | default list) }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Environment, probes and resources of davit's own container. Takes root, settings, component, and env, a list or none. */ -}}
{{- define "davit.container.running" -}}
{{- $own := .env | default list -}}
{{- with include "davit.heapMebibytes" (dict "root" .root "resources" .settings.resources "component" .component) -}}
{{- $own = append $own (dict "name" "NODE_OPTIONS" "value" (printf "--max-old-space-size=%s" .)) -}}
{{- end -}}
{{- include "davit.container.env" (dict "own" $own "settings" .settings) }}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" "lifecycle" }}
{{- with get $.root.Values $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
resources:
  {{- toYaml (.settings.resources | default dict) | nindent 2 }}
{{- end -}}

{{- /* Mounts of davit's own container, wherever it runs. Takes root and settings. */ -}}
{{- define "davit.container.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: assets
  mountPath: /var/lib/davit-assets
  {{- if not .root.Values.assets.fetchFrom }}
  readOnly: true
  {{- end }}
{{- if .root.Values.signing.enabled }}
# A directory, not a file of it: the kubelet then replaces it as a whole, and davit sees the new key.
- name: signing
  mountPath: /etc/davit/signing
  readOnly: true
{{- end }}
{{- if (.root.Values.secretsKey).existingSecret }}
- name: secrets-key
  mountPath: /etc/davit/secrets-key
  readOnly: true
{{- end }}
{{- if (.root.Values.https).enabled }}
- name: https
  mountPath: /etc/davit/https
  readOnly: true
{{- end }}
{{- if .root.Values.operations.tokens.existingSecret }}
- name: ops-tokens
  mountPath: /etc/davit/ops-tokens
  readOnly: true
{{- end }}
{{- if (.root.Values.operations.adminTokens).existingSecret }}
- name: ops-admin-tokens
  mountPath: /etc/davit/ops-admin-tokens
  readOnly: true
{{- end }}
{{- with .settings.extraVolumeMounts }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- /* The volumes of these mounts. Takes root and settings. */ -}}
{{- define "davit.pod.volumes" -}}
- name: tmp
  emptyDir: {}
- name: assets
  {{- include "davit.assets.volume" .root | nindent 2 }}
{{- if .root.Values.assets.download }}
- name: asset-list
  configMap:
    name: {{ include "davit.fullname" .root }}-assets
{{- end }}
{{- with .root.Values.signing }}
{{- if .enabled }}
- name: signing
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .keyKey }}
        path: key
      {{- with .passphraseKey }}
      - key: {{ . }}
        path: passphrase
      {{- end }}
      {{- with .grubKeyKey }}
      - key: {{ . }}
        path: grub-key
      {{- end }}
      {{- with .grubPassphraseKey }}
      - key: {{ . }}
        path: grub-passphrase
      {{- end }}
{{- end }}
{{- end }}
{{- with .root.Values.secretsKey }}
{{- if .existingSecret }}
- name: secrets-key
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .key | default "keys" }}
        path: keys
{{- end }}
{{- end }}
{{- with .root.Values.https }}
{{- if .enabled }}
- name: https
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
      {{- with .clientCaKey }}
      - key: {{ . }}
        path: client-ca.crt
      {{- end }}
{{- end }}
{{- end }}
{{- with .root.Values.operations.tokens }}
{{- if .existingSecret }}
- name: ops-tokens
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .key }}
        path: tokens
{{- end }}
{{- end }}
{{- with .root.Values.operations.adminTokens }}
{{- if .existingSecret }}
- name: ops-admin-tokens
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - key: {{ .key }}
        path: tokens
{{- end }}
{{- end }}
{{- with .settings.extraVolumes }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- define "davit.assets.volume" -}}
{{- with .Values.assets -}}
{{- if .existingClaim -}}
persistentVolumeClaim:
  claimName: {{ .existingClaim }}
{{- else if .image.reference -}}
image:
  reference: {{ .image.reference }}
  pullPolicy: {{ .image.pullPolicy }}
{{- else if .emptyDir.sizeLimit -}}
emptyDir:
  sizeLimit: {{ .emptyDir.sizeLimit }}
{{- else -}}
emptyDir: {}
{{- end -}}
{{- end -}}
{{- end -}}

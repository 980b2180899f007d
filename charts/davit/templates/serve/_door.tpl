{{- /* Files of the store's door and of etcd: certificates, tokens and authorities, each only where it is used. */ -}}

{{- define "davit.serve.doorFiles" -}}
{{- if include "davit.hasStore" . -}}
{{- with include "davit.store.certificateSecret" . }}
- {name: store-certificate, secret: {{ . }}, keys: {tls.crt: tls.crt, tls.key: tls.key}}
{{- end }}
{{- with .Values.store.authentication.tokens }}
{{- if .existingSecret }}
- {name: store-tokens, secret: {{ .existingSecret }}, keys: {tokens: {{ .key }}}}
{{- end }}
{{- end }}
{{- with .Values.store.authentication.clientCa }}
{{- if .existingSecret }}
- {name: store-client-ca, secret: {{ .existingSecret }}, keys: {ca.crt: {{ .key }}}}
{{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "davit.serve.files" -}}
{{- include "davit.serve.doorFiles" . }}
{{- if include "davit.hasEtcd" . }}
{{- include "davit.etcd.files" . }}
{{- end }}
{{- end -}}

{{- define "davit.serve.doorMounts" -}}
{{- range include "davit.serve.files" . | fromYamlArray }}
- name: {{ .name }}
  mountPath: /etc/davit/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "davit.serve.doorVolumes" -}}
{{- range include "davit.serve.files" . | fromYamlArray }}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      {{- range $path, $key := .keys }}
      - key: {{ $key }}
        path: {{ $path }}
      {{- end }}
{{- end }}
{{- end -}}

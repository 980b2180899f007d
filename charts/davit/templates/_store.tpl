{{- /* The store's Service, its certificate, and who may come in. */ -}}

{{- define "davit.store.name" -}}
{{- include "davit.fullname" . }}-store
{{- end -}}

{{- define "davit.store.host" -}}
{{- printf "%s.%s.svc" (include "davit.store.name" .) .Release.Namespace -}}
{{- end -}}

{{- define "davit.store.url" -}}
{{- printf "https://%s:2379" (include "davit.store.host" .) -}}
{{- end -}}

{{- /* The Secret with certificate and key; "" where davit makes its own. */ -}}
{{- define "davit.store.certificateSecret" -}}
{{- if .Values.store.certificate.certManager.enabled -}}
{{- include "davit.store.name" . }}-certificate
{{- else -}}
{{- .Values.store.certificate.existingSecret | default "" -}}
{{- end -}}
{{- end -}}

{{- define "davit.store.certificateNames" -}}
{{- $name := include "davit.store.name" . -}}
{{- $host := include "davit.store.host" . -}}
{{- $members := include "davit.hasEtcd" . | eq "true" | ternary (list (printf "*.%s" $host)) list -}}
{{- toYaml (concat (list $host $name (printf "%s.%s" $name .Release.Namespace)) $members (.Values.store.certificate.extraNames | default list)) -}}
{{- end -}}

{{- /* "true" when clients are given an authority to trust, "" when they trust the public ones. */ -}}
{{- define "davit.store.hasCa" -}}
{{- if or (not (include "davit.store.certificateSecret" .)) .Values.store.certificate.caKey -}}true{{- end -}}
{{- end -}}

{{- /* Where clients find it: only the authority, never the key beside it. */ -}}
{{- define "davit.store.caVolume" -}}
name: store-ca
{{- with include "davit.store.certificateSecret" . }}
secret:
  secretName: {{ . }}
  defaultMode: 0440
  items:
    - key: {{ $.Values.store.certificate.caKey }}
      path: ca.crt
{{- else }}
configMap:
  name: {{ include "davit.store.name" . }}-ca
  # davit writes this key once it has made its authority; until then pods wait for it.
  items:
    - key: ca.crt
      path: ca.crt
{{- end }}
{{- end -}}


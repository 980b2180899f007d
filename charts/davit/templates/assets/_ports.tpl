{{- /* The ports of the URLs of assets.download, each once, as a YAML list. */ -}}
{{- define "davit.assets.ports" -}}
{{- $urls := list -}}
{{- range .Values.assets.download }}{{ $urls = append $urls .url }}{{ end -}}
{{- if .Values.assets.fetchFrom }}{{ $urls = concat $urls (list "http://any" "https://any") }}{{ end -}}
{{- include "davit.portsOf" $urls -}}
{{- end -}}

{{- /* The ports of a list of URLs, each once, as a YAML list. */ -}}
{{- define "davit.portsOf" -}}
{{- $ports := list -}}
{{- range . -}}
{{- $url := urlParse . -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) -}}
{{- $ports = append $ports (int ($port | default (eq $url.scheme "http" | ternary "80" "443"))) -}}
{{- end -}}
{{- toYaml ($ports | uniq | sortAlpha) -}}
{{- end -}}

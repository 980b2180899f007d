{{- /* The ports of the URLs of assets.download, each once, as a YAML list. */ -}}
{{- define "davit.assets.ports" -}}
{{- $ports := list -}}
{{- range .Values.assets.download -}}
{{- $url := urlParse .url -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) -}}
{{- $ports = append $ports (int ($port | default (eq $url.scheme "http" | ternary "80" "443"))) -}}
{{- end -}}
{{- toYaml ($ports | uniq | sortAlpha) -}}
{{- end -}}

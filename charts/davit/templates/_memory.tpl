{{- /* How Node's heap, the cache of assets and the store fit into the memory limit. */ -}}

{{- /* A quantity such as 1Gi, 512M or 1073741824 in whole MiB; "" for none. */ -}}
{{- define "davit.mebibytes" -}}
{{- $text := . | toString -}}
{{- if kindIs "float64" . }}{{ $text = . | int64 | toString }}{{ end -}}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $number := trimSuffix $unit $text -}}
{{- if and $number (hasKey $factors $unit) (regexMatch "^[0-9]+(\\.[0-9]+)?$" $number) -}}
{{- divf (mulf $number (get $factors $unit)) 1048576 | floor | int64 -}}
{{- end -}}
{{- end -}}

{{- /*
  The limit of one heap. Seven eighths of what the memory limit leaves beside the cache of assets and the threads for jobs
  are for the boot threads. `auto` counts as one. The first takes 64 MiB beside its heap, and each further one 24 MiB, for
  buffers of requests and the garbage collector. Each heap has the same size, and 48 MiB of it are for young objects,
  which the limit does not count. The threads for jobs of `davit boot` make slow configs and hash assets, and those of
  `davit serve` also try Groups and manifests (src/lib/memory-limit.ts). Takes root, resources and component, which
  is `serve` or `boot`. Returns "" without a limit, or for a limit in an unknown unit.
*/ -}}
{{- define "davit.heapMebibytes" -}}
{{- $limit := dig "limits" "memory" "" (.resources | default dict) -}}
{{- with include "davit.mebibytes" $limit -}}
{{- $cache := include "davit.mebibytes" $.root.Values.assets.cacheBytes | int64 -}}
{{- $jobs := get (dict "serve" 540 "boot" 220) $.component -}}
{{- $rest := sub (int64 .) (add $cache $jobs) -}}
{{- $threads := include "davit.bootThreads" $.root | int64 -}}
{{- sub (div (sub (div (mul $rest 7) 8) (add 40 (mul 24 $threads))) $threads) 48 -}}
{{- end -}}
{{- end -}}

{{- define "davit.bootThreads" -}}
{{- if kindIs "string" .Values.bootThreads }}1{{ else }}{{ .Values.bootThreads | int64 }}{{ end -}}
{{- end -}}

{{- /*
  The least heap of davit serve: 128 MiB for 10,000 objects, and six times the quota of users' keys, as measured with a
  million keys (772 MiB for 115 MB of names and values).
*/ -}}
{{- define "davit.leastHeapMebibytes" -}}
{{- add 128 (mul 6 (include "davit.mebibytes" .Values.store.quotaBytes | int64)) -}}
{{- end -}}

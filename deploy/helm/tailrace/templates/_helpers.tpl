{{- define "tailrace.name" -}}
{{- printf "%s-%s" .Release.Name .Values.pipeline.name | lower | replace "_" "-" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "tailrace.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "tailrace.name" . }}
{{- end -}}

{{- define "tailrace.labels" -}}
{{ include "tailrace.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "tailrace.checkpoint" -}}
{{- .Values.checkpoint.url | default "/var/lib/tailrace/checkpoint" -}}
{{- end -}}

{{- /* What may be lost, and is better kept: the volume, where there is one. */ -}}
{{- define "tailrace.cache" -}}
{{- ternary "/tmp" "/var/lib/tailrace" (not (empty .Values.checkpoint.url)) -}}
{{- end -}}

{{- /* Jars of spark.jars.packages are not put into the user's home, as the container's file system is read-only. */ -}}
{{- define "tailrace.pipeline" -}}
{{- $spark := dict "spark.jars.ivy" (printf "%s/ivy" (include "tailrace.cache" .)) -}}
{{- $own := dict "checkpoint" (include "tailrace.checkpoint" .) "spark" $spark -}}
{{- merge (dict) (deepCopy .Values.pipeline) $own | toYaml -}}
{{- end -}}

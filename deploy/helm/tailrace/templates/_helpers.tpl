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

{{- define "tailrace.pipeline" -}}
{{- merge (dict) .Values.pipeline (dict "checkpoint" (include "tailrace.checkpoint" .)) | toYaml -}}
{{- end -}}

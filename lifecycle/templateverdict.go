package lifecycle

// TemplateVerdict is the API server's answer to a dry run of a pod of a template. The zero verdict
// means that no dry run was made.
type TemplateVerdict struct {
	// Template identifies the template.
	Template string
	// Refusal is the API server's error; empty if it does not reject the pod.
	Refusal string
	// Unknown is why there is no answer; empty if there is one.
	Unknown string
}

// Refuses reports whether the API server rejects pods of the template.
func (v TemplateVerdict) Refuses(template string) bool {
	return v.Refusal != "" && v.Template == template
}

// IsUnknown reports whether a dry run of the template had no answer.
func (v TemplateVerdict) IsUnknown(template string) bool {
	return v.Unknown != "" && v.Template == template
}

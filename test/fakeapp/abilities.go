package fakeapp

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// AnnotationSecret names a Secret that the ring uses and does not own.
const AnnotationSecret = "ring.test.governor.dev/secret"

// AnnotationReferences has further references of the ring, as JSON.
const AnnotationReferences = "ring.test.governor.dev/references"

// Abilities returns what the planner can do beyond planning.
func Abilities() lifecycle.Abilities[*Ring, World] {
	p := Planner{}
	return lifecycle.Abilities[*Ring, World]{References: references, Unknowns: p.Unknowns, Evidence: p.Evidence, DependsOn: p.DependsOn, Retain: p.Retain}
}

func references(r *Ring) (all []lifecycle.Reference) {
	if name := r.Annotations[AnnotationSecret]; name != "" {
		all = append(all, lifecycle.Reference{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: r.Namespace, Name: name})
	}
	var further []lifecycle.Reference
	if raw := r.Annotations[AnnotationReferences]; raw != "" && json.Unmarshal([]byte(raw), &further) == nil {
		all = append(all, further...)
	}
	return all
}

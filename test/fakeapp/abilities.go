package fakeapp

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/governor-dev/governor/lifecycle"
)

// AnnotationSecret names a Secret that the ring uses and does not own.
const AnnotationSecret = "ring.test.governor.dev/secret"

// Abilities returns what the planner can do beyond planning.
func Abilities() lifecycle.Abilities[*Ring, World] {
	p := Planner{}
	return lifecycle.Abilities[*Ring, World]{References: references, Unknowns: p.Unknowns, Evidence: p.Evidence, DependsOn: p.DependsOn, Retain: p.Retain}
}

func references(r *Ring) []lifecycle.Reference {
	if name := r.Annotations[AnnotationSecret]; name != "" {
		return []lifecycle.Reference{{Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: r.Namespace, Name: name}}
	}
	return nil
}

// Package chaos is the catalogue of manipulations of a PodSet by anyone but the operator. It is data.
package chaos

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Catalogue returns all manipulations of a PodSet, in a fixed order.
func Catalogue() chaos.Catalogue {
	return slices.Concat(chaos.Generate(chaos.Pod, instance), chaos.Pods())
}

// instance is the custom resource with its fields at their limits.
var instance = chaos.Object{
	Kind: "PodSet", APIVersion: "app.example.com/v1alpha1", Scope: chaos.ScopeInstance, Custom: true,
	Edits: []chaos.Edit{
		spec("replicas-0", `{"replicas":0}`, "scales %s to zero"),
		spec("replicas-1", `{"replicas":1}`, "scales %s to one"),
		spec("replicas-9", `{"replicas":9}`, "scales %s to nine"),
		spec("unavailable-all", `{"maxUnavailable":"100%"}`, "permits all pods of %s to be replaced at once"),
		spec("unavailable-one", `{"maxUnavailable":1}`, "permits one pod of %s to be replaced at a time"),
		spec("labels", `{"template":{"metadata":{"labels":{"chaos.governor.dev/at":"1"}}}}`, "adds a label to the pods of %s"),
		spec("annotations", `{"template":{"metadata":{"annotations":{"chaos.governor.dev/at":"1"}}}}`, "adds an annotation to the pods of %s"),
		undone("image", `{"template":{"spec":{"containers":[{"name":"pause","image":"chaos.governor.dev/none:none"}]}}}`, "gives %s an image that does not exist"),
		undone("node-selector", `{"template":{"spec":{"nodeSelector":{"chaos.governor.dev/none":"true"}}}}`, "binds %s to a node that does not exist"),
		undone("service-account-none", `{"template":{"spec":{"serviceAccountName":"chaos-none"}}}`, "gives %s a ServiceAccount that does not exist"),
		undone("paused", `{"paused":true}`, "pauses %s"),
	},
}

func spec(name, patch, sentence string) chaos.Edit {
	return chaos.Edit{Name: name, Patch: `{"spec":` + patch + `}`, Sentence: sentence}
}

// undone is an edit that works only after the user reverts it.
func undone(name, patch, sentence string) chaos.Edit {
	e := spec(name, patch, sentence)
	e.Undone = true
	return e
}

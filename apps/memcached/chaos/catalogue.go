// Package chaos is the catalogue of manipulations of a Memcached by anyone but the operator. It is data.
package chaos

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Catalogue returns all manipulations of a Memcached, in a fixed order.
func Catalogue() chaos.Catalogue {
	return slices.Concat(
		chaos.Generate(chaos.Pod, chaos.Deployment, chaos.Service, chaos.EndpointSlice, chaos.PodDisruptionBudget, instance), chaos.Pods(),
	)
}

// instance is the custom resource with its fields at their limits.
var instance = chaos.Object{
	Kind: "Memcached", APIVersion: "cache.example.com/v1alpha1", Scope: chaos.ScopeInstance, Custom: true,
	Edits: []chaos.Edit{
		spec("size-1", `{"size":1}`, "scales %s to one"),
		spec("size-5", `{"size":5}`, "scales %s to five"),
		spec("memory", `{"memory":"32Mi"}`, "changes the memory of %s"),
		spec("port", `{"containerPort":11222}`, "changes the port of %s"),
		spec("annotations", `{"pod":{"annotations":{"chaos.governor.dev/at":"1"}}}`, "adds an annotation to the pods of %s"),
		spec("labels", `{"pod":{"labels":{"chaos.governor.dev/at":"1"}}}`, "adds a label to the pods of %s"),
		undone("version-unavailable", `{"version":"1.6.99"}`, "gives %s a release that no registry has"),
		undone("image", `{"image":"chaos.governor.dev/none:none"}`, "gives %s an image that does not exist"),
		undone("resources-huge", `{"resources":{"requests":{"cpu":"500"}}}`, "asks for more than a node has for %s"),
		undone("node-selector", `{"pod":{"nodeSelector":{"chaos.governor.dev/none":"true"}}}`, "binds %s to a node that does not exist"),
		undone("priority-none", `{"pod":{"priorityClassName":"chaos-none"}}`, "gives %s a priority class that does not exist"),
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

package chaos

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Actor is the kind of user or program that makes the manipulation.
type Actor string

// The actors.
const (
	ActorUser          Actor = "User"
	ActorAdministrator Actor = "Administrator"
	ActorController    Actor = "Controller"
	ActorMachine       Actor = "Machine"
)

// Verb is what is done. The verbs on API objects need nothing but an API client.
type Verb string

// The verbs.
const (
	// VerbDelete deletes the object with the propagation policy in Detail.
	VerbDelete Verb = "Delete"
	// VerbForceDelete deletes a pod without a grace period.
	VerbForceDelete Verb = "ForceDelete"
	// VerbEvict creates an Eviction of a pod, as a drain does. A disruption budget may
	// refuse it.
	VerbEvict Verb = "Evict"
	// VerbStripLabels removes all labels.
	VerbStripLabels Verb = "StripLabels"
	// VerbStripOwners removes all owner references.
	VerbStripOwners Verb = "StripOwners"
	// VerbAddFinalizer adds [ForeignFinalizer]. It lasts until it is undone.
	VerbAddFinalizer Verb = "AddFinalizer"
	// VerbPatch patches the object with Patch.
	VerbPatch Verb = "Patch"
	// VerbPatchStatus patches the object's status subresource with Patch.
	VerbPatchStatus Verb = "PatchStatus"
	// VerbReplace reads the object in the version in Detail and writes it back whole.
	VerbReplace Verb = "Replace"
	// VerbApply applies Patch by server-side apply, and takes the fields from other managers.
	VerbApply Verb = "Apply"
	// VerbClientApply writes the object back whole, with the annotation of a client-side apply,
	// and without what the cluster has added.
	VerbClientApply Verb = "ClientApply"
	// VerbRecreate deletes the object with the propagation policy in Detail, and creates it again
	// as soon as its name is free.
	VerbRecreate Verb = "Recreate"
	// VerbSwap exchanges the data of two objects of the kind.
	VerbSwap Verb = "Swap"
	// VerbIsolate creates a NetworkPolicy that refuses all ingress to the pod. It lasts
	// until it is undone.
	VerbIsolate Verb = "Isolate"
	// VerbKill ends the pod's process with SIGKILL, on its node.
	VerbKill Verb = "Kill"
	// VerbFreeze stops the pod's process with SIGSTOP. It lasts until it is undone.
	VerbFreeze Verb = "Freeze"
	// VerbMachine does to a node or the API server what Detail says. It may last.
	VerbMachine Verb = "Machine"
	// VerbAdmin runs the application's admin command in Detail.
	VerbAdmin Verb = "Admin"
)

// Part is what of a member goes at the hand of a manipulation itself.
type Part string

// The parts. A copy of the data is lost with its volume once no pod uses it. With
// volatile storage it is lost with its pod.
const (
	PartNone   Part = ""
	PartPod    Part = "Pod"
	PartVolume Part = "Volume"
)

// Manipulation is one thing that is done to one object, or to all objects of a kind.
type Manipulation struct {
	// Name is unique in a catalogue: the object, the verb and the detail, with dashes.
	Name string
	// Actor is the kind of user or program that makes the manipulation.
	Actor Actor
	// Object is what it touches.
	Object Object
	// Verb is what is done to it.
	Verb Verb
	// Detail is the propagation policy, the field, the version or the command.
	Detail string
	// Patch is the patch of VerbPatch, VerbPatchStatus and VerbApply: see [Manipulation.PatchType].
	// The word $NOW in it is the present time, and $CA an authority that signed nothing, in base64.
	Patch string
	// All says that every object of the kind that belongs to the instance is touched,
	// and not only one.
	All bool
	// Sentence says it in plain words.
	Sentence string
	// Safe says that it belongs to the subset that kubectl governor chaos may run.
	Safe bool
	// Takes is what of a member goes by the manipulation itself.
	Takes Part
	// Lasts says that it goes on until it is undone.
	Lasts bool
	// Refused says that the API server must refuse it.
	Refused bool
}

// HurtsOperator reports whether the manipulation touches the operator or one of its own objects,
// and so all instances.
func (m Manipulation) HurtsOperator() bool {
	return m.Object.Scope == ScopeOperator || m.Object.Scope == ScopeCluster
}

// DeletesInstance reports whether the manipulation deletes the instance itself.
func (m Manipulation) DeletesInstance() bool {
	return m.Object.Custom && (m.Verb == VerbDelete || m.Verb == VerbRecreate)
}

// PatchType is the type of Patch: a JSON patch is a list, a merge patch an object.
func (m Manipulation) PatchType() types.PatchType {
	if strings.HasPrefix(m.Patch, "[") {
		return types.JSONPatchType
	}
	return types.MergePatchType
}

// DestroysCopy reports whether the manipulation by itself may destroy a copy of the
// data. With volatile storage the data goes with the pod.
func (m Manipulation) DestroysCopy(volatile bool) bool {
	return m.Takes == PartVolume || volatile && m.Takes == PartPod
}

// Catalogue is a list of manipulations, in a fixed order.
type Catalogue []Manipulation

// Named returns the manipulation with the name.
func (c Catalogue) Named(name string) (Manipulation, bool) {
	i := slices.IndexFunc(c, func(m Manipulation) bool { return m.Name == name })
	if i < 0 {
		return Manipulation{}, false
	}
	return c[i], true
}

// Safe returns the subset that kubectl governor chaos may run: pods, the network as far
// as a NetworkPolicy reaches, and configuration that the operator puts back.
func (c Catalogue) Safe() Catalogue {
	return c.Where(func(m Manipulation) bool { return m.Safe })
}

// Where returns the manipulations for which keep returns true.
func (c Catalogue) Where(keep func(Manipulation) bool) Catalogue {
	var kept Catalogue
	for _, m := range c {
		if keep(m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// Validate returns an error that names the first entry without a name, a sentence or an
// object, or whose name is taken.
func (c Catalogue) Validate() error {
	taken := map[string]bool{}
	for _, m := range c {
		switch {
		case m.Name == "" || strings.ContainsAny(m.Name, " @+"):
			return fmt.Errorf("%q is no name: it must not be empty, and have no space, @ or +", m.Name)
		case taken[m.Name]:
			return fmt.Errorf("%s is in the catalogue twice", m.Name)
		case m.Sentence == "" || m.Verb == "" || m.Actor == "" || m.Object.Kind == "":
			return fmt.Errorf("%s needs a sentence, a verb, an actor and an object", m.Name)
		}
		taken[m.Name] = true
	}
	return nil
}

package chaos

import (
	"slices"
	"strings"
	"unicode"
)

// ForeignFinalizer is the finalizer that VerbAddFinalizer adds. No controller serves it.
const ForeignFinalizer = "chaos.governor.dev/foreign"

// Where an object is found.
const (
	// ScopeInstance means that the object has the instance's label or an owner reference
	// to the instance, or is the instance.
	ScopeInstance Scope = "Instance"
	// ScopeOperator means that the object is in the operator's namespace.
	ScopeOperator Scope = "Operator"
	// ScopeCluster means that the object belongs to the operator, and to no namespace.
	ScopeCluster Scope = "Cluster"
	// ScopeNode means a machine or a process, and no API object.
	ScopeNode Scope = "Node"
)

// Scope says where an object is found.
type Scope string

// Object is a kind of object that manipulations touch.
type Object struct {
	// Kind and APIVersion are those of the API, such as StatefulSet and apps/v1.
	Kind, APIVersion string
	// Scope says where it is found.
	Scope Scope
	// Names are those of the operator's objects; empty for all of the scope.
	Names []string
	// Takes is what of a member goes when the object is deleted.
	Takes Part
	// Edits are the fields that matter, each with the values that matter.
	Edits []Edit
	// Configuration says that the operator puts it back without an effect on members, so
	// that its manipulations are safe.
	Configuration bool
	// Custom says that it is the custom resource: its deletion is what the user declares. Only
	// [Deletions] has it.
	Custom bool
	// Prefix is put before the names of its manipulations, to tell versions of a kind apart.
	Prefix string
}

// Edit is one value of one field.
type Edit struct {
	// Name says which field and value, with dashes.
	Name string
	// Patch is a JSON merge patch or a JSON patch.
	Patch string
	// Undone says that the edit works only when the user takes it back, and so lasts until
	// then.
	Undone bool
	// Sentence continues "The user ", and has %s for the object.
	Sentence string
	// Unsafe takes the edit out of the safe subset of a configuration.
	Unsafe bool
	// Safe puts the edit of another object into the safe subset.
	Safe bool
	// Refused says that the API server must refuse the edit.
	Refused bool
}

// Generate returns the product of the objects with the verbs, the propagation policies
// and their own edits.
func Generate(objects ...Object) Catalogue {
	var all Catalogue
	for _, o := range objects {
		if !o.Custom {
			all = append(all, deletions(o)...)
		}
		all = append(all, metadata(o)...)
		for _, e := range o.Edits {
			all = append(all, edited(o, e))
		}
		all = append(all, applied(o)...)
	}
	return all
}

// applied are the edits by server-side apply. It removes no field and knows no JSON patch.
func applied(o Object) Catalogue {
	var all Catalogue
	for _, e := range o.Edits {
		if strings.HasPrefix(e.Patch, "[") || strings.Contains(e.Patch, "null") || e.Refused {
			continue
		}
		m := on(o, VerbApply, e.Name, "A client "+strings.ReplaceAll(e.Sentence, "%s", one(o))+" by server-side apply, with force.")
		m.Actor, m.Patch, m.Lasts = ActorController, e.Patch, e.Undone
		all = append(all, m)
	}
	return all
}

// Deletions are the deletions of the custom resource with each propagation policy, and the deletions after
// which it is created again at once.
func Deletions(o Object) Catalogue {
	var all Catalogue
	for _, policy := range propagation {
		all = append(all,
			on(o, VerbDelete, policy, "The user deletes "+one(o)+" with propagation policy "+policy+"."),
			on(o, VerbRecreate, policy, "The user deletes "+one(o)+" with propagation policy "+policy+", and creates it again."))
	}
	return all
}

// propagation policies of the API, and in the name of a manipulation.
var propagation = []string{"Background", "Foreground", "Orphan"}

func deletions(o Object) Catalogue {
	var all Catalogue
	for _, policy := range propagation {
		m := on(o, VerbDelete, policy, "The user deletes "+one(o)+" with propagation policy "+policy+".")
		m.Takes = o.Takes
		if policy == "Orphan" && o.Takes == PartPod && o.Kind != "Pod" {
			m.Takes = PartNone // the pods stay
		}
		m.Safe = o.Configuration && policy != "Orphan" || o.Kind == "Pod" && policy == "Background"
		all = append(all, m)
	}
	every := all[0]
	every.Name, every.All, every.Safe = every.Name+"-all", true, false
	every.Sentence = "The user deletes every " + o.Kind + " of the instance."
	return append(all, every)
}

// With returns the object with further edits.
func (o Object) With(edits ...Edit) Object {
	o.Edits = append(slices.Clone(o.Edits), edits...)
	return o
}

func metadata(o Object) Catalogue {
	labels := on(o, VerbStripLabels, "", "The user removes all labels from "+one(o)+".")
	owners := on(o, VerbStripOwners, "", "The user removes all owner references from "+one(o)+".")
	foreign := on(o, VerbAddFinalizer, "", "Another controller adds its finalizer to "+one(o)+".")
	foreign.Actor, foreign.Lasts = ActorController, true
	labels.Safe, owners.Safe = o.Configuration, o.Configuration
	switch {
	case o.Custom:
		return Catalogue{labels, foreign}
	case o.Kind == EndpointSlice.Kind:
		// Kubernetes' own controller waits for ever for a slice that has lost its labels
		// (endpointslice tracker), and makes no other: no operator can heal that.
		return Catalogue{owners, foreign}
	}
	return Catalogue{labels, owners, foreign}
}

func edited(o Object, e Edit) Manipulation {
	m := on(o, VerbPatch, e.Name, "The user "+strings.ReplaceAll(e.Sentence, "%s", one(o))+".")
	m.Patch, m.Lasts, m.Refused = e.Patch, e.Undone, e.Refused
	m.Safe = e.Safe || o.Configuration && !e.Unsafe
	return m
}

// on is a manipulation by a user, with its name.
func on(o Object, verb Verb, detail, sentence string) Manipulation {
	words := []string{o.Prefix + strings.ToLower(o.Kind), Dashed(string(verb))}
	if verb == VerbPatch {
		words[1] = "edit"
	}
	if detail != "" {
		words = append(words, strings.ToLower(detail))
	}
	return Manipulation{
		Name: strings.Join(words, "-"), Actor: ActorUser, Object: o, Verb: verb, Detail: detail, Sentence: sentence,
	}
}

func one(o Object) string {
	if strings.ContainsRune("AEIO", rune(o.Kind[0])) {
		return "an " + o.Kind
	}
	return "a " + o.Kind
}

// Dashed is StripLabels as strip-labels, as names of manipulations have it.
func Dashed(camel string) string {
	var b strings.Builder
	for i, r := range camel {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(camel[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

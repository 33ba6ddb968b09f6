// Package revision stores the specs that users declared, so that users can roll back to
// one. Each is an apps/v1 ControllerRevision that the object owns, numbered 1, 2, 3…. The
// last ten are kept, and the newest one that settled.
package revision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// Limit is the number of revisions that are kept per object. The newest one that settled is
// kept beyond it.
const Limit = 10

// Label marks a ControllerRevision that has the spec of an object. Its value is the kind of the
// object, in lower case.
const Label = "governor.dev/revision-of"

// Annotations of a ControllerRevision.
const (
	// AnnotationChangedBy is the field manager that wrote the spec.
	AnnotationChangedBy = "governor.dev/changed-by"
	// AnnotationSettled is "true" once the object has settled with this spec.
	AnnotationSettled = "governor.dev/settled"
	// AnnotationDigest is the digest of the spec.
	AnnotationDigest = "governor.dev/spec-digest"
	// AnnotationApplied names the objects that were applied for the spec when it settled,
	// as Kind/Name, separated by commas. It is written where the policy only reports
	// drift.
	AnnotationApplied = "governor.dev/applied-objects"
	// AnnotationGeneration is the object's generation at which the spec was accepted.
	AnnotationGeneration = "governor.dev/generation"
)

// Revision is one spec that was declared and accepted.
type Revision struct {
	// Number counts an object's revisions from 1.
	Number int64 `json:"number"`
	// Generation is the object's generation at which the spec was accepted.
	Generation int64 `json:"generation"`
	// At is the time at which the spec was accepted.
	At time.Time `json:"at"`
	// By is the field manager that wrote the spec; empty if unknown.
	By string `json:"by,omitempty"`
	// Settled reports whether the object has settled with this spec.
	Settled bool `json:"settled"`
	// Applied names the objects that were applied for the spec; none if not recorded.
	Applied []string `json:"applied,omitempty"`
	// Digest identifies the spec.
	Digest string `json:"digest"`
	// APIVersion is the API version of Spec.
	APIVersion string `json:"apiVersion"`
	// Spec is the declared spec as JSON; empty if only metadata was read.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// content is the data of a ControllerRevision.
type content struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Spec       json.RawMessage `json:"spec"`
}

// Of decodes a ControllerRevision.
func Of(c *appsv1.ControllerRevision) (Revision, error) {
	r := ofMetadata(c, c.Revision)
	var decoded content
	if err := json.Unmarshal(c.Data.Raw, &decoded); err != nil {
		return r, fmt.Errorf("the revision %s cannot be read: %w", c.Name, err)
	}
	r.APIVersion, r.Spec = decoded.APIVersion, decoded.Spec
	return r, nil
}

func ofMetadata(o metav1.Object, number int64) Revision {
	annotations := o.GetAnnotations()
	generation, _ := strconv.ParseInt(annotations[AnnotationGeneration], 10, 64)
	return Revision{
		Number: number, Generation: generation, At: o.GetCreationTimestamp().Time, By: annotations[AnnotationChangedBy],
		Settled: annotations[AnnotationSettled] == "true", Digest: annotations[AnnotationDigest],
		Applied: strings.FieldsFunc(annotations[AnnotationApplied], func(r rune) bool { return r == ',' }),
	}
}

// numberOf returns the number at the end of a ControllerRevision's name, or 0.
func numberOf(name string) int64 {
	n, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	return n
}

// Name returns the name of the ControllerRevision. It is unique per UID of the object.
func Name(kind string, owner metav1.Object, number int64) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(owner.GetUID()))
	return fmt.Sprintf("%s.%s-%s-%d", owner.GetName(), strings.ToLower(kind), strconv.FormatUint(sum.Sum64()>>24, 36), number)
}

// Selector selects the ControllerRevisions of one object.
func Selector(kind, name string) map[string]string {
	return map[string]string{Label: strings.ToLower(kind), lifecycle.LabelInstance: name}
}

// SpecOf returns the spec of an object as JSON, and its digest.
func SpecOf(obj runtime.Object) (spec json.RawMessage, digest string, err error) {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the spec: %w", err)
	}
	if spec, err = json.Marshal(all["spec"]); err != nil {
		return nil, "", fmt.Errorf("cannot encode the spec: %w", err)
	}
	return spec, Digest(spec), nil
}

// Digest identifies a spec; whitespace does not matter.
func Digest(spec json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, spec); err != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:16])
}

// controllerRevision returns the ControllerRevision to create for the revision.
func controllerRevision(owner client.Object, gvk schema.GroupVersionKind, app string, r Revision) (*appsv1.ControllerRevision, error) {
	raw, err := json.Marshal(content{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Spec: r.Spec})
	if err != nil {
		return nil, err
	}
	labels := Selector(gvk.Kind, owner.GetName())
	labels[lifecycle.LabelApp], labels[lifecycle.LabelManagedBy] = app, apply.Manager
	c := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: Name(gvk.Kind, owner, r.Number), Labels: labels,
			Annotations:     map[string]string{AnnotationDigest: r.Digest, AnnotationGeneration: strconv.FormatInt(r.Generation, 10)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)},
		},
		Revision: r.Number,
		Data:     runtime.RawExtension{Raw: raw},
	}
	if r.By != "" {
		c.Annotations[AnnotationChangedBy] = r.By
	}
	if r.Settled {
		c.Annotations[AnnotationSettled] = "true"
	}
	return c, nil
}

// Sort sorts revisions, the oldest first.
func Sort(all []Revision) {
	slices.SortFunc(all, func(a, b Revision) int { return int(a.Number - b.Number) })
}

// LastSettled returns the newest revision that settled with a spec other than the present
// one, and false if there is none. The revisions must be sorted.
func LastSettled(all []Revision, present string) (Revision, bool) {
	for _, r := range slices.Backward(all) {
		if r.Settled && r.Digest != present {
			return r, true
		}
	}
	return Revision{}, false
}

// Complete reports whether the revisions are all that an object ever had: none was deleted. The
// revisions must be sorted.
func Complete(all []Revision) bool {
	return len(all) == 0 || all[len(all)-1].Number == int64(len(all))
}

// Numbered returns the revision with that number, and false if it is not kept.
func Numbered(all []Revision, number int64) (Revision, bool) {
	i := slices.IndexFunc(all, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return Revision{}, false
	}
	return all[i], true
}

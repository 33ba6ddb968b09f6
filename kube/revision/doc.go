// Package revision keeps what users declared, one spec after the other, so that they
// can return to one: each is an apps/v1 ControllerRevision owned by the object, numbered
// 1, 2, 3…, of which the last ten are kept.
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

// Limit is how many revisions of one object are kept.
const Limit = 10

// Label marks what keeps a revision; its value is the kind of the object, in lower case.
const Label = "governor.dev/revision-of"

// Annotations of what keeps a revision.
const (
	// AnnotationBy is the field manager that wrote the spec.
	AnnotationBy = "governor.dev/changed-by"
	// AnnotationSettled is "true" once everything was as this spec declares.
	AnnotationSettled = "governor.dev/settled"
	// AnnotationDigest is the digest of the spec.
	AnnotationDigest = "governor.dev/spec-digest"
	// AnnotationProvided names what was provided for the spec when everything was as it
	// declares, as Kind/Name with commas between. It is kept where drift is only reported.
	AnnotationProvided = "governor.dev/provided-objects"
	// AnnotationGeneration is the object's generation at which the spec was accepted.
	AnnotationGeneration = "governor.dev/generation"
)

// Revision is one spec that was declared and accepted.
type Revision struct {
	// Number counts an object's revisions from 1.
	Number int64 `json:"number"`
	// Generation is the object's at which the spec was accepted.
	Generation int64 `json:"generation"`
	// At is when it was accepted.
	At time.Time `json:"at"`
	// By is the field manager that wrote it; empty if nobody knows.
	By string `json:"by,omitempty"`
	// Settled says that once everything was as it declares.
	Settled bool `json:"settled"`
	// Provided names what was provided for it; none if that was not kept.
	Provided []string `json:"provided,omitempty"`
	// Digest tells specs apart.
	Digest string `json:"digest"`
	// APIVersion is what Spec is written in.
	APIVersion string `json:"apiVersion"`
	// Spec is what was declared, as JSON; nothing if only metadata was read.
	Spec json.RawMessage `json:"spec,omitempty"`
}

// content is what a ControllerRevision holds.
type content struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Spec       json.RawMessage `json:"spec"`
}

// Of reads what a ControllerRevision keeps.
func Of(c *appsv1.ControllerRevision) (Revision, error) {
	r := ofMetadata(c, c.Revision)
	var kept content
	if err := json.Unmarshal(c.Data.Raw, &kept); err != nil {
		return r, fmt.Errorf("the revision %s cannot be read: %w", c.Name, err)
	}
	r.APIVersion, r.Spec = kept.APIVersion, kept.Spec
	return r, nil
}

func ofMetadata(o metav1.Object, number int64) Revision {
	notes := o.GetAnnotations()
	generation, _ := strconv.ParseInt(notes[AnnotationGeneration], 10, 64)
	return Revision{
		Number: number, Generation: generation, At: o.GetCreationTimestamp().Time, By: notes[AnnotationBy],
		Settled: notes[AnnotationSettled] == "true", Digest: notes[AnnotationDigest],
		Provided: strings.FieldsFunc(notes[AnnotationProvided], func(r rune) bool { return r == ',' }),
	}
}

// numberOf is the number in the name of what keeps a revision; 0 if there is none.
func numberOf(name string) int64 {
	n, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	return n
}

// Name is that of the ControllerRevision: unique to an incarnation of the object.
func Name(kind string, owner metav1.Object, number int64) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(owner.GetUID()))
	return fmt.Sprintf("%s.%s-%s-%d", owner.GetName(), strings.ToLower(kind), strconv.FormatUint(sum.Sum64()>>24, 36), number)
}

// Selector selects what keeps the revisions of one object.
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
		return nil, "", fmt.Errorf("cannot write down the spec: %w", err)
	}
	return spec, Digest(spec), nil
}

// Digest tells specs apart, however they are spaced.
func Digest(spec json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, spec); err != nil {
		return ""
	}
	sum := sha256.Sum256(compact.Bytes())
	return hex.EncodeToString(sum[:16])
}

// keep returns what is to be created to keep the revision for the owner.
func keep(owner client.Object, gvk schema.GroupVersionKind, app string, r Revision) (*appsv1.ControllerRevision, error) {
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
		c.Annotations[AnnotationBy] = r.By
	}
	if r.Settled {
		c.Annotations[AnnotationSettled] = "true"
	}
	return c, nil
}

// Sort brings revisions in order, the oldest first.
func Sort(all []Revision) {
	slices.SortFunc(all, func(a, b Revision) int { return int(a.Number - b.Number) })
}

// LastSettled returns the youngest revision before the present spec that once settled
// and declares something else, and false if there is none. The revisions are in order.
func LastSettled(all []Revision, present string) (Revision, bool) {
	for _, r := range slices.Backward(all) {
		if r.Settled && r.Digest != present {
			return r, true
		}
	}
	return Revision{}, false
}

// Numbered returns the revision of that number, and false if it is not kept.
func Numbered(all []Revision, number int64) (Revision, bool) {
	i := slices.IndexFunc(all, func(r Revision) bool { return r.Number == number })
	if i < 0 {
		return Revision{}, false
	}
	return all[i], true
}

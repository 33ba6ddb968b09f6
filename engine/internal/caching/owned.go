package caching

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/governor-dev/governor/kube/apply"
)

// maxKept is how many bytes of data the cache keeps of a ConfigMap or a Secret, unless the operator wrote them.
const maxKept = 64 << 10

// TrimLarge drops the largest values of large ConfigMaps and Secrets before they are cached, until the rest is small. Every
// user with write access to a namespace can give them the application's label, and 250 of a megabyte would end the operator.
// What the operator itself has written stays, whatever others add to its objects: it decides from it. The number of objects
// has no bound here, nor have objects of a user that names the operator as the manager of their fields: a ResourceQuota
// bounds both.
func TrimLarge(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return o, errors.Join(trim(o.ManagedFields, "data", o.Data), trim(o.ManagedFields, "binaryData", o.BinaryData))
	case *corev1.Secret:
		return o, trim(o.ManagedFields, "data", o.Data)
	}
	return obj, nil
}

// trim drops the largest values that are not the operator's.
func trim[V string | []byte](managed []metav1.ManagedFieldsEntry, field string, data map[string]V) error {
	size := 0
	for key, value := range data {
		size += len(key) + len(value)
	}
	if size <= maxKept {
		return nil
	}
	own, err := ownFields(managed)
	if err != nil {
		return err
	}
	largestFirst := func(a, b string) int { return cmp.Or(cmp.Compare(len(data[b]), len(data[a])), cmp.Compare(a, b)) }
	for _, key := range slices.SortedFunc(maps.Keys(data), largestFirst) {
		if size > maxKept && !own.Has(fieldpath.MakePathOrDie(field, key)) {
			size -= len(key) + len(data[key])
			delete(data, key)
		}
	}
	return nil
}

// ownFields are the fields that the operator has written.
func ownFields(managed []metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	own := &fieldpath.Set{}
	for _, entry := range managed {
		if entry.Manager != apply.Manager || entry.FieldsV1 == nil {
			continue
		}
		some := &fieldpath.Set{}
		if err := some.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("cannot read managed fields: %w", err)
		}
		own = own.Union(some)
	}
	return own, nil
}

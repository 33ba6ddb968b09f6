package caching

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/governor-dev/governor/kube/apply"
)

// maxKept is how many bytes of data the cache keeps of a ConfigMap or a Secret, unless the operator wrote them.
const maxKept = 64 << 10

// TrimLarge drops values of large ConfigMaps and Secrets before they are cached: everyone who may write in a namespace can
// give them the application's label, and 250 of a megabyte would end the operator. What the operator itself has written
// stays, whatever others add to its objects: it decides from it. The number of objects has no bound here, nor have
// objects of a user who names the operator as the manager of their fields: a ResourceQuota bounds both.
func TrimLarge(obj any) (any, error) {
	var err error
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if length(o.Data)+length(o.BinaryData) > maxKept {
			err = dropForeign(o.ManagedFields, map[string]func(key string){
				"data": func(key string) { delete(o.Data, key) }, "binaryData": func(key string) { delete(o.BinaryData, key) },
			}, map[string][]string{"data": keysOf(o.Data), "binaryData": keysOf(o.BinaryData)})
		}
	case *corev1.Secret:
		if length(o.Data) > maxKept {
			err = dropForeign(o.ManagedFields, map[string]func(key string){"data": func(key string) { delete(o.Data, key) }}, map[string][]string{"data": keysOf(o.Data)})
		}
	}
	return obj, err
}

// dropForeign drops the keys of each field that are not the operator's.
func dropForeign(managed []metav1.ManagedFieldsEntry, drop map[string]func(key string), keys map[string][]string) error {
	own := &fieldpath.Set{}
	for _, entry := range managed {
		if entry.Manager != apply.Manager || entry.FieldsV1 == nil {
			continue
		}
		some := &fieldpath.Set{}
		if err := some.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return fmt.Errorf("cannot read managed fields: %w", err)
		}
		own = own.Union(some)
	}
	for field, all := range keys {
		for _, key := range all {
			if !own.Has(fieldpath.MakePathOrDie(field, key)) {
				drop[field](key)
			}
		}
	}
	return nil
}

func keysOf[V any](all map[string]V) []string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	return keys
}

func length[V string | []byte](all map[string]V) (n int) {
	for key, value := range all {
		n += len(key) + len(value)
	}
	return n
}

package apply

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// state tells two versions of an object apart unless only the status differs. Zero is
// that of a kind of which this cannot be told.
type state uint64

var seed = maphash.MakeSeed()

// stateOf is made from the generation, which the API server counts up when anything but
// metadata and status changes, and from the metadata that is compared: what others own
// may be taken from us without another change.
func stateOf(obj client.Object) state {
	if obj.GetGeneration() == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	_ = binary.Write(&h, binary.LittleEndian, obj.GetGeneration())
	for _, pairs := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			part(&h, key, pairs[key])
		}
		part(&h)
	}
	for _, o := range obj.GetOwnerReferences() {
		part(&h, string(o.UID))
	}
	part(&h, obj.GetFinalizers()...)
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" && entry.FieldsV1 != nil {
			part(&h, entry.Manager, string(entry.Operation), entry.FieldsV1.String())
		}
	}
	return state(h.Sum64())
}

// part adds words, so that others joined alike do not look the same.
func part(h *maphash.Hash, words ...string) {
	for _, w := range words {
		_, _ = h.WriteString(w)
		_ = h.WriteByte(0)
	}
	_ = h.WriteByte(1)
}

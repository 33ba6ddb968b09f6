package enforce

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/governor-dev/governor/engine/internal/kindcache"
)

func space(labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: labels}}
}

// A change of a namespace's labels reconciles the objects that other policies select now, and
// only those.
func TestNamespaceLabelsWakeTheObjectsOfTheNamespace(t *testing.T) {
	f := &rings{names: []string{"a", "b"}}
	r := newStore(f)
	r.namespaces = &namespaceLabels{cache: &kindcache.Cache{Known: make(chan struct{})}, needed: make(chan struct{}), byName: map[string]map[string]string{}}
	test, live := space(map[string]string{"stage": "test"}), space(map[string]string{"stage": "live"})
	r.namespaceChanged(nil, test)
	f.wakes(t)
	close(r.namespaces.cache.Known)

	p := newPolicy("p", 1, "a")
	p.Spec.Selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: live.Labels}
	r.policyChanged(nil, p)
	f.wakes(t, "a")
	select {
	case <-r.namespaces.needed:
	default:
		t.Error("the policy does not start the watch of namespaces")
	}
	r.namespaceChanged(test, live)
	f.wakes(t, "a")
	r.namespaceChanged(live, space(map[string]string{"stage": "live", "more": "labels"}))
	f.wakes(t)
	r.namespaceChanged(live, test)
	f.wakes(t, "a")
	if got := r.NamespaceLabels("ns"); got["stage"] != "test" || r.NamespaceLabels("other") != nil {
		t.Errorf("the namespace has %v, an unknown one %v", got, r.NamespaceLabels("other"))
	}
}

// A policy that was in effect without the labels selects other objects once they are known.
func TestKnownNamespacesWakeWhatWasSelectedWithoutThem(t *testing.T) {
	f := &rings{names: []string{"a", "b"}}
	r := newStore(f)
	p := newPolicy("p", 1, "a")
	p.Spec.Selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "live"}}
	r.policyChanged(nil, p)
	f.wakes(t, "a")
	r.namespacesKnown(context.Background())
	f.wakes(t, "a")
}

package main

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/governor-dev/governor/lifecycle/history"
)

const recorded = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: demo}
data: {book.json: '{"entries":[]}'}
`

// TestWhyWithoutHistory: a history without entries is no proof that Governor did nothing, because
// users can delete it.
func TestWhyWithoutHistory(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{
		leaseKind: "LeaseList", eventsv1.SchemeGroupVersion.WithResource("events"): "EventList", corev1.SchemeGroupVersion.WithResource("configmaps"): "ConfigMapList",
	}
	for name, there := range map[string][]runtime.Object{
		"Deleted": nil,
		"Empty":   {objects(t, strings.Replace(recorded, "NAME", history.Name("EtcdCluster", "e"), 1))[0]},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := talking(nil)
			s.ErrOut = &bytes.Buffer{}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, there...)
			if err := s.why(t.Context(), &target{Unstructured: objects(t, cluster)[0], all: client}); err != nil {
				t.Fatal(err)
			}
			want := "\nIts history records no step: Governor has taken none, or the history was deleted.\nNow: it is not ready since "
			if !strings.Contains(out.String(), want) {
				t.Errorf("got:\n%s\nwant %q", out, want)
			}
		})
	}
}

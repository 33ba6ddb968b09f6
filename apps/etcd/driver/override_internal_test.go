package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"
)

// No member restarts with another release than the declared one, which an admission webhook put into its
// StatefulSet. A mirror of the registry is none, and neither is a digest.
func TestOverriddenStatefulSet(t *testing.T) {
	cases := map[string]struct {
		image   string // as stored; empty for the declared one
		refused bool
	}{
		"Declared": {"", false},
		"Mirror":   {"mirror.example.com:5000/coreos/etcd:v3.7.3", false},
		"Pinned":   {"quay.io/coreos/etcd:v3.7.3@sha256:0123", false},
		"Digest":   {"quay.io/coreos/etcd@sha256:0123", false},
		"Other":    {"quay.io/coreos/etcd:v3.5.35", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := plain("")
			s := lifecycle.Step{Name: etcd.Restart, Target: "my-etcd-0", Args: map[string]string{etcd.ArgVersion: "3.7.3", etcd.ArgExposed: string(etcd.Exposed)}}
			stored, err := etcd.StatefulSet(want, etcd.World{}, s)
			if err != nil {
				t.Fatal(err)
			}
			if stored.Namespace = want.Namespace; c.image != "" {
				for i := range stored.Spec.Template.Spec.Containers {
					stored.Spec.Template.Spec.Containers[i].Image = c.image
				}
			}
			declared, err := etcd.StatefulSet(want, etcd.World{}, s)
			if err != nil {
				t.Fatal(err)
			}
			switch err := overridden(declared, stored); {
			case (err != nil) != c.refused:
				t.Errorf("got %v", err)
			case c.refused && !strings.Contains(err.Error(), c.image):
				t.Errorf("the message does not name the image: %v", err)
			}
		})
	}
}

// A member does not start, either, with another release that a webhook puts into a StatefulSet: nothing is stored.
func TestOverriddenStatefulSetIsNotStored(t *testing.T) {
	for name, c := range map[string]struct {
		image  string
		stored bool
	}{"Other": {"quay.io/coreos/etcd:v3.5.35", false}, "Mirror": {"mirror.example.com/etcd:v3.7.3", true}} {
		t.Run(name, func(t *testing.T) {
			want := plain("")
			want.UID = "u"
			override := interceptor.Funcs{Apply: func(ctx context.Context, base client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				content := obj.(runtime.Unstructured).UnstructuredContent()
				containers, _, _ := unstructured.NestedSlice(content, "spec", "template", "spec", "containers")
				containers[0].(map[string]any)["image"] = c.image
				if err := unstructured.SetNestedSlice(content, containers, "spec", "template", "spec", "containers"); err != nil {
					return err
				}
				if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
					return nil // the fake API server stores what a dry run applies
				}
				return base.Apply(ctx, obj, opts...)
			}}
			api := fake.NewClientBuilder().WithScheme(withEtcd(t)).WithObjects(want).WithInterceptorFuncs(override).Build()
			d := New(kube.Access{Client: api, Live: api, Now: time.Now}).(*Driver)
			s := lifecycle.Step{Name: etcd.StartMember, Target: "my-etcd-0", Args: map[string]string{etcd.ArgVersion: "3.7.3", etcd.ArgExposed: string(etcd.Exposed)}}
			set, err := etcd.StatefulSet(want, etcd.World{}, s)
			if err != nil {
				t.Fatal(err)
			}
			err = d.applySet(t.Context(), want, set)
			if (err == nil) != c.stored {
				t.Errorf("got %v", err)
			}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: want.Namespace, Name: set.Name}, &appsv1.StatefulSet{}); (err == nil) != c.stored {
				t.Errorf("stored: %v", err)
			}
		})
	}
}

func withEtcd(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), etcdv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

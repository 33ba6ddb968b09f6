package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/governor-dev/governor/engine/internal/budget"
	"github.com/governor-dev/governor/engine/internal/enforce"
	"github.com/governor-dev/governor/engine/internal/historystore"
	"github.com/governor-dev/governor/kube/revision"
	"github.com/governor-dev/governor/lifecycle"
)

var fakeKind = schema.GroupVersionKind{Group: "fakes.example.com", Version: "v1", Kind: "Fake"}

// fake is the least custom resource.
type fake struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	generation int64
	conditions []metav1.Condition
}

func (f *fake) StatusFields() (*int64, *[]metav1.Condition) { return &f.generation, &f.conditions }

func (f *fake) DeepCopyObject() runtime.Object {
	out := *f
	return &out
}

func testEngine(now time.Time) *engine[*fake, struct{}] {
	return engineOf(now, fakeKind, App[*fake, struct{}]{Timeout: driverTimeout})
}

// engineOf is an engine of the application without policies, revisions and histories.
func engineOf[T lifecycle.Resource, W any](now time.Time, kind schema.GroupVersionKind, app App[T, W]) *engine[T, W] {
	clock := func() time.Time { return now }
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(kind, app.newObject())
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	c := fakeclient.NewClientBuilder().WithScheme(s).Build()
	e := &engine[T, W]{
		app: app, gvk: kind, client: c, live: c,
		operator:  &Operator{options: Options{Now: clock}, budget: budget.New(1, clock), policies: &enforce.Store{}},
		revisions: revision.NewStore("app", kind, nil, c, c), history: historystore.New("app", "v1", c, c),
	}
	e.assemble()
	return e
}

func fakeScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(fakeKind, &fake{})
	return s
}

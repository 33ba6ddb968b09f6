// Package envtest_test runs the operator against a real API server, without kubelets or
// controllers: the tests play those.
package envtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/etcd/v1beta2"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/apps/memcached"
	"github.com/governor-dev/governor/apps/memcached/driver"
	"github.com/governor-dev/governor/apps/podset"
	podsetdriver "github.com/governor-dev/governor/apps/podset/driver"
	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/test/fakeapp"
)

// patience is the timeout of each wait. A wait that passes costs nothing, so it is long enough for a busy machine.
const patience = 2 * time.Minute

var (
	config *rest.Config
	scheme = runtime.NewScheme()
	api    client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(verbosity())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Println("skipped: set KUBEBUILDER_ASSETS to a directory with kube-apiserver and etcd")
		return 0
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd")}}
	env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "ServiceAccount")
	var err error
	if config, err = env.Start(); err != nil {
		fmt.Println("cannot start the API server:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	config.QPS = -1
	storeURL = env.ControlPlane.Etcd.URL.String()
	if err := prepare(); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

func prepare() error {
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, appv1.AddToScheme, cachev1.AddToScheme, etcdv1.AddToScheme,
		v1beta2.AddToScheme, v1alpha1.AddToScheme, fakeapp.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	api, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

// operator is a running operator whose writes are counted.
type operator struct {
	mgr    ctrl.Manager
	engine *engine.Operator
	stop   func()
	writes *atomic.Int64
	lists  *fakeapp.Lists
	away   atomic.Bool

	mu    sync.Mutex
	wrote []string
}

func (o *operator) note(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote = append(o.wrote, line)
}

// since returns the writes after the first n.
func (o *operator) since(n int64) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.wrote[n:])
}

// setting is the configuration of an unusual operator.
type setting struct {
	// host is the address of the API server; empty means the default.
	host string
	// meddle can pass a request on, or answer it.
	meddle func(r *http.Request, next http.RoundTripper) (*http.Response, error)
	// planner is another version of memcached's planner.
	planner lifecycle.Planner[*cachev1.Memcached, memcached.World]
	// lists are the member lists of the rings, which several operators share.
	lists *fakeapp.Lists
	// workers and tellWithin are memcached's options.
	workers    int
	tellWithin time.Duration
	// holdable means that policies hold the deletion of a ring as a whole.
	holdable bool
}

// counting counts the writes except leases, and fails all requests during an outage.
type counting struct {
	next http.RoundTripper
	in   setting
	*operator
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.away.Load() {
		return nil, errors.New("the API server is away")
	}
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
		c.writes.Add(1)
		c.note(r.Method + " " + r.URL.Path)
	}
	if c.in.meddle != nil {
		return c.in.meddle(r, c.next)
	}
	return c.next.RoundTrip(r)
}

// startOperator runs an operator for one namespace until the test ends or stop is called.
func startOperator(t *testing.T, namespace string, tune ...func(*ctrl.Options, *engine.Options)) *operator {
	t.Helper()
	return startOperatorIn(t, setting{}, namespace, tune...)
}

func startOperatorIn(t *testing.T, s setting, namespace string, tune ...func(*ctrl.Options, *engine.Options)) *operator {
	t.Helper()
	if s.planner == nil {
		s.planner = memcached.Planner{}
	}
	op := &operator{writes: &atomic.Int64{}, lists: cmp.Or(s.lists, fakeapp.NewLists())}
	cfg := rest.CopyConfig(config)
	cfg.Host = cmp.Or(s.host, cfg.Host)
	cfg.Impersonate.UserName = actor(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, s, op} })
	options := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	engineOptions := engine.Options{Namespaces: []string{namespace}, Version: "test", PolicyStatus: true}
	for _, f := range tune {
		f(&options, &engineOptions)
	}
	mgr, err := ctrl.NewManager(cfg, options)
	must(t, err)
	op.mgr = mgr
	e, err := engine.New(mgr, engineOptions)
	must(t, err)
	op.engine = e
	must(t, engine.Register(e, engine.App[*cachev1.Memcached, memcached.World]{
		Name: memcached.Name, Planner: s.planner, Steps: memcached.Steps(), Abilities: memcached.Abilities(), Driver: driver.New,
		Owns:    []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}},
		Watches: []engine.Watch{{Object: &corev1.Pod{}}}, Workers: s.workers, StatusDelay: s.tellWithin,
	}))
	must(t, engine.Register(e, engine.App[*fakeapp.Ring, fakeapp.World]{
		Name: "ring", Planner: fakeapp.Planner{}, Steps: fakeapp.Steps(), Abilities: fakeapp.Abilities(), Driver: fakeapp.NewDriver(op.lists),
		Gates: []lifecycle.Gate[*fakeapp.Ring, fakeapp.World]{fakeapp.KeepsQuorum},
		Owns:  []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}, Finalize: !s.holdable, Holdable: s.holdable,
	}))
	must(t, engine.Register(e, engine.App[*appv1.PodSet, podset.World]{
		Name: podset.Name, Planner: podset.Planner{}, Steps: podset.Steps(), Abilities: podset.Abilities(), Driver: podsetdriver.New, Gates: podset.Gates(),
		Watches: []engine.Watch{{Object: &corev1.Pod{}}}, Debounce: 10 * time.Millisecond, StatusInterval: 50 * time.Millisecond,
	}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = mgr.Start(ctx) }()
	op.stop = func() { cancel(); <-done }
	t.Cleanup(op.stop)
	return op
}

// asOperator lists the tests whose operator has only the installed permissions.
var asOperator sync.Map

func actor(t *testing.T) string {
	if _, ok := asOperator.Load(t.Name()); ok {
		return "system:serviceaccount:governor-system:governor"
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newNamespace creates a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	must(t, api.Create(t.Context(), ns))
	return ns.Name
}

// eventually waits until check returns no error.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	err := check()
	for err != nil {
		select {
		case <-deadline.C:
			t.Fatalf("%s: %v", what, err)
		case <-look.C:
			err = check()
		}
	}
}

func get[T client.Object](t *testing.T, obj T, namespace, name string) (T, error) {
	t.Helper()
	return obj, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
}

// condition checks the status and the reason of a condition.
func condition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	for _, c := range conditions {
		if c.Type == kind {
			if c.Status == status && c.Reason == reason {
				return nil
			}
			return fmt.Errorf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("there is no condition %s", kind)
}
